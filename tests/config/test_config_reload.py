"""What a reload changes: by name for runs and receivers, live or after a restart for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from verlwatch.config import OVERRIDES, Config, Delta, Reload, apply, changes, in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    Loads = Callable[[str | bytes], Config]

OTHER = {
    "state_dir": "/other",
    "http_token_file": "/other",
    "http_listen": "off",
    "http_tls_key": "/other",
    "http_tls_certificate": "/other",
    "http_client_ca": "/other",
    "agent_plain_http": "allowed",
    "agent_hub": "https://other",
    "agent_token_file": "/other",
    "agent_name": "other",
    "agent_ca": "/other",
    "agent_certificate": "/other",
    "agent_key": "/other",
    "agent_outbox_size": "1GiB",
    "hub_plain_http": "allowed",
    "incidents_repeat_critical": "off",
    "incidents_repeat_warning": "1d",
    "incidents_update_interval": "1m",
    "incidents_reopen_within_steps": "5",
    "incidents_openings_per_hour": "9",
    "incidents_critical_after_steps": "7",
    "incidents_critical_after_loss": "3h",
    "timezone": "Asia/Shanghai",
    "stalls_start": "10m",
    "stalls_loading": "10m",
    "stalls_first_step": "10m",
    "stalls_first_validation": "10m",
    "stalls_finished": "off",
    "detection_false_alarms": "2 per week",
    "detection_min_step_share": "3%",
    "detection_accept_after_steps": "100",
    "reading_poll_interval": "1s",
    "reading_line_limit": "2MiB",
    "reading_max_files": "7",
    "reading_watch": "poll",
    "reading_hydra": "off",
    "gpu_source": "off",
    "gpu_every": "5s",
    "storage_keep_steps": "7d",
    "storage_max_size": "1GiB",
    "delivery_grace": "1s",
    "delivery_max_backoff": "1m",
    "delivery_collapse_after": "2h",
    "heartbeat_url": "https://other.example/ping",
    "heartbeat_url_file": "/other",
    "heartbeat_every": "5m",
    "heartbeat_proxy": "http://other.example:3128",
    "log_level": "error",
    "log_format": "json",
    "external_url": "https://other",
}
RESTART = ("state_dir", "http.", "agent.", "logging.")
NEEDS = {
    "http_tls_certificate": ["http_tls_key"],
    "http_client_ca": ["http_tls_key", "http_tls_certificate"],
    "agent_hub": ["agent_token_file"],
}


def test_equal_configurations_change_nothing(loads: Loads) -> None:
    text = "runs: [{logs: [/a.log]}]\nreceivers: [{name: x, type: webhook, url: 'https://h'}]"
    assert not changes(loads(text), loads(text))
    assert not changes(Config(), loads("http: {listen: 127.0.0.1:9878}\nreading: {poll_interval: 0.1s}"))


def test_runs_and_receivers_change_by_name(loads: Loads) -> None:
    old = loads(
        "runs: [{name: stays, logs: [/a]}, {name: moves, logs: [/b]}, {name: ends, logs: [/c]}]\n"
        "receivers: [{name: stays, type: webhook, url: 'https://h'}, {name: kind, type: webhook, url: 'https://h'},"
        " {name: ends, type: webhook, url: 'https://h'}]"
    )
    new = loads(
        "runs: [{name: begins, logs: [/c]}, {name: moves, logs: [/b, /d]}, {name: stays, logs: [/a]}]\n"
        "receivers: [{name: kind, type: slack, webhook_url_file: /s}, {name: stays, type: webhook, url: 'https://h'}]"
    )
    reload = changes(old, new)
    assert reload == Reload(
        runs=Delta(added=("begins",), removed=("ends",), changed=("moves",)),
        receivers=Delta(removed=("ends",), changed=("kind",)),
    )
    assert reload


@pytest.mark.parametrize("name", OVERRIDES)
def test_every_setting_is_either_live_or_needs_a_restart(name: str) -> None:
    path = ".".join(OVERRIDES[name])
    expected = Reload(restart=(path,)) if path.startswith(RESTART) else Reload(live=(path,))
    before = apply(Config(), {}, {needed: OTHER[needed] for needed in NEEDS.get(name, ())})
    assert changes(before, apply(before, {}, {name: OTHER[name]})) == expected


def test_agents_come_and_go_and_being_a_hub_needs_a_restart(loads: Loads) -> None:
    agents = [f"{{name: n{number}, token_file: /t{number}}}" for number in range(2)]
    none, one, two = (loads(f"hub: {{agents: [{', '.join(agents[:count])}]}}") for count in range(3))
    assert changes(one, two) == Reload(live=("hub.agents",))
    assert in_force(one, two).hub == two.hub
    for old, new in ((none, one), (one, none)):
        assert changes(old, new) == Reload(restart=("hub.agents",))
        assert in_force(old, new).hub == old.hub


def test_allowed_hosts_need_a_restart(loads: Loads) -> None:
    assert changes(Config(), loads("http: {allowed_hosts: [a]}")) == Reload(restart=("http.allowed_hosts",))


def test_what_needs_a_restart_stays_in_force_and_is_named_again(loads: Loads) -> None:
    old = loads("logging: {level: info}\nstorage: {keep_steps: 1d}")
    new = loads("logging: {level: debug}\nhttp: {listen: off}\nstorage: {keep_steps: 2d}")
    now = in_force(old, new)
    assert (now.logging, now.http, now.storage) == (old.logging, old.http, new.storage)
    assert changes(now, new) == Reload(restart=("http.listen", "logging.level"))
