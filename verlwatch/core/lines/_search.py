"""Which lines of a block may matter, and to which kinds: those that hold a needle.

A pass over the block looks for up to 64 needles at once (Aho-Corasick), as many as its SIMD prefilter takes: with it a
byte costs about 0.5 ns, without it five times as much.  More needles are looked for in several passes; ``bytes.find``
takes 0.3 ns a byte for each needle.  Lines without a needle are never made.  A pass reports matches that do not
overlap, so a needle that another may hide is looked for by itself wherever that other is found.
"""

from __future__ import annotations

from collections.abc import Sequence

import ahocorasick_rs

from verlwatch.core.lines._line import Kind

_AT_ONCE = 64
_LEFTMOST = ahocorasick_rs.MatchKind.LeftmostFirst

Hit = tuple[int, int, int]
"""Number of the literal, first byte, byte behind it."""


class Index:
    """The needles of ``kinds``, ready to be searched for."""

    def __init__(self, kinds: Sequence[Kind], marks: Sequence[bytes] = ()) -> None:
        """``marks`` are searched for as well; they tell of no kind."""
        self.kinds = tuple(kinds)
        needles = {needle for kind in kinds for needle in kind.NEEDLES}.union(marks)
        self.literals = tuple(sorted(a for a in needles if not any(b in a for b in needles if b != a)))
        """The fewest to search for: every needle of every kind holds at least one of them."""
        self._told_by = tuple(
            frozenset(
                number for number, kind in enumerate(self.kinds) if any(literal in needle for needle in kind.NEEDLES)
            )
            for literal in self.literals
        )
        self._hidden = tuple(map(self._hidden_behind, self.literals))
        self._likely: dict[frozenset[int], tuple[tuple[Kind, Sequence[bytes]], ...]] = {}  # few occur
        size = -(-len(self.literals) // -(-len(self.literals) // _AT_ONCE)) if self.literals else 1
        self._passes = [
            (first, ahocorasick_rs.BytesAhoCorasick(self.literals[first : first + size], matchkind=_LEFTMOST))
            for first in range(0, len(self.literals), size)
        ]

    def hits(self, data: bytes) -> list[Hit]:
        """The matches in the order of their first bytes; none of one pass overlap."""
        found = [
            (first + number, begin, end)
            for first, automaton in self._passes
            for number, begin, end in automaton.find_matches_as_indexes(data)
        ]
        found.sort(key=_begin)
        return found

    def fitting(self, literals: set[int], raw: bytes) -> list[Kind]:
        """The kinds that have a needle in ``raw``, in their order, given the literals found in it."""
        if not literals:
            return []
        likely = self._likely.get(key := frozenset(literals))
        if likely is None:
            likely = self._likely[key] = self._tellable(key)
        fitting = []
        for kind, needles in likely:
            for needle in needles:
                if needle in raw:
                    break
            else:
                if needles:
                    continue
            fitting.append(kind)
        return fitting

    def _tellable(self, literals: frozenset[int]) -> tuple[tuple[Kind, Sequence[bytes]], ...]:
        """The kinds that may have a needle where these literals are found, and the needles where that is not sure."""
        numbers = sorted(frozenset[int]().union(*(self._told_by[literal] for literal in literals)))
        found = {self.literals[literal] for literal in literals}
        kinds = [self.kinds[number] for number in numbers]
        return tuple(
            (
                kind,
                ()
                if not found.isdisjoint(kind.NEEDLES)
                else tuple(n for n in kind.NEEDLES if any(a in n for a in found)),
            )
            for kind in kinds
        )

    def look(self, raw: bytes) -> set[int]:
        """The literals that tell which kinds may read ``raw``."""
        found: set[int] = set()
        for hit in self.hits(raw):
            self.add(hit, raw, found)
        return found

    def add(self, hit: Hit, data: bytes, found: set[int]) -> None:
        """Adds the literal of a hit in ``data``, and those which its match hides."""
        number, _, end = hit
        found.add(number)
        for byte, overlap, hidden in self._hidden[number]:
            if data[end : end + 1] == byte and data.startswith(self.literals[hidden], end - overlap):
                found.add(hidden)

    def _hidden_behind(self, literal: bytes) -> tuple[tuple[bytes, int, int], ...]:
        """What a match of ``literal`` hides by ending in it: the byte behind the match, the overlap, its number."""
        return tuple(
            (other[overlap : overlap + 1], overlap, number)
            for number, other in enumerate(self.literals)
            for overlap in range(1, min(len(literal), len(other)))
            if literal.endswith(other[:overlap])
        )


def _begin(hit: Hit) -> int:
    return hit[1]


class Candidates:
    """The lines of a block that hold a needle, in order; every line of the block ends in a newline."""

    def __init__(self, block: bytes, index: Index) -> None:
        self._block = block
        self._index = index
        self._hits = index.hits(block)
        self._next = 0

    def after(self, at: int) -> tuple[int, int]:
        """First byte and newline of the next such line that begins at ``at`` or later; twice the end if there is none.

        What is asked for must not go back.
        """
        self._skip_to(at)
        if self._next == len(self._hits):
            return len(self._block), len(self._block)
        first = self._hits[self._next][1]
        return self._block.rfind(b"\n", at, first) + 1 or at, self._block.index(b"\n", first)

    def within(self, start: int, end: int) -> set[int]:
        """The literals found in the line from ``start`` to ``end``.  What is asked for must not go back."""
        self._skip_to(start)
        found: set[int] = set()
        while self._next < len(self._hits) and self._hits[self._next][1] < end:
            self._index.add(self._hits[self._next], self._block, found)
            self._next += 1
        return found

    def _skip_to(self, at: int) -> None:
        while self._next < len(self._hits) and self._hits[self._next][1] < at:
            self._next += 1
