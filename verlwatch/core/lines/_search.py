"""Which lines of a block may matter: those that hold a needle.

Searching a whole block costs 0.1 to 0.4 ns a byte and literal, splitting it into lines several times that; so lines
without a needle are never made.  A long literal is found faster than a short one, and an ordinary word ("step") is
found too often: needles should be as long as their line allows.  With stringzilla (the extra ``fast``) a search costs
a fraction of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module

from verlwatch.core.lines._line import Kind


def _finder() -> Callable[[bytes, bytes, int], int]:
    """Where a literal stands in a block from a position on, -1 nowhere."""
    try:
        find: Callable[[bytes, bytes, int], int] = import_module("stringzilla").find
    except ImportError:
        return bytes.find
    return find


_find = _finder()


def literals(kinds: Iterable[Kind]) -> tuple[bytes, ...]:
    """The fewest literals to search for: every needle of every kind holds at least one of them."""
    needles = {needle for kind in kinds for needle in kind.NEEDLES}
    return tuple(sorted(a for a in needles if not any(b in a for b in needles if b != a)))


def candidates(block: bytes, wanted: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Spans (first byte, newline) of the lines of ``block`` that hold one of ``wanted``; every line ends in newline."""
    hits = [(_find(block, literal, 0), literal) for literal in wanted]
    hits = [hit for hit in hits if hit[0] >= 0]
    while hits:
        at = min(hits)[0]
        start, end = block.rfind(b"\n", 0, at) + 1, block.index(b"\n", at)
        yield start, end
        hits = [hit if hit[0] > end else (_find(block, hit[1], end), hit[1]) for hit in hits]
        hits = [hit for hit in hits if hit[0] >= 0]
