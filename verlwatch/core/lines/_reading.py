"""Physical lines -> records, with the few that wait for further lines.

A line may begin a Block (`_line`): it stays open until it has what it waits for, or its writer says something else, or
for so many further lines, bytes and seconds.  The pieces into which a container runtime has cut a line wait likewise.
What a block doubts is read all the same, blocks among it too, and comes out right if the block turns out to be none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import TypeVar

from verlwatch.core.lines._context import Context
from verlwatch.core.lines._counts import Counts
from verlwatch.core.lines._envelope import MESSAGES, Prefixes, messages, plain
from verlwatch.core.lines._line import Fact, Kind, Line, Numbers, Said, Take
from verlwatch.core.lines._search import Index
from verlwatch.core.lines._secrets import blanked
from verlwatch.core.lines._shipping import Shipped, unshipped
from verlwatch.core.lines._waiting import Heard, Open, Pieces, Place, Told
from verlwatch.core.types import NOBODY, Event, Origin, Record, Samples, Writer

OPEN_S = 2.0
BUSY_BYTES = 1 << 16  # of what is read again for the sake of lines that wait no longer
OPEN_WRITERS = 128  # all ranks of a run may fail at once
OPEN_TEXT = 1 << 17  # a longer line does not wait: each continuation may look at all of it again

_DOUBTS = 3  # so many blocks are heard one inside another, if each doubts what follows
_STREAMS = frozenset({"stdout", "stderr"})  # others count as one
_BOM = "\ufeff"
_SAMPLE = 300
_EXCERPT = 300
_NEVER = 1 << 62
_R = TypeVar("_R")


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
        self._prefixes = Prefixes()
        self._open: dict[Writer, Open] = {}
        self._pieces: dict[str, Pieces] = {}  # by stream
        self._busy: Place | None = None  # the line since which something has waited all the time
        self._at = 0
        self._number = 0  # of the line; while any waits, each is given
        self._due = (_NEVER, _NEVER)  # number and byte of a line before which nothing reaches its limit

    @property
    def waits(self) -> bool:
        """Whether any line waits for others."""
        return bool(self._open or self._pieces)

    @property
    def oldest(self) -> Open | Pieces | None:
        """What begins before all others that wait: a line that came in pieces may be older than those before it."""
        return min(self._waiting(), key=_start, default=None)

    @property
    def reread_from(self) -> Place | None:
        """Where to read again for what waits; None if nothing does.

        Lines that began before it, and wait no longer, have taken lines behind it: they are read again as well, unless
        much has gone by since, or time has closed them.
        """
        oldest = self.oldest
        if oldest is None:
            return None
        if self._busy is None or self._at - self._busy.start > BUSY_BYTES:
            return oldest.place
        return self._busy

    def line(
        self, raw: bytes, place: Place, now: float, literals: set[int] | None = None, *, cut: bool | None = None
    ) -> list[Record]:
        """Reads one physical line without its newline; ``cut``: it is known to miss its end.

        ``literals`` are those of the index that stand in it, where the caller knows them.
        """
        records: list[Record] = []
        self._number += 1
        self._at = place.end
        if self._number > self._due[0] or place.start > self._due[1]:
            self._let_pass(place, records)
        if not self.waits:
            self._busy = place
        if not literals and literals is not None and cut is None and self._is_plain(raw, place, now, records):
            return records
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            self._counts.undecodable += 1
            text = raw.decode(errors="replace")
        if not place.start:
            text = text.removeprefix(_BOM)
        shipped = unshipped(text)
        stream = shipped.stream if shipped.stream in _STREAMS else shipped.stream and "other"
        if shipped.goes_on or stream in self._pieces:
            self._piece(shipped, stream, place, now, records)
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
            self._busy = None  # it must not be read again
        return records

    def close_all(self, end: int) -> list[Record]:
        """Closes everything that waits."""
        records: list[Record] = []
        while oldest := self.oldest:
            self._give_up(oldest, end, records)
        return records

    def _waiting(self) -> Iterable[Open | Pieces]:
        return chain(self._open.values(), self._pieces.values())

    def _let_pass(self, place: Place, records: list[Record]) -> None:
        """Closes what waits no longer, oldest first."""
        for waiting in sorted(self._waiting(), key=_start):
            now: Open | Pieces | None = waiting
            while now and self._is_over(now, place):
                self._give_up(now, place.end, records)
                now = self._open.get(now.line.writer) if isinstance(now, Open) else None
        self._due = _NEVER, _NEVER
        for waiting in self._waiting():
            self._expect(waiting)

    def _is_over(self, waiting: Open | Pieces, place: Place) -> bool:
        return self._number > waiting.last_line or place.start > waiting.last_byte

    def _expect(self, waiting: Open | Pieces) -> None:
        self._due = min(self._due[0], waiting.last_line), min(self._due[1], waiting.last_byte)

    def _give_up(self, waiting: Open | Pieces, end: int, records: list[Record]) -> None:
        """Closes what waits; a block that has begun in what it doubted waits in its place."""
        if isinstance(waiting, Pieces):
            self._joined(waiting, end, waiting.since, records, cut=True)
            return
        told: list[Told] = []
        inner = self._closed(waiting, told)
        self._put(waiting.line.writer, inner)
        records += [self._record(*one, end) for one in told]

    def _put(self, writer: Writer, waiting: Open | None) -> None:
        if waiting is None:
            self._open.pop(writer, None)
        else:
            self._open[writer] = waiting
            self._expect(waiting)

    def _is_plain(self, raw: bytes, place: Place, now: float, records: list[Record]) -> bool:
        """Reads a line without needles if it is plain who wrote it: for most writers nothing waits."""
        if self._pieces or self.context.writer != NOBODY:
            return False
        sole = self._prefixes.sole(raw)
        if sole is None:
            return False
        writer, message = sole
        if writer not in self._open:
            return True
        said = plain(raw, message, writer) if writer != NOBODY or not raw else None  # else it may have been shipped
        for line in said or ():
            self._message(Heard(line, None, None, place, now, self._number), records)
        return said is not None

    def _piece(self, shipped: Shipped, stream: str, place: Place, now: float, records: list[Record]) -> None:
        """Takes a piece of a line that a container runtime has cut, and reads the line once it is whole."""
        pieces = self._pieces.get(stream)
        if pieces is None:
            pieces = self._pieces[stream] = Pieces(stream, place, now, self._number)
            self._expect(pieces)
        has_room = pieces.add(shipped.text)
        if not shipped.goes_on:
            self._joined(pieces, place.end, now, records)
        elif not has_room:
            self._joined(pieces, place.end, now, records, cut=True)

    def _joined(self, pieces: Pieces, end: int, now: float, records: list[Record], *, cut: bool | None = None) -> None:
        del self._pieces[pieces.stream]
        text = unshipped("".join(pieces.texts)).text  # what was cut may be an object of another shipper
        raw = text.encode(errors="replace")
        kinds = self.index.fitting(self.index.look(raw), raw)
        self._text(text, kinds, pieces.place._replace(end=end), now, records, cut=cut)

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
        parts = text.split("\n")  # several where a shipper's field holds them, as it may a whole traceback
        for number, part in enumerate(parts, 1):
            said = messages(part, cut=cut if number == len(parts) else None, writer=self.context.writer)
            if len(said) > MESSAGES:
                self._counts.cut_lines += 1
                del said[1 : len(said) - MESSAGES + 1]
            for line in said:
                kind, read = self._parsed(line, kinds) if kinds else (None, None)
                if read is not None or line.writer in self._open:
                    self._message(Heard(line, kind, read, place, now, self._number), records)

    def _message(self, heard: Heard, records: list[Record]) -> None:
        writer, end = heard.line.writer, heard.place.end
        told: list[Told] = []
        before = self._open.get(writer)
        after = self._heard(before, heard, told)
        if after is not before:
            if before is None and len(self._open) >= OPEN_WRITERS:
                self._make_room(end, records)
            self._put(writer, after)
        records += [self._record(*one, end) for one in told]

    def _make_room(self, end: int, records: list[Record]) -> None:
        """Closes the oldest block, with what has begun in it."""
        writer = min(self._open.values(), key=_start).line.writer
        while waiting := self._open.get(writer):
            self._give_up(waiting, end, records)

    def _heard(self, waiting: Open | None, heard: Heard, told: list[Told], depth: int = 0) -> Open | None:
        """Shows a message to the block that waits for its writer: what is certain then is told, what waits returned."""
        while depth and waiting and self._is_over(waiting, heard.place):  # inside another that waits longer
            waiting = self._closed(waiting, told)
        take = self._taken(waiting, heard) if waiting else Take.IGNORED
        if waiting and take is Take.DOUBTED:
            if waiting.inner or heard.said is not None:
                waiting.inner = self._heard(waiting.inner, heard, waiting.doubted, depth + 1)
            return waiting
        if waiting and take is Take.PROVEN:
            waiting.doubted, waiting.inner = [], None
            return waiting
        if waiting and take is Take.ENDED:
            return self._heard(self._closed(waiting, told), heard, told, depth)
        if waiting and take is Take.DONE:
            waiting.doubted, waiting.inner = [], None
            waiting = self._closed(waiting, told)
        line, kind, said, place, now, number = heard
        if kind is None or said is None:
            return waiting
        if isinstance(said, Numbers | Fact):
            told.append((kind, line, said))
            return waiting
        if take in {Take.TAKEN, Take.DONE}:
            return waiting  # the block that took the line tells of it
        while waiting:
            waiting = self._closed(waiting, told)
        begun = Open(kind, line, said, place, now, number)
        return begun if len(line.text) <= OPEN_TEXT and depth <= _DOUBTS else self._closed(begun, told)

    def _taken(self, waiting: Open, heard: Heard) -> Take:
        """The block's answer; bars are not shown to it, but where it doubts what is printed they are in doubt too."""
        if heard.line.is_bar:
            return Take.DOUBTED if waiting.doubts else Take.IGNORED
        take = partial(waiting.block.take, heard.line, heard.said)
        taken = self._guarded(waiting.kind, heard.line, take) or Take.IGNORED
        waiting.doubts = taken is Take.DOUBTED
        return taken

    def _closed(self, waiting: Open, told: list[Told]) -> Open | None:
        """Ends a block: what it still doubted was meant so, and what has begun in that is returned."""
        said = self._guarded(waiting.kind, waiting.line, waiting.block.close)
        if said is not None:
            told.append((waiting.kind, waiting.line, said))
        told += waiting.doubted
        return waiting.inner

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
        excerpt = blanked(said.excerpt or line.text)[:_EXCERPT]
        return self.context.heed(Event(origin, said.name, attributes, said.severity, excerpt))


def _start(waiting: Open | Pieces) -> int:
    return waiting.place.start
