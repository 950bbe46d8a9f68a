"""Physical lines -> records, with the few lines that wait for their end.

A step line that may have lost its end stays open until a message of the same writer proves to be that end, or until
another line of a kind comes from that writer, or for so many further lines, bytes and seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from verlwatch.core.lines._counts import Counts
from verlwatch.core.lines._envelope import messages
from verlwatch.core.lines._line import Fact, Kind, Line, Numbers
from verlwatch.core.types import Event, Origin, Record, Samples, Writer

OPEN_LINES = 64
OPEN_BYTES = 1 << 16
OPEN_S = 2.0
OPEN_WRITERS = 16
OPEN_TEXT = 1 << 17  # a longer line does not wait: each continuation looks at all of it again
MESSAGES = 2000  # of one physical line; more are the updates of a bar, or made up

_SAMPLE = 300
_EXCERPT = 300
_A = TypeVar("_A")
_R = TypeVar("_R")


class Place(NamedTuple):
    """Where a physical line stands: its first byte, where its records are certain, the up to 64 bytes before it."""

    start: int
    end: int
    mark: bytes


@dataclass(slots=True)
class Open:
    """A line that waits for its end, since ``since`` and for ``lines`` further lines."""

    kind: Kind
    line: Line
    is_rest: Callable[[str], bool]
    place: Place
    since: float
    lines: int = 0


class _Fitting:
    """Those of ``kinds`` that have a needle in ``raw``, searched for no further than somebody asks."""

    def __init__(self, kinds: Sequence[Kind], raw: bytes) -> None:
        self._found: list[Kind] = []
        self._raw = raw
        self._left = iter(kinds)

    def __bool__(self) -> bool:
        for _ in self:
            return True
        return False

    def __iter__(self) -> Iterator[Kind]:
        yield from self._found
        for kind in self._left:
            for needle in kind.NEEDLES:
                if needle in self._raw:
                    self._found.append(kind)
                    yield kind
                    break


def is_utf8(raw: bytes) -> bool:
    """Whether the bytes can be decoded."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


class Reading:
    """Turns the physical lines of one source, given in order, into records."""

    def __init__(self, source: str, generation: int, kinds: Sequence[Kind], counts: Counts) -> None:
        self._source = source
        self._generation = generation
        self._kinds = kinds
        self._counts = counts
        self._open: dict[Writer, Open] = {}  # oldest first

    @property
    def waits(self) -> bool:
        """Whether any line waits for its end."""
        return bool(self._open)

    @property
    def oldest(self) -> Open | None:
        """The line that has waited longest."""
        return next(iter(self._open.values()), None)

    def line(self, raw: bytes, place: Place, now: float, *, cut: bool | None = None) -> list[Record]:
        """Reads one physical line without its newline; ``cut``: it is known to miss its end."""
        records: list[Record] = []
        if self._open:
            self._let_pass(place, records)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            self._counts.undecodable += 1
            text = raw.decode(errors="replace")
        kinds = _Fitting(self._kinds, raw)
        if not self._open and not kinds:
            return records
        said = messages(text, cut=cut)
        if len(said) > MESSAGES:
            self._counts.cut_lines += 1
            del said[MESSAGES:]
        for line in said:
            self._message(line, kinds, place, now, records)
        return records

    def close_due(self, now: float, end: int) -> list[Record]:
        """Closes what has waited OPEN_S, oldest first and none before an older one."""
        records: list[Record] = []
        while (oldest := self.oldest) and oldest.since + OPEN_S <= now:
            self._close(oldest.line.writer, end, records)
        return records

    def close_all(self, end: int) -> list[Record]:
        """Closes everything that waits."""
        records: list[Record] = []
        for writer in list(self._open):
            self._close(writer, end, records)
        return records

    def _let_pass(self, place: Place, records: list[Record]) -> None:
        for waiting in list(self._open.values()):
            waiting.lines += 1
            if waiting.lines > OPEN_LINES or place.start - waiting.place.end > OPEN_BYTES:
                self._close(waiting.line.writer, place.end, records)

    def _message(self, line: Line, kinds: Iterable[Kind], place: Place, now: float, records: list[Record]) -> None:
        kind, said = self._parsed(line, kinds)
        waiting = self._open.get(line.writer)
        if waiting and not line.is_bar:
            if said is None:
                self._go_on(waiting, line, place, records)
            else:
                self._close(line.writer, place.end, records)
        if kind is None or said is None:
            return
        if isinstance(said, Numbers) and said.is_rest and len(line.text) <= OPEN_TEXT:
            if len(self._open) >= OPEN_WRITERS:
                self._close(next(iter(self._open)), place.end, records)
            self._open[line.writer] = Open(kind, line, said.is_rest, place, now)
        else:
            records.append(self._record(kind, line, said, place.end))

    def _go_on(self, waiting: Open, line: Line, place: Place, records: list[Record]) -> None:
        """Takes a message that no kind reads as the end of a line that waits, if it fits.

        Ray publishes the rest of a cut line as its writer's next line: an empty one says that nothing was cut.
        """
        if line.text:
            if not self._guarded(waiting.kind, waiting.is_rest, line.text):
                return
            whole = line._replace(text=waiting.line.text + line.text)
        elif line.writer.pid:
            whole = waiting.line._replace(cut=False)
        else:
            return
        said = self._guarded(waiting.kind, waiting.kind.parse, whole)
        if not isinstance(said, Numbers):
            return
        if said.is_rest is None:
            del self._open[line.writer]
            records.append(self._record(waiting.kind, whole, said, place.end))
        elif line.text:
            waiting.line, waiting.is_rest = whole, said.is_rest

    def _close(self, writer: Writer, end: int, records: list[Record]) -> None:
        waiting = self._open.pop(writer)
        line = waiting.line._replace(cut=True)
        said = self._guarded(waiting.kind, waiting.kind.parse, line)
        if said is not None:
            records.append(self._record(waiting.kind, line, said, end))

    def _parsed(self, line: Line, kinds: Iterable[Kind]) -> tuple[Kind, Numbers | Fact] | tuple[None, None]:
        """The first of ``kinds`` that reads a message."""
        for kind in kinds:
            said = self._guarded(kind, kind.parse, line)
            if said is not None:
                return kind, said
        return None, None

    def _guarded(self, kind: Kind, call: Callable[[_A], _R], argument: _A) -> _R | None:
        """Calls into a kind; one that raises costs this message and is counted, nothing else."""
        try:
            return call(argument)
        except Exception as error:  # noqa: BLE001 - the guarded border: a fault in one kind must not end the others
            self._counts.broken += 1
            self._counts.sample = self._counts.sample or f"{kind.NAME}: {error!a} in {argument!a}"[:_SAMPLE]
            return None

    def _record(self, kind: Kind, line: Line, said: Numbers | Fact, end: int) -> Record:
        origin = Origin(self._source, self._generation, end, line.writer, kind.NAME)
        if isinstance(said, Numbers):
            return Samples(origin, said.step, said.values, said.decimals)
        attributes = {**said.attributes, "repeated": line.repeated} if line.repeated else said.attributes
        return Event(origin, said.name, attributes, excerpt=line.text[:_EXCERPT])
