"""Which lines are looked at."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from verlwatch.core.lines import KINDS, _search
from verlwatch.core.lines._search import Candidates, literals


def test_every_needle_holds_a_literal_that_is_searched() -> None:
    wanted = literals(KINDS)
    assert all(any(part in needle for part in wanted) for kind in KINDS for needle in kind.NEEDLES)


def test_a_needle_that_holds_another_is_not_searched() -> None:
    class Kind:
        NAME = "x"
        NEEDLES = (b"memory", b"memory allocated", b"loss")

        def parse(self, line: object, /) -> None:
            """Reads nothing."""

    assert literals([Kind()]) == (b"loss", b"memory")


def candidates(block: bytes, wanted: tuple[bytes, ...]) -> list[tuple[int, int]]:
    found, at, search = [], 0, Candidates(block, wanted)
    while (span := search.after(at))[0] < len(block):
        found.append(span)
        at = span[1] + 1
    return found


def search_finds_what_a_loop_finds() -> None:
    rnd = random.Random(7)
    wanted = (b"step", b"Training", b"a")
    for _ in range(500):
        words = rnd.choices((b"step", b"\n", b"Training", b"a", b"b ", b"ste", b"\x00"), k=rnd.randint(0, 30))
        block = b"".join(words) + b"\n"
        found = [block[start:end] for start, end in candidates(block, wanted)]
        assert found == [line for line in block.split(b"\n") if any(literal in line for literal in wanted)]


def test_a_search_finds_what_a_loop_over_the_lines_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    search_finds_what_a_loop_finds()
    monkeypatch.setattr(_search, "_find", bytes.find)
    search_finds_what_a_loop_finds()


def test_stringzilla_finds_the_same() -> None:
    find: Callable[[bytes, bytes, int], int] = pytest.importorskip("stringzilla", reason="the extra 'fast'").find
    block = b"step\nx step"
    assert [find(block, b"step", at) for at in (0, 1, 8)] == [block.find(b"step", at) for at in (0, 1, 8)]


def test_nothing_is_searched_without_kinds() -> None:
    assert candidates(b"x\n", ()) == []
