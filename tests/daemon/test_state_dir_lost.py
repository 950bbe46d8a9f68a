"""The state directory deleted, replaced or not writable while the daemon runs."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path

from tests.daemon.conftest import Starter
from tests.daemon.harness import Sink, projection
from tests.daemon.test_live import arguments, run_to_end

LIMIT_S = 15.0


async def test_a_deleted_directory_is_put_back_with_all_that_was_in_it(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    log, state = tmp_path / "train.log", tmp_path / "state"
    data = (recorded / "verl-0.3.0.post1.driver.log").read_bytes()
    log.write_bytes(data[: len(data) // 2])
    sink.status = 503  # what could not be sent yet is lost with the outbox, too
    daemon = await start(*arguments(log, tmp_path, sink))
    await daemon.until(lambda s: s["sources"] and s["sources"][0]["position"] > 0 and s["receivers"][0]["pending"] > 0)
    shutil.rmtree(state)
    await daemon.until(lambda s: any("deleted while in use" in notice for notice in s["notices"]))
    assert sorted(file.name for file in state.iterdir() if not file.name.endswith(("-wal", "-shm"))) == [
        "lock",
        "state.db",
    ]
    await daemon.said("has been put back")
    _, said = await run_to_end("status", "--state-dir", state)
    assert "train.log" in said, "the new lock tells where it serves"
    await daemon.kill()

    sink.status = 200
    log.write_bytes(data)
    daemon = await start(*arguments(log, tmp_path, sink))
    await daemon.caught_up(log)
    assert await daemon.stop() == 0
    ids = [key for _, key, _ in sink.received]
    assert len(ids) == len(set(ids)) == 10
    assert len(projection(state)["steps"]) == 301


async def test_a_directory_that_cannot_be_put_back_is_told_and_put_back_later(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    log, state = tmp_path / "train.log", tmp_path / "state"
    log.write_bytes((recorded / "verl-0.3.0.post1.driver.log").read_bytes())
    daemon = await start(*arguments(log, tmp_path, sink))
    await daemon.caught_up(log)
    shutil.rmtree(state)
    state.touch()  # a file is in the way
    status = await daemon.until(lambda s: not s["store"]["ok"])
    assert "was deleted and cannot be put back" in status["store"]["error"]
    assert any(reason.startswith("store: ") for reason in (await daemon.get("/readyz"))["not_ready"])
    state.unlink()
    await daemon.until(lambda s: s["store"]["ok"])
    assert await daemon.stop() == 0
    assert len(projection(state)["steps"]) == 301


async def test_another_database_in_the_place_ends_the_daemon_with_a_clear_word(tmp_path: Path, start: Starter) -> None:
    state = tmp_path / "state"
    daemon = await start("--log", tmp_path / "later.log", "--state-dir", state)
    shutil.copy(state / "state.db", state / "restored")
    (state / "restored").rename(state / "state.db")
    rest, _ = await asyncio.wait_for(daemon.process.communicate(), LIMIT_S)
    assert daemon.process.returncode == 1
    assert b"verlwatch has stopped: " in rest
    assert b"was replaced by another database; restart" in rest
    assert b"Traceback" not in rest


async def test_a_second_daemon_in_the_place_ends_the_first(tmp_path: Path, start: Starter) -> None:
    state = tmp_path / "state"
    daemon = await start("--log", tmp_path / "later.log", "--state-dir", state)
    daemon.process.send_signal(signal.SIGSTOP)
    await daemon.stopped()
    shutil.rmtree(state)
    second = await start("--log", tmp_path / "later.log", "--state-dir", state)
    daemon.process.send_signal(signal.SIGCONT)
    rest, _ = await asyncio.wait_for(daemon.process.communicate(), LIMIT_S)
    assert daemon.process.returncode == 1
    assert f"is in use by process {second.process.pid}".encode() in rest
    assert await second.stop() == 0
