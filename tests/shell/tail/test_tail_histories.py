"""Random histories of a log file against a model: no line is lost that could be had, none arrives twice.

The model knows which lines nobody can read any more: those that were deleted or truncated away before they were read,
or were read but not committed when the watcher died.  All others must arrive, in the order of their file.
"""

from __future__ import annotations

import errno
import gzip
import os
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

from tests.conftest import SOAK
from tests.shell.tail.driver import Driver, append, numbered, numbers

HISTORIES = 10_000 if SOAK else 400
FIRST = int(os.environ.get("VERLWATCH_FIRST_HISTORY", "0"))  # other seeds, for who looks for more
ACTIONS = 40
PER_TEST = 50

WRITER = {
    "append": 12, "half": 3, "rename": 2, "retire": 1, "late": 3, "copytruncate": 2, "hole": 1, "gzip": 2,
    "truncate": 1, "equal": 1, "delete": 1, "vanish": 1, "replace": 1,
}  # fmt: skip
SESSIONS = {
    "append": 12,
    "half": 3,
    "swap": 3,
    "late": 3,
    "truncate": 1,
    "equal": 1,
    "delete": 1,
    "vanish": 1,
    "replace": 1,
}
WATCHER = {"cycle": 14, "rest": 4, "commit": 5, "kill": 1, "start": 3, "restart": 1, "fault": 2, "jump": 1}


@dataclass(eq=False)
class Content:
    """What one file holds: complete lines, and the rest of a line that was written by half.

    ``opened`` says that the watcher has it open, ``copied`` that what is left of it is a copy, which nobody has open.
    """

    lines: list[int] = field(default_factory=list)
    rest: bytes = b""
    half: int = -1
    opened: bool = False
    copied: bool = False


class World:
    """A directory with a log, its writer, its rotated files, and a watcher that may be down.

    There are three kinds: the log is named by its path, by a pattern that its rotated files match too, or lies behind
    a link that swaps from session to session.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)  # histories are to be repeatable
        self.folder = folder
        self.session = 0
        self.has_sessions = seed % 3 == 2
        self.log = folder / "latest" / "train.log" if self.has_sessions else folder / "train.log"
        self.number = 0
        self.time = 0.0
        self.done: list[str] = []
        self.gone: set[int] = set()  # nobody can read these any more
        self.endangered: set[int] = set()  # delivered, not committed, and no longer in any file
        self.orphans: list[Content] = []  # deleted, but held open by the watcher
        self.left: list[Content] = []  # in a former session: found again only by the position in it
        self.rotations: list[Content | None] = []  # what train.log.1, .2, … hold; None: compressed
        self.contents: list[Content] = []
        self.late_content: Content | None = None
        self.late_path = self.log
        self.late_since = 0.0
        self.absent = False
        self.down = False
        if self.has_sessions:
            self._new_session()
        self._create()
        self.driver = Driver(folder / "train.log*" if seed % 3 == 1 else self.log)

    # ------------------------------------------------------------------------------------------------ the writer
    def _take(self, count: int) -> range:
        self.number += count
        return range(self.number - count, self.number)

    def _create(self, at: int = 0) -> None:
        """A new log; its header is that of every other, its first line comes with it; ``at`` is where it begins."""
        self.content = Content()
        self.contents.append(self.content)
        self.absent = False
        (number,) = self._take(1)
        with self.log.open("r+b" if at else "ab") as file:
            file.seek(at)
            file.write(numbered(number, 1, head=True))
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

    def appear(self) -> None:
        """What takes the place of any action on a log that is not there."""
        self._create()
        self.late_since = self.time

    # ------------------------------------------------------------------------------------------------ the rotation
    def _shift(self, content: Content) -> Path:
        for number in range(len(self.rotations), 0, -1):
            packed = "" if self.rotations[number - 1] else ".gz"
            old = self.folder / f"train.log.{number}{packed}"
            old.rename(self.folder / f"train.log.{number + 1}{packed}")
        self.rotations.insert(0, content)
        return self.folder / "train.log.1"

    def rename(self) -> None:
        self.retire()
        self.appear()

    def retire(self) -> None:
        """The log is renamed and nothing takes its place as yet; its writer goes on."""
        self.late_path = self._shift(self.content)
        self.log.rename(self.late_path)
        self.late_content = self.content
        self.absent = True

    def late(self) -> None:
        """The writer of a renamed file has not noticed yet."""
        if self.late_content is not None and (self.absent or self.time - self.late_since < 3):
            self._write(self.late_content, self.late_path, self.random.randint(1, 3))

    def copytruncate(self) -> None:
        self._copy_and_empty()
        self._create()

    def hole(self) -> None:
        """The same with a writer that goes on at its old offset."""
        size = self.log.stat().st_size
        self._copy_and_empty()
        self._create(at=size)

    def _copy_and_empty(self) -> None:
        if self.content.rest:
            self._write(self.content, self.log, 0)
        delivered, _ = self.delivered()
        if not self.down and not delivered & set(self.content.lines):
            # Nothing of it was read, so nothing proves that the copy is this content and comes before the next.
            self.gone |= set(self.content.lines)
        self.content.copied = True
        shutil.copyfile(self.log, self._shift(self.content))
        self.late_content = None
        self.log.write_bytes(b"")

    def gzip(self) -> None:
        """A rotated file is compressed; what was not read of it and is not held open is lost."""
        there = [number for number, content in enumerate(self.rotations, 1) if content]
        if there:
            number = self.random.choice(there)
            content = self.rotations[number - 1]
            assert content is not None
            self.rotations[number - 1] = None
            path = self.folder / f"train.log.{number}"
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
            self._deleted(content)
            if content is self.late_content:
                self.late_content = None

    # ------------------------------------------------------------------------------------------------ the destruction
    def truncate(self) -> None:
        self._destroy(self.content)
        self.log.write_bytes(b"")
        self._create()

    def equal(self) -> None:
        """Other content of the same size, in place."""
        if self.content.rest:
            self._write(self.content, self.log, 0)
        status, hole = self.log.stat(), self.log.read_bytes().startswith(b"\0")
        if not hole:
            self._destroy(self.content)
            self.content = Content([*self._take(len(self.content.lines))])
            self.contents.append(self.content)
            while self.log.stat().st_mtime_ns == status.st_mtime_ns:  # real histories take their time
                time.sleep(0.001)
                self.log.write_bytes(numbered(self.content.lines[0], len(self.content.lines), head=True))
            assert self.log.stat().st_size == status.st_size

    def delete(self) -> None:
        self.vanish()
        self.appear()

    def vanish(self) -> None:
        self._deleted(self.content)
        self.log.unlink()
        self.late_content = None
        self.absent = True

    def replace(self) -> None:
        """A copy takes the log's place, as with rsync."""
        if self.content.rest:
            self._write(self.content, self.log, 0)
        fresh = self.folder / ".fresh"
        shutil.copyfile(self.log, fresh)
        fresh.replace(self.log)
        self.content.opened = False

    def swap(self) -> None:
        """The link goes on to a new session; the writer of the old one has not noticed yet."""
        content, self.late_content, self.late_path = self.content, self.content, self.log.resolve()
        delivered, _ = self.delivered()
        self.left.append(content)
        if not content.opened and not delivered & set(content.lines):
            self.gone |= set(content.lines)  # nothing leads to it
            self.late_content = None
        self._new_session()
        self.appear()

    def _new_session(self) -> None:
        self.session += 1
        (self.folder / f"session_{self.session}").mkdir()
        (self.folder / ".link").symlink_to(f"session_{self.session}")
        (self.folder / ".link").replace(self.folder / "latest")

    def _deleted(self, content: Content) -> None:
        """A name of it is gone: it is readable only for who has it open."""
        if self.down or content.copied or not content.opened:
            self._destroy(content)
        else:
            self.orphans.append(content)

    def _destroy(self, content: Content) -> None:
        delivered, committed = self.delivered()
        self.gone |= set(content.lines) - delivered
        self.endangered |= set(content.lines) & (delivered - committed)

    def delivered(self) -> tuple[set[int], set[int]]:
        lines = self.driver.lines
        return set(numbers(lines)), set(numbers(lines[: self.driver.committed]))

    # ------------------------------------------------------------------------------------------------ the watcher
    def _pass(self, seconds: float) -> None:
        self.time += seconds
        self.driver.clock.at += seconds

    async def cycle(self) -> None:
        if not self.down:
            self._pass(self.random.choice((1.1, 1.1, 2.0)))  # nothing is looked at less often than once a second
            while await self.driver.cycle() <= self.driver.clock.at:
                pass
            self.content.opened |= not self.absent

    async def fault(self) -> None:
        """One of the next reads fails, whichever it is; the files are closed and found again."""
        if not self.down:
            self._forget_open_files()
            with failing_read(self.random.randint(1, 12)):
                await self.cycle()
            self._pass(0.5)
            await self.cycle()

    async def rest(self) -> None:
        if not self.down:
            seconds = self.random.choice((3.0, 8.0, 20.0))
            await self.driver.settle(seconds)
            self.time += seconds
            self.content.opened |= not self.absent

    def jump(self) -> None:
        """The clock is set."""
        self.driver.clock.at += self.random.choice((-86_400.0, -3600.0, -120.0, 3600.0, 86_400.0))

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
        """Without its descriptors the watcher cannot read what was deleted, or left behind by the link."""
        read = numbers(self.driver.lines)
        for content in self.left:
            if not read or read[-1] not in content.lines:
                self._destroy(content)
                self.late_content = None if content is self.late_content else self.late_content
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
        writer = SESSIONS if self.has_sessions else WRITER
        weights = {**writer, **WATCHER}
        await self.cycle()
        self.commit()  # before its first commit a watcher knows nothing of the files it has seen
        for _ in range(ACTIONS):
            (name,) = self.random.choices([*weights], [*weights.values()])
            if self.absent and name in writer and name not in {"late", "gzip"}:
                name = "appear"
            self.done.append(name)
            result = getattr(self, name)()
            if result is not None:
                await result
            self._check_no_duplicates()
        if self.absent:
            self.appear()
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
        assert set(delivered) <= written, "nothing arrives that was not written"
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


@pytest.mark.parametrize("first", range(FIRST, FIRST + HISTORIES, PER_TEST))
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
    assert unavoidable < 0.4 * written, "the model must not excuse everything"
    assert len(list(Path("/proc/self/fd").iterdir())) < descriptors + PER_TEST, "descriptors are closed"
