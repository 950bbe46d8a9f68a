"""Which lines are looked at, and by which kinds."""

from __future__ import annotations

import random
from dataclasses import dataclass

from verlwatch.core.lines import KINDS, Line
from verlwatch.core.lines._search import Candidates, Index


@dataclass(frozen=True)
class Needles:
    """A kind that reads nothing."""

    NAME: str
    NEEDLES: tuple[bytes, ...]

    def parse(self, line: Line, /) -> None:
        """Nothing."""


def index(*needles: bytes) -> Index:
    return Index([Needles(needle.decode(), (needle,)) for needle in needles])


def candidates(block: bytes, index: Index) -> list[tuple[bytes, list[str]]]:
    """The lines that may matter, and the kinds that may read each."""
    found, at, search = [], 0, Candidates(block, index)
    while (span := search.after(at))[0] < len(block):
        start, end = span
        line = block[start:end]
        found.append((line, [kind.NAME for kind in index.fitting(search.within(start, end), line)]))
        at = end + 1
    return found


def test_every_needle_holds_a_literal_that_is_searched() -> None:
    wanted = Index(KINDS).literals
    assert all(any(part in needle for part in wanted) for kind in KINDS for needle in kind.NEEDLES)


def test_a_needle_that_holds_another_is_not_searched() -> None:
    assert index(b"memory", b"memory allocated", b"loss").literals == (b"loss", b"memory")


def test_all_needles_fit_into_two_passes() -> None:
    """The prefilter that makes a pass fast takes 64 literals, and the fewer there are the better it tells."""
    assert len(Index(KINDS).literals) <= 82


def test_more_needles_than_fit_into_a_pass_are_found_in_the_order_of_their_places() -> None:
    needles = tuple(b"needle %03d" % number for number in range(150))
    text = b" ".join(reversed(needles))
    searched = index(*needles)
    hits = searched.hits(text)
    assert [text[begin:end] for _, begin, end in hits] == list(reversed(needles))
    assert [searched.literals[number] for number, _, _ in hits] == list(reversed(needles))


def test_a_search_finds_what_a_loop_over_the_lines_finds() -> None:
    rnd = random.Random(7)
    needles = (b"step:", b"p: one", b"Training", b"a", b"inging", b"Train")
    for _ in range(1000):
        words = rnd.choices(
            (b"step", b": ", b"one", b"\n", b"Training", b"ging", b"a", b"b ", b"\x00"), k=rnd.randint(0, 30)
        )
        block = b"".join(words) + b"\n"
        expected = [
            (line, [needle.decode() for needle in needles if needle in line])
            for line in block.split(b"\n")
            if any(needle in line for needle in needles)
        ]
        assert candidates(block, index(*needles)) == expected


def test_nothing_is_searched_without_kinds() -> None:
    assert candidates(b"x\n", Index(())) == []
