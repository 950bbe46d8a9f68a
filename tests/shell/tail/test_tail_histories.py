"""Random histories of a log file against a model: no line is lost that could be had, none arrives twice.

The model knows which lines nobody can read any more: those that were deleted or truncated away before they were read,
or were read but not committed when the watcher died.  All others must arrive, in the order of their file.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

from tests.conftest import SOAK
from tests.shell.tail.driver import Driver, append, numbered, numbers

HISTORIES = 20_000 if SOAK else 400
ACTIONS = 40
PER_TEST = 50


@dataclass
class Content:
    """What one file holds: complete lines, and the rest of a line that was written by half."""

    lines: list[int] = field(default_factory=list)
    rest: bytes = b""
    half: int = -1
    opened: bool = False


class World:
    """A directory with a log, its writer, its rotated files, and a watcher that may be down."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)  # histories are to be repeatable
        self.folder = folder
        self.log = folder / "train.log"
        self.number = 0
        self.done: list[str] = []
        self.gone: set[int] = set()  # nobody can read these any more
        self.endangered: set[int] = set()  # delivered, not committed, and no longer in any file
        self.orphans: list[Content] = []  # deleted, but held open by the watcher
        self.contents: list[Content] = []
        self.rotated: Content | None = None
        self.rotated_at = 0.0
        self.down = False
        self._create()
        self.driver = Driver(folder / "train.log*" if seed % 2 else self.log)

    # ------------------------------------------------------------------------------------------------ the writer
    def _take(self, count: int) -> range:
        self.number += count
        return range(self.number - count, self.number)

    def _create(self) -> None:
        """A new log; its header is that of every other, its first line comes with it."""
        self.content = Content()
        self.contents.append(self.content)
        (number,) = self._take(1)
        append(self.log, numbered(number, 1, head=True))
        self.content.lines.append(number)

    def _write(self, content: Content, path: Path, count: int) -> None:
        if content.rest:
            append(path, content.rest)
            content.lines.append(content.half)
            content.rest = b""
        taken = self._take(count)
        append(path, b"".join(numbered(number, 1) for number in taken))
        content.lines += taken

    def append(self) -> None:
        self._write(self.content, self.log, self.random.randint(1, 6))

    def half(self) -> None:
        if not self.content.rest:
            (self.content.half,) = self._take(1)
            line = numbered(self.content.half, 1)
            cut = self.random.randrange(1, len(line))
            append(self.log, line[:cut])
            self.content.rest = line[cut:]

    # ------------------------------------------------------------------------------------------------ the rotation
    def _shift(self) -> Path:
        for number in range(ACTIONS, 0, -1):
            old = self.folder / f"train.log.{number}"
            if old.exists():
                old.rename(self.folder / f"train.log.{number + 1}")
        return self.folder / "train.log.1"

    def rename(self) -> None:
        self.log.rename(self._shift())
        self.rotated, self.rotated_at = self.content, self.driver.clock.at
        self._create()

    def late(self) -> None:
        """The writer of a renamed file has not noticed yet."""
        if self.rotated is not None and self.driver.clock.at - self.rotated_at < 3:
            self._write(self.rotated, self.folder / "train.log.1", self.random.randint(1, 3))

    def copytruncate(self) -> None:
        if self.content.rest:
            self._write(self.content, self.log, 0)
        delivered, _ = self.delivered()
        if not self.down and not delivered & set(self.content.lines):
            # Nothing of it was read, so nothing proves that the copy is this content and comes before the next.
            self.gone |= set(self.content.lines)
        shutil.copyfile(self.log, self._shift())
        self.rotated = None
        self.log.write_bytes(b"")
        self._create()

    def truncate(self) -> None:
        self._destroy(self.content)
        self.log.write_bytes(b"")
        self._create()

    def delete(self) -> None:
        if self.down or not self.content.opened:
            self._destroy(self.content)
        else:
            self.orphans.append(self.content)
        self.log.unlink()
        self._create()

    def replace(self) -> None:
        """A copy takes the log's place, as with rsync."""
        if self.content.rest:
            self._write(self.content, self.log, 0)
        fresh = self.folder / ".fresh"
        shutil.copyfile(self.log, fresh)
        fresh.replace(self.log)
        self.content.opened = False

    def _destroy(self, content: Content) -> None:
        delivered, committed = self.delivered()
        self.gone |= set(content.lines) - delivered
        self.endangered |= set(content.lines) & (delivered - committed)

    def delivered(self) -> tuple[set[int], set[int]]:
        lines = self.driver.lines
        return set(numbers(lines)), set(numbers(lines[: self.driver.committed]))

    # ------------------------------------------------------------------------------------------------ the watcher
    async def cycle(self) -> None:
        if not self.down:
            self.driver.clock.at += self.random.choice((0.6, 0.6, 2.0))
            while await self.driver.cycle() <= self.driver.clock.at:
                pass
            self.content.opened = True

    async def fault(self) -> None:
        """One of the next reads fails, whichever it is; the files are closed and found again."""
        if not self.down:
            self._forget_open_files()
            with failing_read(self.random.randint(1, 12)):
                await self.cycle()
            self.driver.clock.at += 0.5
            await self.cycle()

    async def rest(self) -> None:
        if not self.down:
            await self.driver.settle(self.random.choice((3.0, 8.0, 20.0)))
            self.content.opened = True

    def commit(self) -> None:
        if not self.down:
            self.driver.commit()
            self.endangered.clear()

    def kill(self) -> None:
        if not self.down:
            self.driver.kill()
            del self.driver.lines[self.driver.committed :]
            self.gone |= self.endangered
            self.endangered.clear()
            self._forget_open_files()
            self.down = True

    def _forget_open_files(self) -> None:
        """Without its descriptors the watcher cannot read what was deleted."""
        for orphan in self.orphans:
            self._destroy(orphan)
        self.orphans.clear()
        for content in self.contents:
            content.opened = False

    def start(self) -> None:
        if self.down:
            self.driver.start()
            self.down = False

    async def restart(self) -> None:
        self.kill()
        self.start()

    # ------------------------------------------------------------------------------------------------ the history
    async def live(self) -> None:
        """One history; then everything is given time to arrive."""
        weights = {
            "append": 8, "half": 3, "rename": 2, "late": 3, "copytruncate": 2, "truncate": 1, "delete": 1, "replace": 1,
            "cycle": 9, "rest": 3, "commit": 5, "kill": 1, "start": 3, "restart": 1, "fault": 2,
        }  # fmt: skip
        await self.cycle()
        self.commit()  # before its first commit a watcher knows nothing of the files it has seen
        for _ in range(ACTIONS):
            (name,) = self.random.choices([*weights], [*weights.values()])
            self.done.append(name)
            result = getattr(self, name)()
            if result is not None:
                await result
            self._check_no_duplicates()
        self.start()
        await self.driver.settle(200, step=2.0)

    def _check_no_duplicates(self) -> None:
        delivered = numbers(self.driver.lines)
        twice = {number for number in delivered if delivered.count(number) > 1}
        assert not twice, f"arrived twice: {sorted(twice)} after {self.done}"

    def check(self) -> None:
        self._check_no_duplicates()
        delivered = numbers(self.driver.lines)
        place = {number: index for index, number in enumerate(delivered)}
        written = {number for content in self.contents for number in content.lines}
        lost = written - set(delivered) - self.gone
        assert not lost, f"lost: {sorted(lost)} of {len(written)} after {self.done}"
        for content in self.contents:
            places = [place[number] for number in content.lines if number in place]
            assert places == sorted(places), f"out of order: {content.lines} after {self.done}"


@contextmanager
def failing_read(countdown: int) -> Iterator[None]:
    """The read of that number fails as a file server's does."""
    pread = os.pread

    def read(fd: int, size: int, offset: int) -> bytes:
        nonlocal countdown
        countdown -= 1
        if not countdown:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(fd, size, offset)

    with mock.patch("os.pread", read):
        yield


@pytest.mark.parametrize("first", range(0, HISTORIES, PER_TEST))
async def test_no_line_is_lost_or_arrives_twice_in_histories_from(first: int, tmp_path: Path) -> None:
    unavoidable = written = 0
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    for seed in range(first, first + PER_TEST):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(folder, seed)
        try:
            await world.live()
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        finally:
            if not world.down:
                world.driver.kill()
        unavoidable += len(world.gone - world.delivered()[0])
        written += world.number
    assert unavoidable < written / 4, "the model must not excuse everything"
    assert len(list(Path("/proc/self/fd").iterdir())) < descriptors + PER_TEST, "descriptors are closed"
