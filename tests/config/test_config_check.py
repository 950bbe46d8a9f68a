"""`check` looks at what the configuration names: secrets, logs, the state directory, misspelt variables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from verlwatch.config import check

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def found(file: Path, text: str, env: dict[str, str]) -> list[str]:
    file.write_text(text)
    return [str(problem).removeprefix(f"{file}:") for problem in check(file, env)]


def secret(folder: Path, name: str, content: str, mode: int = 0o600) -> Path:
    file = folder / name
    file.write_text(content)
    file.chmod(mode)
    return file


GOOD = "runs: [{logs: [train.log]}]\nreceivers: [{name: a, type: slack, webhook_url_file: slack}]\n"


@pytest.fixture
def good(tmp_path: Path) -> str:
    (tmp_path / "train.log").touch()
    secret(tmp_path, "slack", "https://hooks.slack.com/services/canary\n")
    return GOOD


def test_nothing_is_found_where_all_is_well_and_nothing_is_made(
    good: str, config_file: Path, env: dict[str, str]
) -> None:
    assert found(config_file, good, env) == []
    assert sorted(path.name for path in config_file.parent.iterdir()) == ["slack", "train.log", "verlwatch.yaml"]


def test_what_does_not_load_is_reported_as_it_is(config_file: Path, env: dict[str, str]) -> None:
    assert found(config_file, "recievers: []", env) == ["1:1: recievers: unknown key; did you mean receivers?"]
    assert found(config_file, "", env | {"VERLWATCH_LOG_LEVEL": "loud"}) == [
        "VERLWATCH_LOG_LEVEL: logging.level: must be debug, info, warning or error"
    ]


def test_a_configuration_that_watches_nothing_or_tells_nobody_gets_a_warning(
    config_file: Path, env: dict[str, str]
) -> None:
    assert found(config_file, "", env) == [
        "1:1: runs: there is nothing to watch: name a run here, or give --log LOG",
        "1:1: warning: receivers: is empty: nobody is told; add a receiver",
    ]


def test_secrets_that_cannot_be_used_are_errors_at_their_place(
    good: str, config_file: Path, env: dict[str, str], tmp_path: Path
) -> None:
    secret(tmp_path, "empty", "\n")
    text = f"{good}http:\n  token_file: empty\n".replace("url_file: slack", "url_file: none")
    assert found(config_file, text, env) == [
        f"2:54: receivers[0].webhook_url_file: {tmp_path}/none: no such file or directory; create it with the "
        "secret as its only line, readable by the user verlwatch runs as (mode 0600)",
        f"4:15: http.token_file: {tmp_path}/empty: is empty; write the secret into it",
    ]


def test_a_file_that_should_hold_a_url_and_does_not_is_told_without_its_content(
    good: str, config_file: Path, env: dict[str, str], tmp_path: Path
) -> None:
    secret(tmp_path, "slack", "xoxb-canary")
    assert found(config_file, good, env) == [
        f"2:54: receivers[0].webhook_url_file: the content of {tmp_path}/slack must be a URL with a host; "
        "write for example https://host.example/path"
    ]


def test_a_secret_open_to_others_gets_a_warning(
    good: str, config_file: Path, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "slack").chmod(0o640)
    assert found(config_file, good, env) == [
        f"2:54: warning: receivers[0].webhook_url_file: {tmp_path}/slack is open to other users (mode 0640); "
        "chmod 600 it"
    ]


def test_a_credential_is_checked_only_where_systemd_gave_one(
    good: str, config_file: Path, env: dict[str, str], tmp_path: Path
) -> None:
    text = good.replace("url_file: slack", "url_file: credential:hook")
    assert found(config_file, text, env) == [
        "2:54: warning: receivers[0].webhook_url_file: credential:hook can only be read when systemd starts the service"
    ]
    env["CREDENTIALS_DIRECTORY"] = str(tmp_path)
    (line,) = found(config_file, text, env)
    assert f"webhook_url_file: {tmp_path}/hook: no such file or directory" in line
    secret(tmp_path, "hook", "https://hooks.slack.com/services/canary", mode=0o440)
    assert found(config_file, text, env) == []


def test_logs_that_cannot_be_read_now_are_warnings_since_others_are_still_watched(
    good: str, config_file: Path, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    logs = "['late.log', '*.jsonl', folder, fifo, train.log, '*.log', train.log/x]"
    assert found(config_file, good.replace("[train.log]", logs), env) == [
        f"1:16: warning: runs[0].logs[0]: {tmp_path}/late.log does not exist yet; verlwatch will wait for it",
        f"1:28: warning: runs[0].logs[1]: {tmp_path}/*.jsonl matches no file yet; verlwatch will wait for one",
        f"1:39: warning: runs[0].logs[2]: {tmp_path}/folder is a folder and no Ray session; name its files, "
        f"for example {tmp_path}/folder/*.log",
        f"1:47: warning: runs[0].logs[3]: {tmp_path}/fifo is no regular file and will not be read; name a file",
        f"1:73: warning: runs[0].logs[6]: {tmp_path}/train.log/x cannot be looked at (not a directory); "
        "check the path and its permissions",
    ]


def test_what_this_user_may_not_read_or_write_is_told(
    good: str, config_file: Path, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locked").mkdir()
    # root may do everything whatever the modes say, so the answer of the kernel is given here.
    monkeypatch.setattr(os, "access", lambda *_args, **_kwargs: False)
    assert found(config_file, f"{good}state_dir: locked/state\n", env) == [
        f"1:16: warning: runs[0].logs[0]: {tmp_path}/train.log is not readable by this user; give it read permission",
        f"3:12: state_dir: {tmp_path}/locked/state cannot be written by this user ({tmp_path}/locked); "
        "give it write permission, or set another state_dir",
    ]


def test_a_state_directory_that_is_a_file_or_nowhere_is_an_error(
    good: str, config_file: Path, env: dict[str, str], tmp_path: Path
) -> None:
    assert found(config_file, f"{good}state_dir: train.log\n", env) == [
        f"3:12: state_dir: {tmp_path}/train.log is no folder; name one, or remove what is there"
    ]
    assert found(config_file, good, {}) == [
        "1:1: state_dir: there is no home directory ($HOME) to keep state in; set state_dir or give --state-dir"
    ]


def test_a_state_directory_on_a_network_file_system_is_an_error(
    good: str, config_file: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verlwatch.config._check.network_file_system", lambda path: "nfs4 mounted at /home")
    (line,) = found(config_file, f"{good}state_dir: /home/state\n", env)
    assert line.startswith(
        "3:12: state_dir: /home/state is on a network file system (nfs4 mounted at /home), where SQLite is not safe; "
    )


def test_a_misspelt_variable_gets_a_warning_but_not_those_that_others_set(
    good: str, config_file: Path, env: dict[str, str]
) -> None:
    env |= {
        "VERLWATCH_STATEDIR": "/x",
        "VERLWATCH_CONFIG": "verlwatch.yaml",
        "VERLWATCH_SERVICE_HOST": "10.0.0.1",
        "VERLWATCH_PORT_9878_TCP_PROTO": "tcp",
    }
    assert found(config_file, good, env) == [
        "environment: warning: VERLWATCH_STATEDIR: is no setting; did you mean VERLWATCH_STATE_DIR?"
    ]


def test_a_ray_session_is_no_mere_folder(good: str, config_file: Path, env: dict[str, str], tmp_path: Path) -> None:
    for session, worker in (("busy", "TaskRunner"), ("idle", "f")):
        (tmp_path / session / "logs").mkdir(parents=True)
        log = tmp_path / session / "logs" / f"worker-{7:056x}-01000000-7.out"
        log.write_text(f":job_id:01000000\n:actor_name:{worker}\n")
    assert found(config_file, good.replace("[train.log]", "[busy, busy/01000000, idle, busy/02000000]"), env) == [
        f"1:{column}: warning: runs[0].logs[{index}]: {tmp_path}/{path} names no training of a Ray session yet; "
        "verlwatch will wait for one"
        for column, index, path in ((37, 2, "idle"), (43, 3, "busy/02000000"))
    ]
