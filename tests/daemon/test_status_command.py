"""`verlwatch status` finds the daemon of its state directory and trusts no other."""

from __future__ import annotations

from pathlib import Path

from tests.daemon.conftest import Starter
from tests.daemon.harness import Sink
from tests.daemon.test_live import run_to_end


async def test_it_asks_the_daemon_that_holds_the_state_directory_on_whatever_port(
    tmp_path: Path, start: Starter
) -> None:
    token = tmp_path / "token"
    token.write_text("open-sesame")
    state = ("--state-dir", tmp_path / "state")
    daemon = await start("--log", tmp_path / "mine.log", *state, "--http-token-file", token)
    code, said = await run_to_end("status", *state, "--token-file", token)
    assert "mine.log" in said, said
    assert code == 1, "its only log is not there yet"
    await daemon.kill()
    code, said = await run_to_end("status", *state, "--token-file", token)
    assert code == 1
    assert f"no daemon that serves its status runs on state directory {tmp_path / 'state'}" in said


async def test_without_a_daemon_of_its_own_it_asks_nobody(tmp_path: Path, sink: Sink) -> None:
    config = tmp_path / "verlwatch.yaml"
    listen = sink.url.removeprefix("http://").removesuffix("/hook")
    (tmp_path / "token").write_text("open-sesame")
    config.write_text(f"http: {{listen: '{listen}', token_file: token}}\nstate_dir: state\n")
    code, said = await run_to_end("status", "--config", config)
    assert code == 1
    assert "--url" in said
    assert sink.asked_for == []
