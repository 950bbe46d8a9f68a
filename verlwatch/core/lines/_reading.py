"""Physical lines -> records, with the few that wait for further lines.

A line may begin a Block (`_line`): it stays open until it has what it waits for, or its writer says something else, or
for so many further lines, bytes and seconds.  The pieces into which a container runtime has cut a line wait likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

from verlwatch.core.lines._context import Context
from verlwatch.core.lines._counts import Counts
from verlwatch.core.lines._envelope import messages
from verlwatch.core.lines._line import Block, Fact, Kind, Line, Numbers, Said, Take
from verlwatch.core.lines._search import Index
from verlwatch.core.lines._shipping import Shipped, unshipped
from verlwatch.core.types import Event, Origin, Record, Samples, Writer

OPEN_S = 2.0
OPEN_WRITERS = 128  # all ranks of a run may fail at once
OPEN_TEXT = 1 << 17  # a longer line does not wait: each continuation may look at all of it again
PIECES_BYTES = 1 << 17  # of a line that a container runtime has cut
MESSAGES = 2000  # of one physical line; more are the updates of a bar, or made up

_SAMPLE = 300
_EXCERPT = 300
_R = TypeVar("_R")


class Place(NamedTuple):
    """Where a physical line stands: its first byte, where its records are certain, the up to 64 bytes before it."""

    start: int
    end: int
    mark: bytes


@dataclass(slots=True)
class Open:
    """A line that waits for others, since ``since`` and for ``lines`` further lines.

    ``doubted`` is what kinds have read in lines that the block may prove to be something else.
    """

    kind: Kind
    line: Line
    block: Block
    place: Place
    since: float
    lines: int = 0
    doubted: list[tuple[Kind, Line, Said]] = field(default_factory=list)


@dataclass(slots=True)
class Pieces:
    """A line that a container runtime has cut, as far as it came."""

    place: Place
    since: float
    texts: list[str] = field(default_factory=list)
    size: int = 0


def is_utf8(raw: bytes) -> bool:
    """Whether the bytes can be decoded."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


class Reading:
    """Turns the physical lines of one source, given in order, into records."""

    def __init__(self, source: str, generation: int, index: Index, counts: Counts, context: str = "") -> None:
        self.context = Context(source, context)
        self._source = source
        self._generation = generation
        self.index = index
        self._counts = counts
        self._open: dict[Writer, Open] = {}  # oldest first
        self._pieces: dict[str, Pieces] = {}  # by stream, oldest first

    @property
    def waits(self) -> bool:
        """Whether any line waits for others."""
        return bool(self._open or self._pieces)

    @property
    def oldest(self) -> Open | Pieces | None:
        """What has waited longest."""
        waiting = next(iter(self._open.values()), None)
        pieces = next(iter(self._pieces.values()), None)
        if waiting is None or pieces is None:
            return waiting or pieces
        return waiting if waiting.place.start < pieces.place.start else pieces

    def line(
        self, raw: bytes, place: Place, now: float, literals: set[int] | None = None, *, cut: bool | None = None
    ) -> list[Record]:
        """Reads one physical line without its newline; ``cut``: it is known to miss its end.

        ``literals`` are those of the index that stand in it, where the caller knows them.
        """
        records: list[Record] = []
        if self._open:
            self._let_pass(place, records)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            self._counts.undecodable += 1
            text = raw.decode(errors="replace")
        shipped = unshipped(text)
        if shipped.goes_on or shipped.stream in self._pieces:
            self._piece(shipped, place, now, records)
        elif shipped.unpacked or literals is None:
            raw = shipped.text.encode(errors="replace")
            self._text(shipped.text, self.index.fitting(self.index.look(raw), raw), place, now, records, cut=cut)
        else:
            self._text(shipped.text, self.index.fitting(literals, raw), place, now, records, cut=cut)
        return records

    def close_due(self, now: float, end: int) -> list[Record]:
        """Closes what has waited OPEN_S, oldest first and none before an older one."""
        records: list[Record] = []
        while (oldest := self.oldest) and oldest.since + OPEN_S <= now:
            self._give_up(oldest, end, records)
        return records

    def close_all(self, end: int) -> list[Record]:
        """Closes everything that waits."""
        records: list[Record] = []
        while oldest := self.oldest:
            self._give_up(oldest, end, records)
        return records

    def _give_up(self, waiting: Open | Pieces, end: int, records: list[Record]) -> None:
        if isinstance(waiting, Open):
            self._close(waiting.line.writer, end, records)
            return
        stream = next(stream for stream, pieces in self._pieces.items() if pieces is waiting)
        self._joined(stream, end, waiting.since, records, cut=True)

    def _piece(self, shipped: Shipped, place: Place, now: float, records: list[Record]) -> None:
        """Takes a piece of a line that a container runtime has cut, and reads the line once it is whole."""
        pieces = self._pieces.setdefault(shipped.stream, Pieces(place, now))
        pieces.texts.append(shipped.text)
        pieces.size += len(shipped.text)
        if not shipped.goes_on:
            self._joined(shipped.stream, place.end, now, records)
        elif pieces.size > PIECES_BYTES:
            self._joined(shipped.stream, place.end, now, records, cut=True)

    def _joined(self, stream: str, end: int, now: float, records: list[Record], *, cut: bool | None = None) -> None:
        pieces = self._pieces.pop(stream)
        text = "".join(pieces.texts)
        raw = text.encode(errors="replace")
        kinds = self.index.fitting(self.index.look(raw), raw)
        self._text(text, kinds, pieces.place._replace(end=end), now, records, cut=cut)

    def _let_pass(self, place: Place, records: list[Record]) -> None:
        for waiting in list(self._open.values()):
            waiting.lines += 1
            block = waiting.block
            if waiting.lines > block.LINES or place.start - waiting.place.end > block.BYTES:
                self._close(waiting.line.writer, place.end, records)

    def _text(
        self,
        text: str,
        kinds: list[Kind],
        place: Place,
        now: float,
        records: list[Record],
        *,
        cut: bool | None,
    ) -> None:
        """Reads a physical line freed of what shippers add; only ``kinds`` may read it."""
        if not kinds and not self._open:
            return
        said = messages(text, cut=cut, writer=self.context.writer)
        if len(said) > MESSAGES:
            self._counts.cut_lines += 1
            del said[MESSAGES:]
        for line in said:
            self._message(line, kinds, place, now, records)

    def _message(self, line: Line, kinds: list[Kind], place: Place, now: float, records: list[Record]) -> None:
        kind, said = self._parsed(line, kinds)
        waiting = self._open.get(line.writer) if self._open and not line.is_bar else None
        take = self._taken(waiting, line, said) if waiting else Take.IGNORED
        if take is Take.DOUBTED and waiting:
            if kind is not None and said is not None:
                waiting.doubted.append((kind, line, said))
            return
        if take in {Take.DONE, Take.ENDED}:
            self._close(line.writer, place.end, records, proper=take is Take.DONE)
        if kind is None or said is None:
            return
        if isinstance(said, Numbers | Fact):
            records.append(self._record(kind, line, said, place.end))
        elif take not in {Take.TAKEN, Take.DONE}:  # else the block that took the line tells of it
            self._begin(Open(kind, line, said, place, now), records)

    def _begin(self, waiting: Open, records: list[Record]) -> None:
        writer, end = waiting.line.writer, waiting.place.end
        if writer in self._open:
            self._close(writer, end, records)
        elif len(self._open) >= OPEN_WRITERS:
            self._close(next(iter(self._open)), end, records)
        self._open[writer] = waiting
        if len(waiting.line.text) > OPEN_TEXT:
            self._close(writer, end, records)

    def _taken(self, waiting: Open, line: Line, said: Said | None) -> Take:
        return self._guarded(waiting.kind, line, partial(waiting.block.take, line, said)) or Take.IGNORED

    def _close(self, writer: Writer, end: int, records: list[Record], *, proper: bool = False) -> None:
        """Ends a block; what it doubted was meant so, unless it has found its proper end."""
        waiting = self._open.pop(writer)
        told = [(waiting.kind, waiting.line, waiting.block), *([] if proper else waiting.doubted)]
        for kind, line, read in told:
            said = read if isinstance(read, Numbers | Fact) else self._guarded(kind, line, read.close)
            if said is not None:
                records.append(self._record(kind, line, said, end))

    def _parsed(self, line: Line, kinds: Iterable[Kind]) -> tuple[Kind, Said] | tuple[None, None]:
        """The first of ``kinds`` that reads a message."""
        for kind in kinds:
            said = self._guarded(kind, line, partial(kind.parse, line))
            if said is not None:
                return kind, said
        return None, None

    def _guarded(self, kind: Kind, line: Line, call: Callable[[], _R]) -> _R | None:
        """Calls into a kind; one that raises costs this message and is counted, nothing else."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the guarded border: a fault in one kind must not end the others
            self._counts.broken += 1
            self._counts.sample = self._counts.sample or f"{kind.NAME}: {error!a} in {line!a}"[:_SAMPLE]
            return None

    def _record(self, kind: Kind, line: Line, said: Numbers | Fact, end: int) -> Record:
        origin = Origin(self._source, self._generation, end, line.writer, kind.NAME)
        if isinstance(said, Numbers):
            return self.context.heed(Samples(origin, said.step, said.values, said.decimals))
        attributes = {**said.attributes, "repeated": line.repeated} if line.repeated else said.attributes
        excerpt = (said.excerpt or line.text)[:_EXCERPT]
        return self.context.heed(Event(origin, said.name, attributes, said.severity, excerpt))
