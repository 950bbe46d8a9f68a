"""Recognise the content of a file across renames, copies, truncation, reused inodes and restarts.

A path names different contents in turn; each content is one *generation* of its source.  Where reading of a
generation stands is a `Position`.  Neither name, size nor inode tells whether a file still holds that generation: a
rerun truncates the same inode, ext4 hands a freed inode out again at once, a copy has a new one, and two runs of one
script begin with the same kilobyte.  So a position is taken up again only if

- the stored head (up to 1 KiB) is a prefix of the file,
- the file is at least as long as the offset, and
- the (up to) 64 bytes before the offset are the stored ones, the mark.

Device and inode only say where to look first.  Head and mark are kept as digests where they are stored, so that no
text of a log lies in a token.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from verlwatch.core.types import Cursor

HEAD_BYTES = 1024
MARK_BYTES = 64
REMEMBERED = 8  # finished generations told in a token; log rotation rarely keeps more files
_SIBLINGS = 64  # files beside a path that are looked at, the newest ones

_NUMBER = re.compile(r"\.(\d{1,4})")
_SUFFIX = r"(?:\.\d[\d.T:_-]*|-\d{8}[\d.T:_-]*|\.old|\.bak)"
_PACKED = r"(?:\.(?:gz|xz|zst|bz2|lz4|Z))"
_ROTATED = re.compile(_SUFFIX)
_ROTATED_NAME = re.compile(rf"(.+?)(?:{_SUFFIX}{_PACKED}?|{_PACKED})")


def digest(data: bytes) -> str:
    """Twelve bytes of BLAKE2b, as hex: enough to tell heads and marks apart, too little to tell what they say."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


class Fingerprint(NamedTuple):
    """Proof of a generation that has been read to its end: its head and the bytes before the final offset."""

    inode: int
    head_size: int
    offset: int
    digest: str

    def matches(self, fd: int) -> bool:
        """Whether the open file is, or is a copy of, that generation."""
        size = min(MARK_BYTES, self.offset)
        mark = os.pread(fd, size, self.offset - size)
        return len(mark) == size and _proof(digest(os.pread(fd, self.head_size, 0)), mark) == self.digest


def _proof(head: str, mark: bytes) -> str:
    return digest(head.encode() + mark)


@dataclass(frozen=True, slots=True)
class Position:
    """How far a generation has been read, and what proves that a file holds it.

    ``head`` is the digest of the first ``head_size`` bytes, ``mark`` the (up to) 64 bytes before ``offset``, ``path``
    where the file was opened with symbolic links resolved, ``changed_ns`` its time of modification just before the
    last read (the file system's clock).  ``finished`` are the generations of the source before this one.
    """

    generation: int
    offset: int
    mark: bytes = b""
    device: int = -1
    inode: int = -1
    path: str = ""
    head_size: int = 0
    head: str = ""
    changed_ns: int | None = None
    finished: tuple[Fingerprint, ...] = ()

    def matches(self, fd: int) -> bool:
        """Whether the open file holds this generation up to the offset; OSError as from pread."""
        if not (self.head_size or self.mark):
            return False
        if self.head_size and digest(os.pread(fd, self.head_size, 0)) != self.head:
            return False
        if not self.mark:
            return os.fstat(fd).st_size >= self.offset
        return os.pread(fd, len(self.mark), self.offset - len(self.mark)) == self.mark

    def with_finished(self) -> tuple[Fingerprint, ...]:
        """The finished generations, this one included (if anything of it was read)."""
        if not self.head_size or not self.offset or len(self.mark) != min(MARK_BYTES, self.offset):
            return self.finished
        this = Fingerprint(self.inode, self.head_size, self.offset, _proof(self.head, self.mark))
        return (*(item for item in self.finished if item != this), this)[-REMEMBERED:]

    def token(self) -> str:
        """What a cursor does not hold already, as JSON; numbers that may pass 2**63 are text."""
        return orjson.dumps(
            {
                "device": str(self.device),
                "inode": str(self.inode),
                "path": self.path,
                "head_size": self.head_size,
                "head": self.head,
                "changed_ns": self.changed_ns,
                "finished": [[str(item.inode), *item[1:]] for item in self.finished],
            },
        ).decode()


def position_of(cursor: Cursor) -> Position:
    """The position a cursor stands for.  With a token that cannot be read, the mark alone must prove the file."""
    bare = Position(cursor.generation, cursor.reread_from, cursor.mark)
    try:
        told: dict[str, Any] = orjson.loads(cursor.token)
        return replace(
            bare,
            device=int(told["device"]),
            inode=int(told["inode"]),
            path=str(told["path"]),
            head_size=int(told["head_size"]),
            head=str(told["head"]),
            changed_ns=None if told["changed_ns"] is None else int(told["changed_ns"]),
            finished=tuple(
                Fingerprint(int(inode), int(head_size), int(offset), str(proof))
                for inode, head_size, offset, proof in told["finished"]
            ),
        )
    except (ValueError, KeyError, TypeError):
        return bare


def rotated_from(path: str) -> str | None:
    """The name a rotated file had before: ``train.log`` for ``train.log.1``, ``train.log-20240521.gz``, else None."""
    found = _ROTATED_NAME.fullmatch(path)
    return found.group(1) if found else None


def siblings(path: str, inode: int) -> list[str]:
    """Files beside ``path`` that may hold what it held before, oldest first.

    Those are its rotated files (not the compressed ones), then any file with that inode, whatever its name.  Numbers
    count back as logrotate's do (``.1`` is the newest), anything else sorts by name as dates do.
    """
    folder, name = os.path.split(path)
    rotated: list[tuple[int, str, str]] = []
    moved: list[str] = []
    try:
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.name == name:
                    continue
                suffix = entry.name.removeprefix(name)
                if suffix != entry.name and _ROTATED.fullmatch(suffix):
                    number = _NUMBER.fullmatch(suffix)
                    rotated.append((-int(number[1]) if number else -10_000, suffix, entry.path))
                elif entry.inode() == inode:
                    moved.append(entry.path)
    except OSError:
        return []
    return [*(entry for _, _, entry in sorted(rotated)[-_SIBLINGS:]), *moved]
