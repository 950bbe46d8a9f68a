"""Measures the reading of files: `python benchmarks/tail.py` prints a table (about a minute).

- latency: from an append to the chunk in the inbox, the file being silent for 20 to 300 ms before;
- idle: processor time while 1,000 files do not grow, of a run that ended long ago and of one that is live;
- throughput: a backlog in the page cache, chunks taken from the inbox and thrown away.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from verlwatch.shell.clock import SystemClock
from verlwatch.shell.tail import Inbox, Tail

APPENDS = 100
FILES = 1000
IDLE_S = 10.0
BACKLOG = 512 << 20


@contextlib.asynccontextmanager
async def tailing(pattern: Path) -> AsyncIterator[tuple[Tail, Inbox]]:
    """A running tail of one pattern."""
    inbox = Inbox()
    tail = Tail({"run": (str(pattern),)}, inbox, (), clock=SystemClock())
    task = asyncio.create_task(tail.run())
    yield tail, inbox
    tail.stop()
    while await inbox.get() is not None:
        pass
    await task


async def latencies(folder: Path) -> list[float]:
    """Seconds from each append to its chunk, sorted."""
    log = folder / "train.log"
    log.write_bytes(b"begin\n")
    gaps = random.Random(1)
    seconds = []
    async with tailing(log) as (_, inbox):
        await inbox.get()
        with log.open("ab", buffering=0) as file:
            for step in range(APPENDS):
                await asyncio.sleep(gaps.uniform(0.02, 0.3))
                begun = time.perf_counter()
                file.write(b"step:%d - timing_s/gen:12.3\n" % step)
                await inbox.get()
                seconds.append(time.perf_counter() - begun)
    return sorted(seconds)


async def idle(folder: Path, *, live: bool) -> float:
    """The share of one core that idle files cost."""
    for number in range(FILES):
        path = folder / f"worker-{number:04}.out"
        path.write_bytes(b"line of a log\n" * 100)
        if not live:
            os.utime(path, (1e9, 1e9))
    async with tailing(folder / "worker-*.out") as (tail, inbox):
        read = 0
        while read < FILES:
            read += len(await inbox.get() or [])
        await asyncio.sleep(1)
        begun = time.process_time()
        await asyncio.sleep(IDLE_S)
        share = (time.process_time() - begun) / IDLE_S
        assert len(tail.sources()) == FILES
    return share


async def throughput(folder: Path) -> tuple[float, float]:
    """Bytes a second and processor seconds a gigabyte."""
    log = folder / "train.log"
    block = b"".join(b"(WorkerDict pid=%06d) a line of a log as it is written\n" % n for n in range(20_000))
    with log.open("wb") as file:
        while file.tell() < BACKLOG:
            file.write(block)
    async with tailing(log) as (_, inbox):
        begun, cpu, left = time.perf_counter(), time.process_time(), log.stat().st_size
        while left:
            left -= sum(len(chunk.data) for chunk in await inbox.get() or [])
        size = log.stat().st_size
        return size / (time.perf_counter() - begun), (time.process_time() - cpu) / (size / 1e9)


def main() -> None:
    """Prints the table."""
    rows: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("latency", "idle", "live", "backlog"):
            (folder / part).mkdir()
        seconds = asyncio.run(latencies(folder / "latency"))
        rows.append(("append to chunk, p50", f"{seconds[len(seconds) // 2] * 1e3:.0f} ms"))
        rows.append(("append to chunk, p99", f"{seconds[len(seconds) * 99 // 100] * 1e3:.0f} ms"))
        share = asyncio.run(idle(folder / "idle", live=False))
        rows.append((f"{FILES:,} idle files of an ended run", f"{share:.1%} of a core"))
        share = asyncio.run(idle(folder / "live", live=True))
        rows.append((f"{FILES:,} idle files of a live run", f"{share:.1%} of a core"))
        rate, cost = asyncio.run(throughput(folder / "backlog"))
        rows.append(("backlog", f"{rate / 1e6:,.0f} MB/s, {cost:.2f} CPU s/GB"))
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        print(f"{label:{width}}  {value}")


if __name__ == "__main__":
    main()
