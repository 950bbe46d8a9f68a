"""What the settings accept, refuse and default to; everything wrong at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from verlwatch.config import Address, Config, json_schema, settings
from verlwatch.core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Loads = Callable[[str | bytes], Config]
    Complains = Callable[[str | bytes], list[str]]

EVERYTHING_WRONG = """\
runs:
  - {name: my-run, logs: [/data/run/train.log, "/data/run/*.jsonl"]}
  - {nme: x, logs: /x}
  - logs: [/data/run/train.log]
  - {name: my-run, logs: []}
  - just text
recievers: []
http: {listen: 0.0.0.0:9878}
http: {listen: off}
state_dir: [a]
receivers:
  - {name: Team, type: slack, webhook_url: https://hooks.slack.com/canary, proxy: socks5://u:canary@x}
  - {name: ops, type: webhok}
  - {name: ops}
  - type: webhook
    url: https://u:canary@x
  - https://hooks.slack.com/canary
detection: {false_alarms: 1, min_step_share: 1, accept_after_steps: 1e3}
reading: {poll_interval: 1e-3, line_limit: 12, max_files: 0}
delivery: []
logging: {level: loud, format: [json]}
external_url: ftp://canary@x
"""

EVERY_PROBLEM = """\
3:6: runs[1].nme: unknown key; did you mean name?
3:20: runs[1].logs: must be a list; put - before each entry, or the entries in [ ]
4:12: runs[2].logs[0]: is already a log of runs[0]; name it once
5:12: runs[3].name: my-run is already the name of runs[0]; give each its own
5:26: runs[3].logs: is an empty list; add an entry
6:5: runs[4]: must be a mapping; write it as key: value lines
7:1: recievers: unknown key; did you mean receivers?
8:16: http.listen: is reachable from other hosts without authentication; set http.token_file, \
or listen on 127.0.0.1:9878
9:1: http: occurs twice (first in line 8); keep one
10:12: state_dir: must be a text
12:12: receivers[0].name: must consist of a-z, 0-9, _ and - (at most 64); write for example team-slack
12:31: receivers[0].webhook_url: is a secret and must not stand here; write it into a file (mode 0600) and give \
webhook_url_file: PATH
12:83: receivers[0].proxy: must be a URL with a host; write for example https://host.example/path
13:23: receivers[1].type: unknown kind of receiver; did you mean webhook?
14:5: receivers[2].type: is missing or no text; say which kind of receiver this is, for example type: slack
14:12: receivers[2].name: ops is already the name of receivers[1]; give each its own
15:5: receivers[3].name: is required; add it
16:10: receivers[3].url: has a user name or password in it; take it out and put what is secret into a file
17:5: receivers[4]: must be a mapping; write it as key: value lines
18:27: detection.false_alarms: must be a rate; write for example 1 per month per run (hour, day, week, month or year)
18:46: detection.min_step_share: must be a percentage; write for example 1%
18:69: detection.accept_after_steps: must be a whole number
19:26: reading.poll_interval: must be a number with a unit; write for example 100ms, 5s, 2m, 1h or 90d
19:44: reading.line_limit: has no unit; write for example 64KiB, 1MiB or 2GB \
(units: B, KB, KiB, MB, MiB, GB, GiB, TB, TiB)
19:59: reading.max_files: must be at least 1
20:11: delivery: must be a mapping; write it as key: value lines
21:18: logging.level: must be debug, info, warning or error
21:32: logging.format: must be auto, json or text
22:15: external_url: must be a URL with a host; write for example https://host.example/path
"""


def test_everything_wrong_is_told_at_once_with_place_and_remedy(complains: Complains) -> None:
    assert complains(EVERYTHING_WRONG) == EVERY_PROBLEM.splitlines()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("runs: [{logs: ['']}]", "1:16: runs[0].logs[0]: must be the path of a file; it is empty or holds a NUL"),
        ("runs: [{logs: [[a]]}]", "1:16: runs[0].logs[0]: must be a text"),
        ("runs: [{log: [a]}]", "1:9: runs[0].log: unknown key; did you mean logs?"),
        ("receivers: [{nmae: x, type: slack, webhook_url_file: /f}]", "1:14: receivers[0].nmae: unknown key; did you"),
        ("receivers: [{name: x, type: slack, webhook_url: u}]", "1:36: receivers[0].webhook_url: is a secret and must"),
        ("runs: [{logs: [a], name: [x]}, {logs: [b], name: y}]", "1:26: runs[0].name: must be a text"),
        ("runs: [{logs: [a], name: 'x {date}'}]", "1:26: runs[0].name: {date} stands for nothing; write one of"),
    ],
)
def test_what_only_follows_from_another_problem_is_not_told(text: str, problem: str, complains: Complains) -> None:
    (told,) = complains(text)
    assert told.startswith(problem)


def test_entries_that_are_empty_are_no_repetition(complains: Complains) -> None:
    assert [line.partition(": must be the path of")[0] for line in complains("runs: [{logs: ['']}, {logs: ['']}]")] == [
        "1:16: runs[0].logs[0]",
        "1:30: runs[1].logs[0]",
    ]


def test_no_problem_repeats_what_could_be_a_secret(complains: Complains) -> None:
    assert "canary" not in "".join(complains(EVERYTHING_WRONG))


def test_the_defaults_are_those_of_the_documents() -> None:
    config = Config()
    assert config.http.listen == Address("127.0.0.1", 9878)
    assert (config.detection.false_alarms, config.detection.min_step_share) == (1.0, 0.01)
    assert (config.reading.poll_interval, config.reading.line_limit) == (0.1, 1 << 20)
    assert (config.storage.keep_steps, config.storage.max_size) == (90 * 86_400, 256 << 20)
    assert (config.delivery.grace, config.delivery.max_backoff) == (10, 300)


def test_a_configuration_cannot_be_changed_once_read() -> None:
    with pytest.raises(ValidationError):
        Config().http.listen = None  # type: ignore[misc]  # that is the point


def test_relative_logs_start_at_the_folder_of_the_file_and_tilde_at_home(
    loads: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/she")
    config = loads("runs: [{logs: [train.log, ./logs/*.jsonl, ~/run.log, /abs.log]}]")
    assert config.runs[0].logs == (
        f"{tmp_path}/train.log",
        f"{tmp_path}/logs/*.jsonl",
        "/home/she/run.log",
        "/abs.log",
    )


@pytest.mark.parametrize(
    ("log", "name"),
    [
        ("/data/run7/train.log", "train"),
        ("verl.driver.log", "verl.driver"),
        ("/data/run7/*.log", "run7"),
        ("/data/run7/**/*.log", "run7"),
        ("/data/run7.b/worker-[0-9].out", "run7.b"),
        ("/*.log", "run"),
    ],
)
def test_a_run_without_a_name_is_called_after_its_first_log(log: str, name: str, loads: Loads) -> None:
    assert loads(f"runs: [{{logs: ['{log}', /other.log]}}]").runs[0].name == name
    assert loads(f"runs: [{{name: , logs: ['{log}']}}]").runs[0].name == name


def test_two_runs_called_after_equal_logs_need_names(complains: Complains) -> None:
    assert complains("runs:\n- logs: [/a/train.log]\n- logs: [/b/train.log]\n") == [
        "3:3: runs[1].name: train is already the name of runs[0]; give each its own"
    ]


@pytest.mark.parametrize("name", ["''", '"\\x1b[31m"', '"a\\u202eb"', '"a\\nb"', "x" * 101])
def test_a_run_name_must_be_short_and_printable(name: str, complains: Complains) -> None:
    assert complains(f"runs: [{{name: {name}, logs: [/x]}}]") == [
        "1:15: runs[0].name: must be 1 to 100 printable characters; give the run a short name"
    ]


def test_a_run_name_may_be_in_any_script(loads: Loads) -> None:
    assert loads("runs: [{name: 训练 7 (GRPO), logs: [/x]}]").runs[0].name == "训练 7 (GRPO)"


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("127.0.0.1:9878", Address("127.0.0.1", 9878), True),
        ("127.8.8.8:1", Address("127.8.8.8", 1), True),
        ("localhost:0", Address("localhost", 0), True),
        ("'[::1]:65535'", Address("::1", 65_535), True),
        ("0.0.0.0:80", Address("0.0.0.0", 80), False),  # noqa: S104  # read, not bound
        ("'[::]:80'", Address("::", 80), False),
        ("gpu7.example.org:80", Address("gpu7.example.org", 80), False),
    ],
)
def test_an_address_is_read_and_knows_whether_other_hosts_reach_it(
    text: str, address: Address, loopback: bool, loads: Loads
) -> None:
    config = loads(f"http: {{token_file: /t, listen: {text}}}")
    assert config.http.listen == address
    assert address.is_loopback == loopback
    assert str(address) == text.strip("'")


@pytest.mark.parametrize("text", ["'9878'", "':9878'", "localhost", "localhost:http", "h h:1", "[]", "'a:-1'"])
def test_an_address_without_host_or_port_is_refused(text: str, complains: Complains) -> None:
    assert complains(f"http: {{listen: {text}}}") == [
        "1:16: http.listen: must be HOST:PORT or off; write for example 127.0.0.1:9878"
    ]


@pytest.mark.parametrize("host", ["a..b", ".a", "a,b", "256.1.1.1", f"{'a' * 64}", "'[::1'", "a b"])
def test_a_host_that_cannot_exist_is_told_with_its_place(host: str, complains: Complains) -> None:
    bare = host.strip("'")
    (listen,) = complains(f"http: {{token_file: /t, listen: '{bare}:80'}}")
    assert listen.startswith("1:32: http.listen: ")
    (allowed,) = complains(f"http: {{allowed_hosts: ['{bare}']}}")
    assert allowed.startswith("1:24: http.allowed_hosts[0]: must be a host name or address")
    for url in (f"external_url: 'http://{bare}:80/'", f"external_url: 'http://{bare}'"):
        (problem,) = complains(url)
        assert problem.startswith("1:15: external_url: ")


def test_an_address_has_brackets_where_needed_and_a_port_that_exists(complains: Complains) -> None:
    assert complains("http: {listen: '::1:80'}") == [
        "1:16: http.listen: an IPv6 address stands in brackets; write for example [::1]:9878"
    ]
    assert complains("http: {listen: localhost:65536}") == [
        "1:16: http.listen: the port must lie between 0 (any free one) and 65535; write for example 9878"
    ]


def test_it_is_known_whether_the_listen_address_was_chosen(loads: Loads) -> None:
    assert loads("http: {allowed_hosts: [a.example]}").http.listen_is_default
    assert not loads("http: {listen: 127.0.0.1:9878}").http.listen_is_default


@pytest.mark.parametrize("host", ["https://a.example", "a/b", "''", "a b", "a@b"])
def test_an_allowed_host_is_a_name_only(host: str, complains: Complains) -> None:
    assert complains(f"http: {{allowed_hosts: [{host}]}}") == [
        "1:24: http.allowed_hosts[0]: must be a host name or address without scheme and path; "
        "write for example watch.example.org"
    ]


@pytest.mark.parametrize(
    ("setting", "low", "high", "below", "above"),
    [
        ("reading.poll_interval", "10ms", "10s", "9ms", "11s"),
        ("reading.line_limit", "64KiB", "64MiB", "63KiB", "65MiB"),
        ("storage.keep_steps", "1h", "3650d", "59m", "3651d"),
        ("storage.max_size", "16MiB", "1TiB", "15MiB", "2TiB"),
        ("delivery.grace", "0s", "5m", "", "6m"),
        ("delivery.max_backoff", "1s", "1d", "0s", "25h"),
        ("detection.false_alarms", "1 per year per run", "1 per hour per run", "0 per month", "2 per hour"),
    ],
)
def test_bounds_are_told_in_the_words_of_the_user(
    setting: str, low: str, high: str, below: str, above: str, loads: Loads, complains: Complains
) -> None:
    section, key = setting.split(".")
    for good in (low, high):
        loads(f"{section}: {{{key}: {good}}}")
    for bad in filter(None, (below, above)):
        (line,) = complains(f"{section}: {{{key}: {bad}}}")
        assert line.endswith(f"{setting}: must lie between {low} and {high}")


def test_whole_numbers_have_bounds(complains: Complains) -> None:
    assert complains("detection: {accept_after_steps: 9}\nreading: {max_files: 100001}") == [
        "1:33: detection.accept_after_steps: must be at least 10",
        "2:22: reading.max_files: must be at most 100000",
    ]


def test_an_environment_variable_in_a_value_is_not_expanded(loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "canary")
    assert loads("runs: [{name: '${SECRET}', logs: [/x/$SECRET]}]").runs[0].logs == ("/x/$SECRET",)


def test_a_key_from_a_hostile_file_is_printed_harmlessly(complains: Complains) -> None:
    assert complains('"\\x1b[31mred\\u202e": 1') == [
        "1:1: \\x1b[31mred\\u202e: unknown key; known here: "
        "runs, lines, state_dir, http, agent, hub, receivers, routes, incidents, quiet_hours, maintenance, timezone, "
        "detection, stalls, reading, gpu, storage, delivery, heartbeat, logging, external_url"
    ]
    (line,) = complains(f"? {'k' * 10_000}\n: 1\n")
    assert len(line) < 300


def test_the_core_gets_what_was_configured(loads: Loads) -> None:
    config = loads(
        "runs: [{name: r, logs: [/x]}]\n"
        "receivers: [{name: team, type: slack, webhook_url_file: /s}]\n"
        "detection: {false_alarms: 7 per week per run, min_step_share: 2.5%, accept_after_steps: 50}\n"
        "reading: {line_limit: 128KiB}\nexternal_url: https://watch.example/verl/\n"
    )
    assert settings(config) == Settings(
        receivers=("team",),
        false_alarms_per_month=30.0,
        min_step_share=0.025,
        accept_after_steps=50,
        line_limit=128 << 10,
        link="https://watch.example/verl",
    )


def test_the_defaults_of_the_configuration_are_those_of_the_core() -> None:
    assert settings(Config()) == Settings()


def test_the_schema_for_editors_knows_every_section_kind_and_default() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == set(Config.model_fields)
    assert set(schema["properties"]["receivers"]["items"]["discriminator"]["mapping"]) >= {"slack", "webhook"}
    assert schema["$defs"]["Reading"]["properties"]["poll_interval"]["default"] == "100ms"
    assert schema["$defs"]["Http"]["additionalProperties"] is False


def test_the_judged_metrics_are_chosen_by_name(loads: Loads, complains: Complains) -> None:
    assert settings(Config()).metrics == Settings().metrics
    assert settings(loads("detection: {metrics: [throughput]}")).metrics == ("throughput",)
    assert settings(loads("detection: {metrics: []}")).metrics == ()
    (line,) = complains("detection: {metrics: [mfu]}")
    assert "'mfu' is no metric that is judged; give one of throughput, mfu_actor" in line


def test_the_numbers_of_the_training_that_are_judged_are_chosen_by_name(loads: Loads, complains: Complains) -> None:
    assert settings(Config()).health == ()
    assert settings(loads("detection: {health: [entropy, kl]}")).health == ("entropy", "kl")
    (line,) = complains("detection: {health: [loss]}")
    assert "'loss' is no number of the training that is judged; give one of grad_norm, critic_grad_norm" in line
