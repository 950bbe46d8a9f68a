"""One open file and how far it has been read: the bytes of one generation of a source."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from pathlib import Path

from verlwatch.shell.identity import HEAD_BYTES, MARK_BYTES, Fingerprint, Position, digest
from verlwatch.shell.printable import encodable

Identity = tuple[int, int]  # device, inode

LINGER_S = 5.0  # a replaced file must have been silent so long before the next one is read
LINGER_MAX_S = 60.0  # a replaced file that never falls silent holds the next one up no longer
_TAIL_BYTES = 1 << 20
_HOLE_BYTES = 1 << 20  # NUL bytes skipped at once at the beginning of a file


class ChangedError(Exception):
    """The bytes before the offset are not those that were read: the file has been truncated or written anew."""


class NotRegularError(OSError):
    """The path names a directory, FIFO, socket or device."""


class Generation:
    """An open regular file, read in order from ``offset``; ``number`` is the generation, given when its turn comes.

    ``copy`` says that the file was copied before its original was truncated: no writer has it open.
    """

    __slots__ = (
        "_head",
        "_head_digest",
        "_seen_ns",
        "changed_ns",
        "copy",
        "fd",
        "identity",
        "linked",
        "mark",
        "number",
        "offset",
        "path",
        "read_at",
        "size",
        "superseded_at",
    )

    def __init__(self, path: str, now: float) -> None:
        """Opens without waiting for a FIFO's writer; OSError, NotRegularError for anything but a regular file."""
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        status = os.fstat(self.fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self.fd)
            raise NotRegularError(errno.EINVAL, kind(status.st_mode), path)
        self.path = os.path.realpath(path)
        self.identity = (status.st_dev, status.st_ino)
        self.number = 0
        self.copy = False
        self.read_at = now
        self.superseded_at: float | None = None
        self.seen(status)
        self.changed_ns = self._seen_ns
        self.restart()

    def close(self) -> None:
        os.close(self.fd)

    def silent(self, now: float) -> bool:
        """Whether no writer seems to hold a file any longer that has been replaced."""
        if self.superseded_at is None:
            self.superseded_at = now
        since = max(self.read_at, self.superseded_at)
        return self.copy or now - since >= LINGER_S or now - self.superseded_at >= LINGER_MAX_S

    def shift(self, seconds: float) -> None:
        """The clock was set on by so much, or back: that is no silence."""
        self.read_at += seconds
        if self.superseded_at is not None:
            self.superseded_at += seconds

    def restart(self) -> None:
        """Reads the file as new content, from its first byte."""
        self.offset = 0
        self.mark = b""
        self._head = b""
        self._head_digest = ""

    def resume(self, at: Position | Fingerprint) -> None:
        """Takes up a position that this file matches."""
        self.skip_to(at.offset)

    def skip_to(self, offset: int) -> None:
        """Goes on at a byte as if all before it had been read."""
        size = min(MARK_BYTES, offset)
        self.offset = offset
        self.mark = os.pread(self.fd, size, offset - size)
        self._head = os.pread(self.fd, min(HEAD_BYTES, offset), 0)
        self._head_digest = digest(self._head)

    def skip_to_end(self) -> None:
        """Goes on behind the last whole line: what is written of the next one belongs to what comes."""
        size = min(_TAIL_BYTES, self.size)
        self.skip_to(self.size - size + (os.pread(self.fd, size, self.size - size).rfind(b"\n") + 1 or size))

    def seen(self, status: os.stat_result) -> None:
        """Notes what a stat of the path said, which names this file."""
        self._seen_ns = status.st_mtime_ns
        self._note(status)

    def look(self) -> None:
        """Stats the open file.  Late writes do not make it newer than the files that took its place."""
        self._note(os.fstat(self.fd))

    def _note(self, status: os.stat_result) -> None:
        self.size = status.st_size
        self.linked = status.st_nlink > 0

    def copied_from(self, other: Generation) -> bool:
        """Whether the other file begins with all that this one holds."""
        self.look()
        size = min(MARK_BYTES, self.size)
        return all(
            os.pread(self.fd, count, begin) == os.pread(other.fd, count, begin)
            for begin, count in ((0, min(HEAD_BYTES, self.size)), (self.size - size, size))
        )

    def position(self, finished: tuple[Fingerprint, ...]) -> Position:
        """Where reading stands, with the proof to find it again."""
        return Position(
            self.number,
            self.offset,
            self.mark,
            *self.identity,
            encodable(self.path),
            len(self._head),
            self._head_digest,
            self.changed_ns,
            finished,
        )

    def read(self, size: int) -> bytes:
        """The next bytes, at most ``size``; empty at the end of the file.

        The mark and the data come from one read, so no writer can change the file between check and use.

        Raises:
            ChangedError: the file no longer holds the mark.
            OSError: as pread.
        """
        data = os.pread(self.fd, len(self.mark) + size, self.offset - len(self.mark))
        if not data.startswith(self.mark):
            raise ChangedError
        if data:
            self.changed_ns = self._seen_ns  # of a time at which the content is known to have been this one
        fresh = data[len(self.mark) :]
        if not self.offset and fresh.startswith(b"\0"):
            return self.read(size) if self._skip_hole() else b""
        if len(fresh) < size:
            fresh = fresh.rstrip(b"\0")  # a network file system shows NULs for what it has not fetched yet
        if fresh:
            self._advance(fresh)
        return fresh

    def _advance(self, fresh: bytes) -> None:
        self.offset += len(fresh)
        self.mark = (self.mark + fresh[-MARK_BYTES:])[-MARK_BYTES:]
        if len(self._head) < HEAD_BYTES:
            self._head += fresh[: HEAD_BYTES - len(self._head)]
            self._head_digest = digest(self._head)

    def _skip_hole(self) -> bool:
        """Moves past NULs at the beginning: a writer without O_APPEND goes on at its old offset after a truncation."""
        try:
            begin = os.lseek(self.fd, 0, os.SEEK_DATA)
        except OSError:  # the whole file is a hole, or the file system does not tell
            begin = 0
        data = os.pread(self.fd, _HOLE_BYTES, begin)
        text = data.lstrip(b"\0")
        if not text and len(data) < _HOLE_BYTES:
            return False
        self.offset = begin + len(data) - len(text)
        self.mark = bytes(min(MARK_BYTES, self.offset))
        self._head = bytes(min(HEAD_BYTES, self.offset))
        self._head_digest = digest(self._head)
        return True


class Known:
    """The files that the sources of one tail hold open or have finished: none is read twice under two names."""

    def __init__(self) -> None:
        self._held: dict[Identity, tuple[str, Generation]] = {}
        self._finished: dict[int, dict[Fingerprint, None]] = {}

    def holder(self, identity: Identity) -> str | None:
        """The source that holds a file."""
        return self._held[identity][0] if identity in self._held else None

    def open(self, path: str, holder: str, now: float) -> Generation:
        """Opens a regular file for a source; OSError."""
        generation = Generation(path, now)
        self._held[generation.identity] = (holder, generation)
        return generation

    def open_beside(self, path: str, holder: str, now: float) -> Generation | None:
        """Opens a file unless some source holds it; None if so, or if it cannot be read."""
        status = regular(path)
        if status is None or (status.st_dev, status.st_ino) in self._held:
            return None
        try:
            return self.open(path, holder, now)
        except OSError:
            return None

    def close(self, generation: Generation) -> None:
        self._held.pop(generation.identity, None)
        generation.close()

    def close_all(self, holder: str, but: Collection[Generation | None] = ()) -> None:
        """Closes every file of a source, those that an error left behind too."""
        for name, generation in list(self._held.values()):
            if name == holder and generation not in but:
                self.close(generation)

    def shift(self, seconds: float) -> None:
        """The clock was set on by so much, or back."""
        for _, generation in self._held.values():
            generation.shift(seconds)

    def remember(self, finished: tuple[Fingerprint, ...]) -> None:
        """Notes generations that were read to their end."""
        for item in finished:
            self._finished.setdefault(item.inode, {})[item] = None

    def finished(self, generation: Generation) -> Fingerprint | None:
        """How far the file was read before, under whatever name."""
        candidates = self._finished.get(generation.identity[1], ())
        matching = [item for item in candidates if item.matches(generation.fd)]
        return max(matching, key=lambda item: item.offset, default=None)


def regular(path: str) -> os.stat_result | None:
    """What the path names, if that is a regular file."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def kind(mode: int) -> str:
    """What a path that is no regular file is, in words."""
    for is_kind, word in (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if is_kind(mode):
            return word
    return "a device"
