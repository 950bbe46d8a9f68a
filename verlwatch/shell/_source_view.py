"""How a source stands, for people: its states and what to do about each trouble."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Literal

SourceState = Literal["waiting", "reading", "live", "unreadable", "not a regular file", "same file", "stalled"]

_ADVICE = {
    errno.EACCES: "give the user that verlwatch runs as the right to read it and to enter its directories",
    errno.EPERM: "give the user that verlwatch runs as the right to read it",
    errno.EMFILE: "raise the limit of open files (LimitNOFILE= in the unit, ulimit -n in a shell)",
    errno.ENFILE: "the host has too many files open; raise fs.file-max",
    errno.ESTALE: "the file server has replaced the file; it is opened again",
    errno.EIO: "the device or the file server fails; see the kernel's log",
}


@dataclass(frozen=True, slots=True)
class SourceView:
    """How a source stands.

    ``state``: ``waiting`` (nothing there yet), ``reading`` (catching up), ``live`` (at the end), ``unreadable``,
    ``not a regular file``, ``same file`` (another source reads it), ``stalled`` (the file system does not answer).
    ``readable`` is False where nothing can be read now.  ``position`` and ``size`` are bytes of this ``generation``;
    ``changed_at`` is when the file was last seen to have been written.
    """

    source: str
    run: str
    state: SourceState
    readable: bool = True
    error: str | None = None
    position: int = 0
    size: int | None = None
    generation: int = 0
    last_read_at: float | None = None
    changed_at: float = 0.0


def complaint(name: str, error: OSError) -> str:
    """What is wrong with a source and what to do."""
    return f"{name}: {error.strerror or error}; {_ADVICE.get(error.errno or 0, 'it is tried again')}"
