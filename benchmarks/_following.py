"""Following growing files with a real `Tail`: processor time, delay from an append to its record, memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks._verl_log import step_line
from verlwatch.core.lines import Reader
from verlwatch.core.types import Chunk, Record
from verlwatch.shell.clock import SystemClock
from verlwatch.shell.tail import Following, Inbox, Tail

FILES = 1000
IDLE_S = 20.0
BUSY_FILES = 8
WRITES = 20_000  # a second, a line each
BUSY_S = 10.0
APPENDS = 200
LINE = (
    b"\x1b[36m(WorkerDict pid=%06d)\x1b[0m the model of batch rollout to generate tokens, as long as such lines are\n"
)


class Tailing:
    """A running tail of one pattern, and the records of what it reads."""

    def __init__(self, inbox: Inbox, *, reading: bool = True) -> None:
        self._inbox = inbox
        self._reading = reading
        self._readers: dict[str, Reader] = {}
        self.bytes = 0

    async def records(self) -> list[Record] | None:
        """Of the next chunks; None at the end."""
        chunks = await self._inbox.get()
        if chunks is None:
            return None
        made: list[Record] = []
        for chunk in chunks:
            assert isinstance(chunk, Chunk)
            self.bytes += len(chunk.data)
            if not self._reading:
                continue
            reader = self._readers.setdefault(chunk.source, Reader(chunk.source))
            made += reader.feed(chunk.data, time.time())
        return made

    async def take(self, size: int, within_s: float) -> None:
        """Reads until so many bytes were read in all, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.bytes < size:
                    await self.records()

    async def record(self) -> None:
        """Waits for a record."""
        while not await self.records():
            pass


@contextlib.asynccontextmanager
async def following(pattern: Path, *, reading: bool = True) -> AsyncIterator[Tailing]:
    """Follows what the pattern finds; without ``reading`` chunks are thrown away."""
    inbox = Inbox()
    tail = Tail(Following({"run": (str(pattern),)}), inbox, (), clock=SystemClock())
    task = asyncio.create_task(tail.run())
    stream = Tailing(inbox, reading=reading)
    yield stream
    tail.stop()
    while await stream.records() is not None:
        pass
    await task


def make_idle(folder: Path, *, live: bool) -> int:
    """Fills the folder with logs that do not grow; their bytes in all.  Those that are not live ended long ago."""
    for number in range(FILES):
        path = folder / f"worker-{number:04}.out"
        path.write_bytes(LINE % number * 20)
        if not live:
            os.utime(path, (1e9, 1e9))
    return sum(path.stat().st_size for path in folder.iterdir())


async def idle(folder: Path, *, live: bool) -> float:
    """The share of one core that 1,000 idle files cost."""
    size = make_idle(folder, live=live)
    async with following(folder / "*.out") as stream:
        await stream.take(size, 30)
        await asyncio.sleep(3)
        begun = time.process_time()
        await stream.take(size + 1, IDLE_S)
        return (time.process_time() - begun) / IDLE_S


async def backlog(log: Path, size: int) -> float:
    """MB per CPU second from a finished log to chunks."""
    async with following(log, reading=False) as stream:
        begun = time.process_time()
        await stream.take(size, 60)
        return stream.bytes / (time.process_time() - begun) / 1e6


async def busy(folder: Path) -> tuple[float, float]:
    """The share of one core, up to the records, while another process appends lines; lines a second that were read."""
    for number in range(BUSY_FILES):
        (folder / f"worker-{number}.out").write_bytes(b"begin\n")
    async with following(folder / "*.out") as stream:
        await stream.take(6 * BUSY_FILES, 10)
        with _writing(folder):
            await stream.take(1 << 40, 1)
            begun, cpu, read = time.monotonic(), time.process_time(), stream.bytes
            await stream.take(1 << 40, BUSY_S)
            took = time.monotonic() - begun
            share = (time.process_time() - cpu) / took
            return share, (stream.bytes - read) / len(LINE % 0) / took


def begin(log: Path, beside: Path | None) -> int:
    """Makes the files of `delays`; their bytes in all."""
    log.write_bytes(b"begin\n")
    return make_idle(beside, live=True) if beside else 6


def _writing(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, str(folder)])


async def delays(log: Path, *, beside: Path | None, quiet_s: float, gap_s: float, appends: int) -> list[float]:
    """Seconds from each append of a step line to its record, sorted.

    With ``beside`` 1,000 idle files of a live run lie in that folder, the log among them; it grows once, is quiet for
    ``quiet_s``, and then gets a line each ``gap_s`` or so.
    """
    rnd = random.Random(1)
    size = begin(log, beside)
    seconds = []
    async with following(beside / "*.out" if beside else log) as stream:
        await stream.take(size, 30)
        with log.open("ab", buffering=0) as file:
            for step in range(-1, appends):
                await stream.take(1 << 40, quiet_s if step == 0 else rnd.uniform(0.2, 1.8) * gap_s)
                line = step_line(rnd, step + 1).encode()
                begun = time.perf_counter()
                file.write(line)
                await stream.record()
                seconds.append(time.perf_counter() - begun)
    return sorted(seconds[1:])


def peak_mb() -> float:
    """Resident memory of this process at most, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """The writer: appends lines one by one, each with a write of its own, in bursts of 5 ms."""
    folder = Path(sys.argv[1])
    files = [os.open(path, os.O_WRONLY | os.O_APPEND) for path in sorted(folder.iterdir())]
    burst = WRITES // 200
    begun = time.monotonic()
    number = 0
    while (now := time.monotonic()) < begun + BUSY_S + 2:
        while number < (now - begun) * WRITES:
            for _ in range(burst):
                number += 1
                os.write(files[number % len(files)], LINE % (number % 1_000_000))
        time.sleep(0.005)


if __name__ == "__main__" and len(sys.argv) > 1:
    main()
