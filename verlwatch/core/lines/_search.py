"""Which lines of a block may matter: those that hold a needle.

Searching a whole block costs 0.1 to 0.4 ns a byte and literal, splitting it into lines several times that; so lines
without a needle are never made.  A long literal is found faster than a short one, and an ordinary word ("step") is
found too often: needles should be as long as their line allows.  With stringzilla (the extra ``fast``) a search costs
a fraction of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


class Candidates:
    """The lines of a block that hold one of ``wanted``, in order; every line of the block ends in a newline."""

    def __init__(self, block: bytes, wanted: Sequence[bytes]) -> None:
        self._block = block
        self._hits = [(at, literal) for literal in wanted if (at := _find(block, literal, 0)) >= 0]

    def after(self, at: int) -> tuple[int, int]:
        """First byte and newline of the next such line that begins at ``at`` or later; twice the end if there is none.

        What is asked for must not go back.
        """
        block = self._block
        first = len(block)
        for i in range(len(self._hits) - 1, -1, -1):
            hit, literal = self._hits[i]
            if hit < at:
                hit = _find(block, literal, at)
                if hit < 0:
                    del self._hits[i]
                    continue
                self._hits[i] = hit, literal
            first = min(first, hit)
        if first == len(block):
            return first, first
        return block.rfind(b"\n", at, first) + 1 or at, block.index(b"\n", first)
