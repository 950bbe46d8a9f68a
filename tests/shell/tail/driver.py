"""Drives a Tail by hand: no thread, no watchdog, no sleeping; time is a number.

`Splitter` stands in for the core: it splits lines and says where reading must resume.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from verlwatch.core.types import Chunk, Cursor
from verlwatch.fields import Start
from verlwatch.shell.tail import Following, Inbox, SourceView, Tail


class Clock:
    """Stands where a test puts it."""

    def __init__(self, now: float) -> None:
        self.at = now

    def now(self) -> float:
        return self.at

    async def wait(self, event: asyncio.Event, until: float | None) -> None:
        raise AssertionError("a test that drives cycles never waits")


class Splitter:
    """One source's lines and the cursor they allow."""

    def __init__(self, resume: Cursor | None) -> None:
        self.generation = -1
        self.offset = 0
        self.rest = b""
        self.mark = b""
        self.token = ""
        self.resume = resume

    def feed(self, chunk: Chunk) -> list[bytes]:
        """The lines that this chunk completes and that were not judged before."""
        if chunk.generation != self.generation:
            assert chunk.generation > self.generation
            self.generation, self.offset, self.rest, self.mark = chunk.generation, chunk.offset, b"", b""
            if self.resume is not None and self.resume.generation == chunk.generation:
                assert chunk.offset == self.resume.reread_from
                self.mark = self.resume.mark
        assert chunk.offset == self.offset, "chunks of one generation follow one another"
        self.offset += len(chunk.data)
        self.token = chunk.token
        *lines, self.rest = (self.rest + chunk.data).split(b"\n")
        self.mark = (self.mark + b"".join(line + b"\n" for line in lines))[-64:]
        end = self.offset - len(self.rest) - sum(len(line) + 1 for line in lines)
        judged = -1
        if self.resume is not None and self.resume.generation == self.generation:
            judged = self.resume.applied_to
        fresh = []
        for line in lines:
            end += len(line) + 1
            if end > judged:
                fresh.append(line)
        return fresh

    def cursor(self, source: str) -> Cursor:
        reread_from = self.offset - len(self.rest)
        mark = self.mark[-min(64, reread_from) :] if reread_from else b""
        return Cursor(source, self.generation, reread_from, self.offset, mark, self.token)


class Driver:
    """A tail, the stand-in core behind it, and what has been delivered and committed."""

    def __init__(self, *patterns: str | Path, max_files: int = 1024) -> None:
        self.patterns = {"run": tuple(str(pattern) for pattern in patterns)}
        self.max_files = max_files
        self.starts: dict[str, Start] = {}
        self.clock = Clock(1_000_000.0)
        self.lines: list[bytes] = []
        self.chunks: list[Chunk] = []
        self.cursors: dict[str, Cursor] = {}
        self.committed = 0
        self._splitters: dict[str, Splitter] = {}
        self.start()

    def start(self) -> None:
        """A new process: what was not committed is forgotten."""
        del self.lines[self.committed :]
        self._splitters = {}
        self.inbox = Inbox()
        following = Following(self.patterns, self.starts, max_files=self.max_files)
        self.tail = Tail(following, self.inbox, self.cursors.values(), clock=self.clock)

    def kill(self) -> None:
        """The process dies: descriptors are closed, nothing else happens."""
        self.tail.close()

    def restart(self) -> None:
        self.kill()
        self.start()

    def commit(self) -> None:
        for source, splitter in self._splitters.items():
            self.cursors[source] = splitter.cursor(source)
        self.committed = len(self.lines)

    async def cycle(self) -> float:
        """One cycle; what it read is split into lines."""
        due = await self.tail.cycle(self.clock.at)
        while len(self.inbox):
            for chunk in await self.inbox.get() or []:
                assert isinstance(chunk, Chunk)
                self.chunks.append(chunk)
                splitter = self._splitters.setdefault(chunk.source, Splitter(self.cursors.get(chunk.source)))
                self.lines += splitter.feed(chunk)
        return due

    async def settle(self, seconds: float, step: float = 0.5) -> list[bytes]:
        """Cycles until nothing is behind and so much time has passed, in steps of at most ``step`` seconds."""
        end = self.clock.at + seconds
        while True:
            while await self.cycle() <= self.clock.at:
                pass
            if self.clock.at >= end:
                return self.lines
            self.clock.at = min(end, self.clock.at + step)

    def view(self, source: str | Path) -> SourceView:
        (view,) = [view for view in self.tail.sources() if view.source == str(source)]
        return view


def numbered(first: int, count: int, *, head: bool = False) -> bytes:
    """Lines with unique numbers, behind a header that is longer than the head of a file that is compared."""
    header = b"+ python3 -m verl.trainer.main_ppo data.train_batch_size=1024\n" * 20 if head else b""
    return header + b"".join(
        b"line %07d of the log, as long as such lines are\n" % n for n in range(first, first + count)
    )


def numbers(lines: list[bytes]) -> list[int]:
    """The numbers of the lines; the header is left out."""
    return [int(line.split()[1]) for line in lines if line.startswith(b"line ")]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
