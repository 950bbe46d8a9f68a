"""The Reader: positions, limits, time, and what it counts."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from verlwatch.core.lines import KINDS, Line, Numbers, Reader
from verlwatch.core.lines._reading import OPEN_WRITERS
from verlwatch.core.types import Event, Record, Samples

WHOLE = b"step:1 - timing_s/gen:6.5 - timing_s/step:9.25\n"
OPEN = b"step:2 - critic/score:0.5 - timing_s/gen:6.5\n"
NOISE = b"(WorkerDict pid=9) noise\n"


def steps(records: list[Record]) -> list[int]:
    return [record.step for record in records if isinstance(record, Samples)]


def test_a_record_ends_behind_its_newline() -> None:
    reader = Reader("run.log", 3, offset=1000, mark=b"before\n")
    (record,) = reader.feed(NOISE + WHOLE, 0.0)
    assert (record.origin.source, record.origin.generation, record.origin.kind) == ("run.log", 3, "step_metrics")
    assert record.origin.end == 1000 + len(NOISE + WHOLE) == reader.offset == reader.reread_from


def test_half_a_line_is_kept_and_reread() -> None:
    reader = Reader("run.log")
    assert reader.feed(NOISE + WHOLE[:-1], 0.0) == []
    assert (reader.offset, reader.reread_from, reader.mark) == (len(NOISE + WHOLE) - 1, len(NOISE), NOISE)
    assert steps(reader.feed(b"\n", 0.0)) == [1]
    assert reader.reread_from == reader.offset
    assert reader.mark == (NOISE + WHOLE)[-64:]


def test_the_last_line_of_an_ended_source_is_read_without_newline_and_its_last_value_is_unknown() -> None:
    reader = Reader("run.log")
    assert reader.feed(WHOLE[:-1], 0.0) == []
    (record,) = reader.finish(0.0)
    assert isinstance(record, Samples)
    assert (record.step, record.values) == (1, {"timing_s/gen": 6.5})
    assert record.origin.end == len(WHOLE)


def test_an_event_carries_what_was_said() -> None:
    (event,) = Reader("run.log").feed(b"(TaskRunner pid=4) Total training steps: 40\n", 0.0)
    assert isinstance(event, Event)
    assert (event.name, event.attributes, event.severity) == ("plan", {"total": 40}, "info")
    assert event.excerpt == "Total training steps: 40"


# ---------------------------------------------------------------------------------------------- waiting for an end
def test_a_line_that_waits_is_reread_and_its_record_ends_behind_the_line_that_settles_it() -> None:
    reader = Reader("run.log")
    assert reader.feed(NOISE + OPEN + NOISE, 0.0) == []
    assert (reader.reread_from, reader.mark) == (len(NOISE), NOISE)
    first, second = reader.feed(WHOLE, 0.0)
    assert steps([first, second]) == [2, 1]
    assert first.origin.end == second.origin.end == reader.offset == reader.reread_from


def test_a_line_waits_for_sixty_four_lines() -> None:
    reader = Reader("run.log")
    assert reader.feed(OPEN + NOISE * 64, 0.0) == []
    (record,) = reader.feed(NOISE, 0.0)
    assert (steps([record]), record.origin.end) == ([2], reader.offset)


def test_a_line_waits_for_sixty_four_kibibytes() -> None:
    reader = Reader("run.log")
    filler = b"x" * ((1 << 16) - 1) + b"\n"
    assert reader.feed(OPEN + filler + NOISE, 0.0) == []
    assert steps(reader.feed(NOISE, 0.0)) == [2]


def test_a_line_waits_for_two_seconds_and_then_ends_behind_everything_read() -> None:
    reader = Reader("run.log")
    assert reader.deadline() is None
    reader.feed(OPEN, 10.0)
    reader.feed(NOISE + b"half", 11.0)
    assert reader.deadline() == 12.0
    assert reader.tick(11.9) == []
    (record,) = reader.tick(12.0)
    assert (steps([record]), record.origin.end) == ([2], reader.offset + 1)
    assert reader.deadline() is None
    assert reader.reread_from == reader.offset - len(b"half")


def test_time_closes_no_line_before_an_older_one() -> None:
    """Else the younger one would be read again with the older, after a restart, and told twice."""
    reader = Reader("run.log")
    reader.feed(b"(A pid=1) " + OPEN, 100.0)
    reader.feed(b"(B pid=2) " + OPEN, 50.0)  # the clock was set back
    assert reader.tick(60.0) == []
    assert len(reader.tick(102.0)) == 2


def test_time_closes_nothing_that_is_being_read_again() -> None:
    """Its record would end before `applied_to` and be taken for a known one."""
    reader = Reader("run.log", applied_to=len(OPEN + NOISE))
    reader.feed(OPEN, 0.0)
    assert reader.deadline() is None
    assert reader.tick(99.0) == []
    reader.feed(NOISE, 99.0)
    assert steps(reader.tick(99.0)) == [2]


def test_at_most_so_many_writers_wait() -> None:
    reader = Reader("run.log")
    lines = [b"(T pid=%d) Error executing job with overrides: []\n" % n for n in range(OPEN_WRITERS + 2)]
    assert [record.origin.writer.pid for record in reader.feed(b"".join(lines), 0.0)] == [0, 1]


def test_the_same_line_again_is_a_record_again(read: Callable[..., list[Record]]) -> None:
    assert steps(read(WHOLE * 3)) == [1, 1, 1]


# ---------------------------------------------------------------------------------------------- long lines
@pytest.mark.parametrize("piece", [0, 1, 50, 1000])
def test_a_line_over_the_limit_is_cut_and_the_next_unharmed(piece: int, read: Callable[..., list[Record]]) -> None:
    line = b"step:5 - " + b" - ".join(b"a/k%d:0.5" % i for i in range(100)) + b"\n"
    records = read(line + WHOLE, piece=piece, line_limit=100)
    assert steps(records) == [5, 1]
    first = records[0]
    assert isinstance(first, Samples)
    assert list(first.values) == [f"a/k{i}" for i in range(len(first.values))]
    assert 5 < len(first.values) < 9


def test_a_line_of_exactly_the_limit_is_whole(read: Callable[..., list[Record]]) -> None:
    (record,) = read(WHOLE, line_limit=len(WHOLE) - 1)
    assert isinstance(record, Samples)
    assert len(record.values) == 2


def test_a_line_over_the_limit_is_told_behind_its_first_byte_too_many() -> None:
    """A reader killed before that byte has told nothing of the line, so its record must not pass for a known one."""
    line = b"Final validation metrics: {'a/b': 0.5}\n"
    reader = Reader("run.log", line_limit=30)
    assert reader.feed(line[:30], 0.0) == []
    (record,) = reader.feed(line[30:31], 0.0)
    assert record.origin.end == 31
    assert reader.feed(line[31:], 0.0) == []
    assert Reader("run.log", line_limit=30).feed(line, 0.0) == [record]


def test_an_endless_line_takes_no_memory_and_is_not_reread() -> None:
    reader = Reader("run.log", line_limit=1000)
    for _ in range(100):
        assert reader.feed(b"x" * 1000, 0.0) == []
    assert (reader.counts.cut_lines, reader.counts.lines) == (1, 0)
    assert reader.reread_from == reader.offset == 100_000
    assert len(reader._half) == 0
    again = Reader("run.log", offset=reader.reread_from, mark=reader.mark, line_limit=1000)
    assert steps(again.feed(b"step:9 - a/b:1\n" + WHOLE, 0.0)) == [1]


def test_a_step_line_of_seventy_kilobytes_is_read_whole(read: Callable[..., list[Record]]) -> None:
    keys = {f"rollout/moe/max_vio/layer_{i}": i * 0.37 for i in range(2000)}
    line = "step:8 - " + " - ".join(f"{key}:{value!r}" for key, value in keys.items()) + " - timing_s/step:9.25\n"
    assert len(line) > 70_000
    (record,) = read(line.encode(), piece=4096)
    assert isinstance(record, Samples)
    assert record.values == {**keys, "timing_s/step": 9.25}


# ---------------------------------------------------------------------------------------------- counts
def test_what_is_odd_is_counted() -> None:
    reader = Reader("run.log", line_limit=100)
    reader.feed(b"\xff\xfe\n\0\0 x\nok\nstep:1 - a/\xff:1.5\n\xc3\xa9\n" + b"y" * 200 + b"\n", 0.0)
    counts = reader.counts
    assert (counts.lines, counts.cut_lines, counts.undecodable, counts.nul, counts.broken) == (1, 1, 2, 2, 0)


class Faulty:
    """A kind with a fault."""

    NAME = "faulty"
    NEEDLES = (b"step:", b"boom")

    def parse(self, line: Line, /) -> Numbers | None:
        if "boom" in line.text:
            raise ZeroDivisionError(line.text)
        return None


def test_a_kind_that_raises_costs_its_message_and_nothing_else() -> None:
    reader = Reader("run.log", kinds=(Faulty(), *KINDS))
    records = reader.feed(WHOLE + b"boom \x1b]0;title\x07 " + b"z" * 5000 + b"\n" + b"boom\n" + WHOLE, 0.0)
    assert steps(records) == [1, 1]
    assert reader.counts.broken == 2
    assert reader.counts.sample.startswith("faulty: ZeroDivisionError('boom \\x1b]0;title\\x07 ")
    assert len(reader.counts.sample) <= 300
    assert reader.counts.sample.isprintable()


BAR = b"\rTraining Progress:  1%|  | 1/300 [00:01<00:02,  1.00it/s]"


@pytest.mark.parametrize("text", [b"step:\r", b"(A pid=1) step:1 - a/b:1", BAR])
def test_a_line_of_many_messages_takes_no_more_than_its_length_deserves(text: bytes) -> None:
    def spent(size: int) -> float:
        reader, line = Reader("x"), text * (size // len(text)) + b"\n"
        began = time.process_time()
        reader.feed(line, 0.0)
        return time.process_time() - began

    spent(1 << 12)
    assert spent(1 << 18) < 100 * max(spent(1 << 14), 1e-3)  # 16 times as long; quadratic would be 256 times


def test_the_mark_of_an_encoding_at_the_beginning_is_no_text(read: Callable[..., list[Record]]) -> None:
    mark = b"\xef\xbb\xbf"
    assert steps(read(mark + WHOLE + mark + WHOLE)) == [1]
    assert read(mark + WHOLE, piece=1)[0].origin.end == len(mark + WHOLE)


def test_of_very_many_updates_of_a_bar_the_last_counts(read: Callable[..., list[Record]]) -> None:
    bars = b"".join(b"\rTraining Progress:  1%%|  | %d/9000 [00:01<00:02,  1.00it/s]" % n for n in range(3000))
    records = read(b"(TaskRunner pid=1) " + bars + b"\r" + WHOLE)
    assert steps(records) == [1]
    (*_, last) = (record for record in records if isinstance(record, Event))
    assert last.attributes["done"] == 2999
