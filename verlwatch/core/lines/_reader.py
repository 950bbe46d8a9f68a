"""Bytes of one source -> records.

Positions.  ``offset`` counts the bytes taken.  A record's ``origin.end`` is the position at which it was certain: just
behind the newline of its line; for a step line that waited for its end, behind the line that settled it; for a line
over the limit, behind its first byte too many; and where no byte settled it (time, want of memory, end of input) one
behind ``offset``, because it comes after everything read so far.  Ends never decrease, and whatever is still to come
ends behind ``offset``.

Restart.  A new Reader at ``reread_from``, with the ``mark`` of that moment, gives the same records again: those that
end at or before the ``offset`` of that moment (``applied_to``) are known already, the others are new.  This holds
because what waits depends on the bytes alone, except that time may close it, and

* time closes the oldest first, so nothing that it has closed is reread;
* time closes nothing before ``applied_to`` is reached again, where its record would be taken for a known one.

Want of memory (`let_go`) closes everything at once, so nothing of it is reread either.

The `context` of that moment goes with it.  A ``mark`` that does not end in a newline lies inside a line over the limit,
or one that was let go, the rest of which is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from verlwatch.core.lines._counts import Counts
from verlwatch.core.lines._kinds import KINDS
from verlwatch.core.lines._line import Kind
from verlwatch.core.lines._reading import OPEN_S, Reading, is_utf8
from verlwatch.core.lines._search import Candidates, Index
from verlwatch.core.lines._waiting import Place
from verlwatch.core.types import Record

_PIECES = (b" stdout P ", b" stderr P ", b'"logtag":"P"')  # the rest of a line whose first piece holds no needle may
_MARK = 64
_PIECE = 1 << 12


class Reader:
    """Reads one generation of one source, from ``offset`` on; the records do not depend on how the bytes are split.

    ``mark`` is up to 64 bytes before ``offset``, as an earlier Reader left them; ``applied_to`` the position up to
    which its records are known, ``context`` what it knew there.  Of a line longer than ``line_limit`` bytes only
    that much is read; a new ``line_limit``, like other `kinds`, holds from the next bytes on.
    """

    def __init__(
        self,
        source: str,
        generation: int = 0,
        offset: int = 0,
        mark: bytes = b"",
        *,
        line_limit: int = 1 << 20,
        kinds: Sequence[Kind] = KINDS,
        applied_to: int = 0,
        context: str = "",
    ) -> None:
        self.source = source
        self.generation = generation
        self.offset = offset
        self.held = 0
        """Bytes that are kept of the line that is not yet whole."""
        self.line_limit = line_limit
        self.counts = Counts()
        self._index = _index(tuple(kinds))
        self._reading = Reading(source, generation, self._index, self.counts, context)
        self._applied_to = applied_to
        self._start = offset  # first byte of the line that is not yet whole
        self._before = mark[-_MARK:]  # the bytes before it
        self._half: list[bytes] = []  # what there is of it; in pieces, as growing it would tear holes into the heap
        self._skipping = bool(mark) and not mark.endswith(b"\n")  # the line is over the limit, or was let go
        self._fed_to = offset  # what came before the last bytes

    @property
    def reread_from(self) -> int:
        """The first byte of the oldest line that is not yet whole, not certain, or matters to one that is neither."""
        again = self._reading.reread_from
        return again.start if again else self._start

    @property
    def mark(self) -> bytes:
        """The up to 64 bytes before `reread_from`."""
        again = self._reading.reread_from
        return again.mark if again else self._before

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kinds of line that are read."""
        return self._index.kinds

    @kinds.setter
    def kinds(self, kinds: Sequence[Kind]) -> None:
        self._index = self._reading.index = _index(tuple(kinds))

    @property
    def context(self) -> str:
        """What the source has said once and means for all that follows."""
        return str(self._reading.context)

    @property
    def may_say_something(self) -> bool:
        """Whether the line that is not yet whole holds a needle, or may be the end that another waits for."""
        if self._reading.waits:
            return True
        return bool(self._index.hits(b"".join(self._half)))

    def feed(self, data: bytes, now: float) -> list[Record]:
        """Takes the bytes that follow `offset`; gives the records they settle, in the order of their ends."""
        self._fed_to = self.offset
        self.offset += len(data)
        self.counts.nul += data.count(b"\0") if b"\0" in data else 0
        if self._skipping:
            data = self._skip(data)
        records: list[Record] = []
        whole = data.rfind(b"\n") + 1
        if whole:
            block = self._taken() + data[:whole] if self._half else data[:whole]
            records = self._whole_lines(block, now)
        self._hold(data[whole:])
        if self.held > self.line_limit:
            records += self._overlong(self._taken(), now)
            self._skipping = True
        return records

    def tick(self, now: float) -> list[Record]:
        """Closes the lines that have waited long enough for their end."""
        due = self.deadline()
        return self._reading.close_due(now, self.offset + 1) if due is not None and due <= now else []

    def deadline(self) -> float | None:
        """When `tick` is wanted; None while nothing waits."""
        oldest = self._reading.oldest
        return oldest.since + OPEN_S if oldest and self.offset >= self._applied_to else None

    def finish(self, now: float) -> list[Record]:
        """The source ends here: reads its last line even without a newline, and closes whatever waits."""
        records: list[Record] = []
        end = self.offset + 1
        if self._half:
            half = self._taken()
            records = self._reading.line(half, Place(self._start, end, self._before), now, cut=True)
            self._pass(half)
        return records + self._reading.close_all(end)

    def let_go(self, now: float) -> list[Record]:
        """Frees the memory of the line that is not yet whole: it is read as far as it is there, its rest is skipped."""
        if not self._half:
            return []
        records: list[Record] = []
        if self.may_say_something:
            if self.offset < self._applied_to:
                return []  # read again: its record would be taken for a known one
            records = self.finish(now)
        else:
            half = self._taken()
            self._count_undecodable(half)
            self._pass(half)
        self.counts.cut_lines += 1
        self._skipping = True
        return records

    def _hold(self, data: bytes) -> None:
        """Keeps bytes of the line that is not yet whole."""
        if self._half and len(self._half[-1]) < _PIECE:
            self._half[-1] += data
        elif data:
            self._half.append(data)
        self.held += len(data)

    def _taken(self) -> bytes:
        """What there is of the line that is not yet whole, which is kept no longer."""
        half = b"".join(self._half)
        self._half.clear()
        self.held = 0
        return half

    def _whole_lines(self, block: bytes, now: float) -> list[Record]:
        """Lines that end in a newline; splits at those over the limit, of which there are none as a rule."""
        records: list[Record] = []
        at = 0
        while at < len(block):
            end = block.rfind(b"\n", at, at + self.line_limit + 1) + 1
            if end:
                records += self._lines(block[at:end], now)
            else:
                end = block.index(b"\n", at) + 1
                records += self._overlong(block[at:end], now)
            at = end
        return records

    def _lines(self, block: bytes, now: float) -> list[Record]:
        """Reads the lines that hold a needle; while one waits for its end, every line, for any may be that end."""
        records: list[Record] = []
        candidates = Candidates(block, self._index)
        ascii_only = block.isascii()
        at = 0
        while at < len(block):
            if self._reading.waits:
                start, end = at, block.index(b"\n", at)
            else:
                start, end = candidates.after(at)
                if not ascii_only:
                    self._count_undecodable(block[at:start])
                if start == end:
                    break
            self.counts.lines += 1
            mark = (self._before + block[max(0, start - _MARK) : start])[-_MARK:]
            place = Place(self._start + start, self._start + end + 1, mark)
            records += self._reading.line(block[start:end], place, now, candidates.within(start, end))
            at = end + 1
        self._pass(block)
        return records

    def _overlong(self, data: bytes, now: float) -> list[Record]:
        """Reads the first part of a line over the limit, as soon as it is known to be one."""
        self.counts.cut_lines += 1
        end = max(self._start + self.line_limit, self._fed_to) + 1  # the latter where the limit has just been lowered
        place = Place(self._start, end, self._before)
        records = self._reading.line(data[: self.line_limit], place, now, cut=True)
        self._pass(data)
        return records

    def _skip(self, data: bytes) -> bytes:
        """Drops the rest of a line over the limit; what is left begins with a line."""
        end = data.find(b"\n") + 1
        self._pass(data[:end] if end else data)
        if not end:
            return b""
        self._skipping = False
        return data[end:]

    def _pass(self, data: bytes) -> None:
        self._start += len(data)
        self._before = (self._before + data[-_MARK:])[-_MARK:]

    def _count_undecodable(self, lines: bytes) -> None:
        """Lines that nobody reads are decoded only to be counted, and not where all are ASCII."""
        try:
            lines.decode()
        except UnicodeDecodeError:
            self.counts.undecodable += sum(not is_utf8(line) for line in lines.split(b"\n"))


@lru_cache(maxsize=8)
def _index(kinds: tuple[Kind, ...]) -> Index:
    return Index(kinds, _PIECES)
