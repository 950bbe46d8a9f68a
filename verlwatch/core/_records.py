"""What is read: bytes, what lines tell in them, where reading stands.  Part of `core.types`, which has every noun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Severity = Literal["info", "warning", "critical"]
Scope = tuple[tuple[str, str], ...]


class Writer(NamedTuple):
    """The process that printed a line: its identity is ``(pid, ip)``, its name is what Ray's prefix calls it.

    ``pid`` is 0 and ``name`` empty where the line has no prefix (the driver's own stdout, a worker file).
    ``ip`` is empty for a process on the driver's own node, as Ray prints it.
    """

    name: str = ""
    pid: int = 0
    ip: str = ""


NOBODY = Writer()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of one source, in the order in which the file holds them.

    ``offset`` is the position of ``data[0]`` within this ``generation`` of the source.  ``token`` is opaque to the
    core: what the reader of files needs to find this generation again after a restart; it comes back in the Cursor.
    ``run`` is the name that the configuration gives the source's run; empty where the file names it.  What stands
    before ``history_to`` was there before anybody watched: it teaches the baselines, and opens no incident to people.
    """

    source: str
    generation: int
    offset: int
    data: bytes
    token: str = ""
    run: str = ""
    history_to: int = 0


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where reading of a source resumes after a restart, committed together with everything derived from it.

    Lexing resumes at ``reread_from``, the start of the oldest construct still open (half line, cut step line);
    records that end at or before ``applied_to`` are dropped there as already judged.  ``mark`` is the up to 64 bytes
    before ``reread_from``: a file whose bytes differ there is another file, whatever its name and inode say.
    ``history_to`` is the Chunk's, ``context`` what the lines before mean for those that follow.
    """

    source: str
    generation: int
    reread_from: int
    applied_to: int
    mark: bytes = b""
    token: str = ""
    history_to: int = 0
    context: str = ""


class Origin(NamedTuple):
    """Where a record came from; ``end`` is the byte offset just behind it, ``kind`` the line kind that read it."""

    source: str
    generation: int
    end: int
    writer: Writer
    kind: str


class Samples(NamedTuple):
    """Numbers of one step, under the names the log itself uses.

    A value that was missing, cut or unreadable is absent: never zero.  ``decimals`` is 3 where the log rounds to
    ``.3f`` (verl up to 0.4.1), None where it prints full floats.  ``scope`` labels whose numbers they are (host,
    rank, gpu); empty = the run.
    """

    origin: Origin
    step: int
    values: Mapping[str, float]
    decimals: int | None = None
    scope: Scope = ()
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An occurrence that a line tells of: ``name`` says which, ``attributes`` carry what it says."""

    origin: Origin
    name: str
    attributes: Mapping[str, str | int | float]
    severity: Severity = "info"
    excerpt: str = ""
    scope: Scope = ()
    at: float | None = None


Record = Samples | Event


@dataclass(frozen=True, slots=True)
class Extract:
    """Records of one source in their order: all that goes from who reads to who judges, on one host or between two.

    ``run`` is the run that the source belongs to; ``history`` says that all of it was there before anybody watched.
    """

    source: str
    run: str
    records: tuple[Record, ...]
    history: bool = False
