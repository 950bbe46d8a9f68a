"""A real training process that is killed: told within seconds, though no line of its log says so."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.core.watched import step_line, trainer
from tests.daemon.conftest import Starter
from tests.daemon.harness import LIMIT_S, Daemon, Sink

WITHIN_S = 5.0
LINES = "\n".join(map(trainer, ("Total training steps: 100", *map(step_line, range(1, 9)))))
TRAINING = """
import sys, time
log = open(sys.argv[1], "a", buffering=1)
sys.stdin.readline()
print(sys.argv[2], file=log)
sys.exit(int(sys.stdin.readline()))
"""


@pytest.fixture
async def training(tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that holds a log open, prints steps when it is told to, and ends with the code that it is given."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", TRAINING, tmp_path / "train.log", LINES, stdin=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    while not (tmp_path / "train.log").exists():
        await asyncio.sleep(0.01)
    yield process
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def watched(daemon: Daemon, pid: int) -> None:
    """Returns once the daemon holds a pidfd of the process."""
    async with asyncio.timeout(LIMIT_S):
        while not any(f"Pid:\t{pid}\n" in text for text in open_files(daemon.process.pid)):
            await asyncio.sleep(0.02)


def open_files(pid: int) -> Iterator[str]:
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            yield info.read_text()


async def until_told(sink: Sink) -> tuple[float, dict[str, object]]:
    """When the first message came, and what it says."""
    async with asyncio.timeout(LIMIT_S):
        while not sink.received:
            await asyncio.sleep(0.02)
    at, _, body = sink.received[0]
    return at, body


@pytest.mark.parametrize("how", ["named by its pid", "found by its log"])
async def test_a_killed_training_is_told_within_seconds(
    tmp_path: Path, start: Starter, sink: Sink, training: asyncio.subprocess.Process, how: str
) -> None:
    log = tmp_path / "train.log"
    by_pid = ("--pid", str(training.pid)) if how == "named by its pid" else ()
    daemon = await start("--log", log, *by_pid, "--state-dir", tmp_path / "state", "--webhook-url", sink.url)
    assert training.stdin is not None
    training.stdin.write(b"\n")
    await daemon.until(lambda status: status["runs"][0]["step"] == 8)
    await watched(daemon, training.pid)
    killed_at = time.monotonic()
    os.kill(training.pid, signal.SIGKILL)
    at, body = await until_told(sink)
    assert at - killed_at < WITHIN_S
    assert (body["rule"], body["severity"], body["step"]) == ("killed", "critical", 8)
    status = await daemon.status()
    assert status["runs"][0]["state"] == "crashed"
    assert len(sink.received) == 1


async def test_a_training_that_ends_in_good_order_too_early_is_told_so(
    tmp_path: Path, start: Starter, sink: Sink, training: asyncio.subprocess.Process
) -> None:
    log = tmp_path / "train.log"
    daemon = await start(
        "--log", log, "--pid", str(training.pid), "--state-dir", tmp_path / "state", "--webhook-url", sink.url
    )
    assert training.stdin is not None
    training.stdin.write(b"\n")
    await daemon.until(lambda status: status["runs"][0]["step"] == 8)
    await watched(daemon, training.pid)
    training.stdin.write(b"0\n")
    _, body = await until_told(sink)
    how = ("ended at step 8 of 100, without an error", f"(pid {training.pid}) has disappeared, at step 8 of 100")
    assert str(body["title"]).endswith(how)  # the second where the kernel tells nobody but the parent
