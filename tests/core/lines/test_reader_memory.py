"""What half lines of many sources take of memory together, and what is read of those that are let go."""

from __future__ import annotations

import pytest

from verlwatch.core.lines import LONG_BYTES, Reader, too_much
from verlwatch.core.types import Record, Samples

STEP = b"step:1 - timing_s/gen:6.5 - timing_s/step:9.25"
BAR = b"\rProcessed prompts:  12%|##  | 3/40 [00:01<00:12,  2.50it/s]"
NEXT = b"step:2 - timing_s/gen:6.5 - timing_s/step:9.25\n"


def steps(records: list[Record]) -> list[int]:
    return [record.step for record in records if isinstance(record, Samples)]


def holding(name: str, size: int, begin: bytes = b"") -> Reader:
    reader = Reader(name)
    reader.feed(begin.ljust(size, b"x"), 0.0)
    return reader


def resumed(reader: Reader) -> Reader:
    return Reader("x", offset=reader.reread_from, mark=reader.mark, applied_to=reader.offset)


def test_what_is_held_is_the_half_line_however_it_came() -> None:
    reader = Reader("x")
    for at in range(1, 5001):
        reader.feed(b"y", 0.0)
        assert reader.held == at
    assert len(reader._half) == 2
    reader.feed(b"\n", 0.0)
    assert (reader.held, reader._half, reader.reread_from) == (0, [], 5001)


def test_a_line_that_says_nothing_is_let_go_without_a_word() -> None:
    reader = Reader("x")
    reader.feed(BAR * 1000, 0.0)
    assert reader.let_go(0.0) == []
    assert (reader.held, reader.counts.cut_lines, reader.reread_from) == (0, 1, reader.offset)
    for after in (resumed(reader), reader):
        assert steps(after.feed(BAR + b"step:9 - a/b:1\n" + NEXT, 0.0)) == [2]


def test_a_step_line_that_is_let_go_is_read_as_far_as_it_is_there_and_told_once() -> None:
    reader = Reader("x")
    assert reader.feed(STEP[:-4], 0.0) == []
    (record,) = reader.let_go(0.0)
    assert isinstance(record, Samples)
    assert record.values == {"timing_s/gen": 6.5}
    assert record.origin.end == reader.offset + 1
    for after in (resumed(reader), reader):
        assert steps(after.feed(STEP[-4:] + b"\n" + NEXT, 0.0)) == [2]


def test_what_waits_for_its_end_is_told_too_and_not_read_again() -> None:
    reader = Reader("x")
    assert reader.feed(STEP[:25] + b"\n" + BAR, 0.0) == []
    assert steps(reader.let_go(0.0)) == [1]
    assert reader.reread_from == reader.offset
    assert steps(resumed(reader).feed(b"\n" + NEXT, 0.0)) == [2]


def test_a_line_that_is_being_read_again_is_not_let_go_where_it_may_say_something() -> None:
    reader = Reader("x", applied_to=40)
    reader.feed(STEP[:30], 0.0)
    assert (reader.let_go(0.0), reader.held) == ([], 30)
    assert steps(reader.feed(STEP[30:] + b"\n", 0.0)) == [1]


def test_nothing_is_let_go_where_nothing_is_held() -> None:
    reader = Reader("x")
    reader.feed(STEP + b"\n", 0.0)
    assert (reader.let_go(0.0), reader.counts.cut_lines) == ([], 0)
    assert steps(reader.feed(NEXT, 0.0)) == [2]


def test_half_lines_that_fit_are_kept() -> None:
    readers = [holding("a", 60_000), holding("b", 40_000)]
    assert too_much(readers, 100_000) == []


def test_lines_without_a_needle_go_first_and_the_longest_of_them() -> None:
    step, short, bar = holding("step", 70_000, b"step:1 - "), holding("short", 30_000), holding("bar", 50_000)
    assert too_much([step, short, bar], 140_000) == [bar, short]
    assert too_much([step, short, bar], 139_998) == [bar, short, step]
    assert too_much([step, short, bar], 150_000) == []


def test_short_half_lines_stay() -> None:
    readers = [holding(str(n), LONG_BYTES) for n in range(10)]
    assert too_much(readers, 2 * LONG_BYTES) == []


@pytest.mark.parametrize("limit", [2000, 100])
def test_a_new_line_limit_reaches_an_open_line(limit: int) -> None:
    line = b"step:5 - " + b" - ".join(b"a/k%d:0.5" % i for i in range(100)) + b" - timing_s/step:9.25\n"
    reader = Reader("x", line_limit=1000)
    assert reader.feed(line[:900], 0.0) == []
    reader.line_limit = limit
    records = reader.feed(line[900:] + NEXT, 0.0)
    assert steps(records) == [5, 2]
    first = records[0]
    assert isinstance(first, Samples)
    assert len(first.values) == (101 if limit == 2000 else 8)


def test_a_line_over_a_limit_that_was_lowered_is_told_behind_what_is_known() -> None:
    reader = Reader("x", line_limit=1000)
    assert reader.feed(b"Final validation metrics: {" + b"y" * 800, 0.0) == []
    reader.line_limit = 100
    (record,) = reader.feed(b"y", 0.0)
    assert record.origin.end == reader.offset
