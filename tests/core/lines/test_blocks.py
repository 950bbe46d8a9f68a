"""Lines that say something together."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from verlwatch.core.lines import Fact, Line, Reader, Take, step_metrics
from verlwatch.core.types import Event, Record, Samples

STEP = "step:3 - timing_s/gen:1.5 - timing_s/step:2.5"


class Letter:
    """From ``Dear all,`` to ``Yours``; what stands in it is quoted."""

    NAME = "letter"
    NEEDLES = (b"Dear all,",)
    LINES = 4
    BYTES = 300

    def __init__(self, line: Line) -> None:
        self.rows = [line.text]

    @staticmethod
    def parse(line: Line) -> Letter | None:
        """A letter begins."""
        return Letter(line) if line.text == "Dear all," else None

    def take(self, line: Line, said: object) -> Take:
        """Everything up to the end; a blank line tears it."""
        del said
        if not line.text:
            return Take.ENDED
        if line.text.startswith("PS"):
            raise ValueError(line.text)
        self.rows.append(line.text)
        return Take.DONE if line.text == "Yours" else Take.DOUBTED

    def close(self) -> Fact:
        """How many rows."""
        return Fact("letter", {"rows": len(self.rows)})


KINDS = (step_metrics, Letter)
Told = list[tuple[str, int]]


@pytest.fixture
def told(read: Callable[..., list[Record]]) -> Callable[..., Told]:
    def told(*lines: str, piece: int = 0) -> Told:
        data = "".join(f"{line}\n" for line in lines).encode()
        records = read(data, piece=piece, kinds=KINDS)
        ends = [record.origin.end for record in records]
        assert ends == sorted(ends)
        return [
            ("step", record.step) if isinstance(record, Samples) else (record.name, int(record.attributes["rows"]))
            for record in records
            if isinstance(record, Samples | Event)
        ]

    return told


@pytest.mark.parametrize("piece", [0, 1, 13])
def test_what_is_quoted_in_a_block_that_ends_well_is_not_meant_so(told: Callable[..., Told], piece: int) -> None:
    assert told("Dear all,", STEP, "Yours", STEP, piece=piece) == [("letter", 3), ("step", 3)]


@pytest.mark.parametrize("piece", [0, 1, 13])
def test_what_stands_in_a_block_without_an_end_is_read_after_all(told: Callable[..., Told], piece: int) -> None:
    assert told("Dear all,", STEP, "", piece=piece) == [("letter", 2), ("step", 3)]
    assert told("Dear all,", STEP, piece=piece) == [("letter", 2), ("step", 3)]
    assert told("Dear all,", STEP, *"abc", STEP, piece=piece) == [("letter", 5), ("step", 3), ("step", 3)]


def test_other_writers_do_not_disturb_a_block(told: Callable[..., Told]) -> None:
    assert told("(T pid=1) Dear all,", f"(T pid=2) {STEP}", "(T pid=1) Yours") == [("step", 3), ("letter", 2)]


def test_a_second_beginning_closes_the_first(told: Callable[..., Told]) -> None:
    assert told("(T pid=1) Dear all,", "(T pid=1) ", "(T pid=1) Dear all,") == [("letter", 1), ("letter", 1)]


def traceback(rank: int) -> list[str]:
    """What a rank prints when it fails, rows of different lengths and an error of its own."""
    rows = [f'  File "/opt/verl/layer_{row}.py", line {row + 1}, in forward' for row in range(10 + rank % 7)]
    return [
        "Traceback (most recent call last):",
        *(line for row in rows for line in (row, "    return self.inner(x)")),
        f'  File "/opt/verl/rank.py", line {200 + rank}, in update_actor',
        f"ValueError: rank {rank} has no batch",
    ]


@pytest.mark.parametrize("prefix", ["(WorkerDict pid={pid}) ", "(WorkerDict pid={pid}) [rank{rank}]: "])
def test_ranks_that_fail_at_once_are_each_told_right(read: Callable[..., list[Record]], prefix: str) -> None:
    """A hundred, row by row as the machines happen to print; each row says who wrote it."""
    rnd = random.Random(5)
    waiting = {rank: traceback(rank) for rank in range(100)}
    data = []
    while waiting:
        rank = rnd.choice(list(waiting))
        data.append(prefix.format(pid=1000 + rank, rank=rank) + waiting[rank].pop(0))
        if not waiting[rank]:
            del waiting[rank]
    faults = {
        record.origin.writer.pid - 1000: record.attributes
        for record in read("\n".join(data).encode() + b"\n")
        if isinstance(record, Event)
    }
    assert sorted(faults) == list(range(100))
    for rank, said in faults.items():
        assert (said["text"], said["line"]) == (f"rank {rank} has no batch", 200 + rank)


def test_a_row_that_was_cut_is_read_as_far_as_it_is_certain(read: Callable[..., list[Record]]) -> None:
    """As wandb cuts at 4,096 characters: the end of the text is unknown, and so is the place that the row names."""
    text = "ValueError: " + "x" * 5000
    place = '  File "/opt/verl/rank.py", line 17, in ' + "f" * 5000
    data = f"Traceback (most recent call last):\n{place[:4096]}\n{text[:4096]}\n".encode()
    (record,) = (record for record in read(data) if isinstance(record, Event))
    assert record.attributes == {"class": "exception", "exception": "ValueError", "text": "x" * 300}


def test_a_block_that_raises_is_counted_and_goes_on() -> None:
    reader = Reader("run.log", kinds=KINDS)
    records = reader.feed(b"Dear all,\nPS\nYours\n", 0.0)
    assert [record.attributes for record in records if isinstance(record, Event)] == [{"rows": 2}]
    assert reader.counts.broken == 1


def test_a_block_is_read_again_after_a_restart() -> None:
    text = b"Dear all,\nhow are you\nYours\n"
    for at in range(len(text)):
        first = Reader("run.log", kinds=KINDS)
        before = first.feed(text[:at], 0.0)
        again = Reader("run.log", 0, first.reread_from, first.mark, applied_to=first.offset, kinds=KINDS)
        after = [record for record in again.feed(text[first.reread_from :], 0.0) if record.origin.end > first.offset]
        assert len(before) + len(after) == 1
        assert isinstance((before + after)[0], Event)
