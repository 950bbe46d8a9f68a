"""Flag > VERLWATCH_* > file > default; where the file and the state are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from verlwatch.config import OVERRIDES, Address, Config, ConfigError, apply, find, flag, state_dir, variable

if TYPE_CHECKING:
    from collections.abc import Callable

    Loads = Callable[[str | bytes], Config]


def complaints(env: dict[str, str], flags: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        apply(Config(), env, flags)
    return str(caught.value).splitlines()


def test_a_flag_wins_over_a_variable_over_the_file_over_the_default(loads: Loads) -> None:
    file = loads("delivery: {grace: 20s}")
    env = {"VERLWATCH_DELIVERY_GRACE": "30s"}
    assert Config().delivery.grace == 10
    assert apply(file, {}, {}).delivery.grace == 20
    assert apply(file, env, {"delivery_grace": None}).delivery.grace == 30
    assert apply(file, env, {"delivery_grace": "40s"}).delivery.grace == 40


def test_what_is_not_overridden_stays(loads: Loads) -> None:
    file = loads(
        "runs: [{logs: [train.log]}]\n"
        "receivers: [{name: a, type: slack, webhook_url_file: s}, {name: b, type: webhook, url: 'https://h'}]\n"
        "http: {listen: off, token_file: credential:t}\nreading: {poll_interval: 1s}\n"
    )
    assert apply(file, {}, {}) == file
    changed = apply(file, {"VERLWATCH_LOG_LEVEL": "DEBUG"}, {})
    assert changed.logging.level == "debug"
    assert changed.model_copy(update={"logging": file.logging}) == file


def test_overriding_something_else_does_not_choose_the_listen_address() -> None:
    assert apply(Config(), {"VERLWATCH_HTTP_TOKEN_FILE": "/t"}, {"state_dir": "/s"}).http.listen_is_default
    assert not apply(Config(), {}, {"http_listen": "127.0.0.1:9878"}).http.listen_is_default


def test_every_single_value_has_a_variable_and_a_flag_by_one_rule() -> None:
    assert {(flag(name), variable(name)) for name in OVERRIDES} == {
        ("--state-dir", "VERLWATCH_STATE_DIR"),
        ("--http-token-file", "VERLWATCH_HTTP_TOKEN_FILE"),
        ("--http-listen", "VERLWATCH_HTTP_LISTEN"),
        ("--http-tls-key", "VERLWATCH_HTTP_TLS_KEY"),
        ("--http-tls-certificate", "VERLWATCH_HTTP_TLS_CERTIFICATE"),
        ("--http-client-ca", "VERLWATCH_HTTP_CLIENT_CA"),
        ("--agent-plain-http", "VERLWATCH_AGENT_PLAIN_HTTP"),
        ("--agent-hub", "VERLWATCH_AGENT_HUB"),
        ("--agent-token-file", "VERLWATCH_AGENT_TOKEN_FILE"),
        ("--agent-name", "VERLWATCH_AGENT_NAME"),
        ("--agent-ca", "VERLWATCH_AGENT_CA"),
        ("--agent-certificate", "VERLWATCH_AGENT_CERTIFICATE"),
        ("--agent-key", "VERLWATCH_AGENT_KEY"),
        ("--agent-outbox-size", "VERLWATCH_AGENT_OUTBOX_SIZE"),
        ("--hub-plain-http", "VERLWATCH_HUB_PLAIN_HTTP"),
        ("--incidents-repeat-critical", "VERLWATCH_INCIDENTS_REPEAT_CRITICAL"),
        ("--incidents-repeat-warning", "VERLWATCH_INCIDENTS_REPEAT_WARNING"),
        ("--incidents-update-interval", "VERLWATCH_INCIDENTS_UPDATE_INTERVAL"),
        ("--incidents-reopen-within-steps", "VERLWATCH_INCIDENTS_REOPEN_WITHIN_STEPS"),
        ("--incidents-openings-per-hour", "VERLWATCH_INCIDENTS_OPENINGS_PER_HOUR"),
        ("--incidents-critical-after-steps", "VERLWATCH_INCIDENTS_CRITICAL_AFTER_STEPS"),
        ("--incidents-critical-after-loss", "VERLWATCH_INCIDENTS_CRITICAL_AFTER_LOSS"),
        ("--timezone", "VERLWATCH_TIMEZONE"),
        ("--stalls-start", "VERLWATCH_STALLS_START"),
        ("--stalls-loading", "VERLWATCH_STALLS_LOADING"),
        ("--stalls-first-step", "VERLWATCH_STALLS_FIRST_STEP"),
        ("--stalls-first-validation", "VERLWATCH_STALLS_FIRST_VALIDATION"),
        ("--stalls-finished", "VERLWATCH_STALLS_FINISHED"),
        ("--detection-false-alarms", "VERLWATCH_DETECTION_FALSE_ALARMS"),
        ("--detection-min-step-share", "VERLWATCH_DETECTION_MIN_STEP_SHARE"),
        ("--detection-accept-after-steps", "VERLWATCH_DETECTION_ACCEPT_AFTER_STEPS"),
        ("--reading-poll-interval", "VERLWATCH_READING_POLL_INTERVAL"),
        ("--reading-line-limit", "VERLWATCH_READING_LINE_LIMIT"),
        ("--reading-max-files", "VERLWATCH_READING_MAX_FILES"),
        ("--reading-watch", "VERLWATCH_READING_WATCH"),
        ("--reading-hydra", "VERLWATCH_READING_HYDRA"),
        ("--gpu-source", "VERLWATCH_GPU_SOURCE"),
        ("--gpu-every", "VERLWATCH_GPU_EVERY"),
        ("--storage-keep-steps", "VERLWATCH_STORAGE_KEEP_STEPS"),
        ("--storage-max-size", "VERLWATCH_STORAGE_MAX_SIZE"),
        ("--delivery-grace", "VERLWATCH_DELIVERY_GRACE"),
        ("--delivery-max-backoff", "VERLWATCH_DELIVERY_MAX_BACKOFF"),
        ("--delivery-collapse-after", "VERLWATCH_DELIVERY_COLLAPSE_AFTER"),
        ("--heartbeat-url", "VERLWATCH_HEARTBEAT_URL"),
        ("--heartbeat-url-file", "VERLWATCH_HEARTBEAT_URL_FILE"),
        ("--heartbeat-every", "VERLWATCH_HEARTBEAT_EVERY"),
        ("--heartbeat-proxy", "VERLWATCH_HEARTBEAT_PROXY"),
        ("--log-level", "VERLWATCH_LOG_LEVEL"),
        ("--log-format", "VERLWATCH_LOG_FORMAT"),
        ("--external-url", "VERLWATCH_EXTERNAL_URL"),
    }


@pytest.mark.parametrize("name", OVERRIDES)
def test_a_wrong_override_is_told_under_the_name_it_was_given(name: str) -> None:
    wrong = "" if name.endswith(("dir", "file", "key", "certificate", "_ca", "agent_name")) else "wrong"
    path = ".".join(OVERRIDES[name])
    assert [line.partition(": ")[0] for line in complaints({}, {name: wrong})] == [flag(name)]
    if wrong:
        (line,) = complaints({variable(name): wrong}, {})
        assert line.startswith(f"{variable(name)}: {path}: ")


def test_all_wrong_overrides_are_told_at_once() -> None:
    assert complaints({"VERLWATCH_LOG_LEVEL": "loud"}, {"reading_max_files": "few"}) == [
        "--reading-max-files: reading.max_files: must be a whole number",
        "VERLWATCH_LOG_LEVEL: logging.level: must be debug, info, warning or error",
    ]


def test_an_empty_variable_counts_as_unset() -> None:
    assert apply(Config(), {"VERLWATCH_STATE_DIR": "", "VERLWATCH_LOG_LEVEL": ""}, {}) == Config()


def test_listening_beyond_loopback_needs_a_token_from_wherever(loads: Loads) -> None:
    env = {"VERLWATCH_HTTP_LISTEN": "10.0.0.1:80"}
    (line,) = complaints(env, {})
    assert line.startswith("VERLWATCH_HTTP_LISTEN: http.listen: is reachable from other hosts without authentication;")
    assert apply(loads("http: {token_file: /t}"), env, {}).http.listen == Address("10.0.0.1", 80)
    assert apply(Config(), env, {"http_token_file": "/t"}).http.listen == Address("10.0.0.1", 80)


def test_a_relative_path_of_a_flag_starts_at_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = apply(Config(), {}, {"log": ["train.log", "metrics.jsonl"], "state_dir": "state"})
    assert config.state_dir == f"{tmp_path}/state"
    assert config.runs[0].name == "train"
    assert config.runs[0].logs == (f"{tmp_path}/train.log", f"{tmp_path}/metrics.jsonl")


def test_logs_and_receivers_of_the_command_line_replace_those_of_the_file(loads: Loads) -> None:
    file = loads("runs: [{logs: [/a.log]}]\nreceivers: [{name: x, type: webhook, url: 'https://h'}]")
    config = apply(file, {}, {"log": ["/b.log"], "run_name": "mine", "slack_webhook_file": "/s"})
    assert [(run.name, run.logs) for run in config.runs] == [("mine", ("/b.log",))]
    assert [receiver.name for receiver in config.receivers] == ["slack"]
    both = apply(file, {}, {"slack_webhook_file": "/s", "webhook_url": "https://other"})
    assert [(receiver.name, receiver.type) for receiver in both.receivers] == [
        ("slack", "slack"),
        ("webhook", "webhook"),
    ]
    assert both.runs == file.runs


def test_a_wrong_log_or_receiver_is_told_under_its_flag() -> None:
    assert complaints({}, {"log": ["/a", "/a"], "run_name": "\x1b", "webhook_url": "https://u:canary@h"}) == [
        "--log: runs[0].logs[1]: is already a log of runs[0]; name it once",
        "--run-name: runs[0].name: must be 1 to 100 printable characters; give the run a short name",
        "--webhook-url: receivers[0].url: has a user name or password in it; "
        "take it out and put what is secret into a file",
    ]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    return tmp_path


def made(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


def test_the_file_is_searched_from_the_nearest_to_the_farthest(home: Path) -> None:
    env = {"HOME": str(home), "VERLWATCH_CONFIG": str(home / "named.yaml")}
    assert find({"HOME": str(home)}) in {None, Path("/etc/verlwatch/verlwatch.yaml")}
    default = made(home / ".config/verlwatch/verlwatch.yaml")
    assert find({"HOME": str(home)}) == default
    other = made(home / "xdg/verlwatch/verlwatch.yaml")
    assert find({"HOME": str(home), "XDG_CONFIG_HOME": str(home / "xdg")}) == other
    assert find({"HOME": str(home), "XDG_CONFIG_HOME": "relative"}) == default
    made(home / "cwd/verlwatch.yaml")
    assert find({"HOME": str(home)}) == Path("verlwatch.yaml")
    assert find(env) == home / "named.yaml"


def test_the_state_is_where_it_is_configured_else_systemds_else_xdgs(loads: Loads, tmp_path: Path) -> None:
    xdg = {"HOME": "/home/she", "XDG_STATE_HOME": "/xdg"}
    assert state_dir(Config(), {"HOME": "/home/she"}) == Path("/home/she/.local/state/verlwatch")
    assert state_dir(Config(), xdg) == Path("/xdg/verlwatch")
    assert state_dir(Config(), xdg | {"STATE_DIRECTORY": "/var/lib/verlwatch:/b"}) == Path("/var/lib/verlwatch")
    assert state_dir(loads("state_dir: here"), xdg | {"STATE_DIRECTORY": "/var/lib/verlwatch"}) == tmp_path / "here"
    with pytest.raises(ConfigError, match="set state_dir or give --state-dir"):
        state_dir(Config(), {})
