"""What waits for further lines: in which order, within which limits, and one inside another."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from verlwatch.core.lines import Line, Reader, _envelope, _reading
from verlwatch.core.lines._waiting import PIECES_LINES, PIECES_PAST
from verlwatch.core.types import Event, Record, Samples

Read = Callable[..., list[Record]]
Plain = Callable[[Record], dict[str, Any]]
STEP = "step:3 - timing_s/gen:1.5 - timing_s/step:2.5"
SUSPECT = "step:4 - critic/score:0.5 - timing_s/gen:6.5"


def by(pid: int, *rows: str) -> bytes:
    return "".join(f"(TaskRunner pid={pid}) {row}\n" for row in rows).encode()


def cri(*pieces: tuple[str, str, str]) -> bytes:
    return "".join(f"2026-07-31T08:28:47.911109392Z {stream} {tag} {text}\n" for stream, tag, text in pieces).encode()


def faults(records: list[Record]) -> list[dict[str, Any]]:
    return [dict(record.attributes) for record in records if isinstance(record, Event) and record.name == "fault"]


def steps(records: list[Record]) -> list[int]:
    return [record.step for record in records if isinstance(record, Samples)]


TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/opt/verl/ray_trainer.py", line 932, in fit',
    "    metrics = compute(batch)",
    "ValueError: no batch",
)
DEATH = (
    "The actor died unexpectedly before finishing this task.",
    "\tclass_name: create_colocated_worker_cls.<locals>.WorkerDict",
    "\tpid: 4711",
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: x",
)


# ---------------------------------------------------------------------------------------------- one inside another
@pytest.mark.parametrize("rows", [TRACEBACK, DEATH])
@pytest.mark.parametrize("closed_by", ["end", "time", "lines"])
def test_a_crash_behind_a_sample_that_never_ends_is_told_whole(rows: tuple[str, ...], closed_by: str) -> None:
    alone = Reader("run.log")
    (expected,) = faults(alone.feed(by(7, *rows), 0.0) + alone.finish(0.0))
    reader = Reader("run.log")
    records = reader.feed(by(7, "[prompt] a", "[response] b", "what a model says", *rows), 0.0)
    if closed_by == "time":
        records += reader.tick(2.0) + reader.tick(2.0)
    elif closed_by == "lines":
        records += reader.feed(b"(WorkerDict pid=8) noise\n" * 10_000, 0.0)
    else:
        records += reader.finish(0.0)
    assert faults(records) == [expected]
    assert len(expected) > 3


def test_a_crash_that_begins_before_a_sample_is_given_up_and_ends_after_it_is_told_whole(read: Read) -> None:
    data = by(7, "[prompt] a", "[response] b", *TRACEBACK[:2]) + b"noise\n" * 2997 + by(7, *TRACEBACK[2:])
    (fault,) = faults(read(data))
    assert (fault["exception"], fault["line"]) == ("ValueError", 932)


def test_a_sample_that_begins_in_one_that_never_ends_is_a_sample(read: Read) -> None:
    """The first is given up while the second has not come to its answer."""
    data = by(7, "[prompt] a") + b"noise\n" * 2990 + by(7, "[prompt] b", STEP) + b"noise\n" * 20
    assert steps(read(data + by(7, "[ground_truth] c", "[score] 1"))) == []
    assert steps(read(data)) == [3]


def test_blocks_in_doubt_find_their_ends_as_others_do(read: Read) -> None:
    """A step line in two parts, and one whose rest does not come within its limit."""
    head, rest = STEP[:30], STEP[30:]
    (whole,) = read(by(7, "[prompt] a", head, rest))
    assert isinstance(whole, Samples)
    assert whole.values == {"timing_s/gen": 1.5, "timing_s/step": 2.5}
    (late,) = read(by(7, "[prompt] a", head) + b"noise\n" * 70 + by(7, rest))
    assert isinstance(late, Samples)
    assert late.values == {"timing_s/gen": 1.5}


def test_prompts_without_end_cost_no_more_than_their_length_deserves() -> None:
    reader = Reader("run.log")
    reader.feed(by(7, *["[prompt] a"] * 2999), 0.0)
    depth, waiting = 0, reader._reading.oldest
    while waiting is not None:
        depth, waiting = depth + 1, getattr(waiting, "inner", None)
    assert 2 <= depth <= 6


# ---------------------------------------------------------------------------------------------- pieces
def test_time_closes_a_line_that_came_in_pieces_before_those_between_them() -> None:
    """It begins before them, so it is read again from there; what time has closed by then would be told twice."""
    data = cri(
        ("stdout", "P", f"(A pid=1) {SUSPECT[:20]}"),
        ("stderr", "F", f"(B pid=2) {SUSPECT}"),
        ("stdout", "F", SUSPECT[20:]),
    )
    reader = Reader("run.log")
    last = data.rindex(b"2026")
    reader.feed(data[:last], 0.0)
    reader.feed(data[last:], 1.0)
    assert (reader.reread_from, reader.tick(2.0)) == (0, [])
    assert [record.origin.writer.pid for record in reader.tick(3.0)] == [1, 2]


@pytest.mark.parametrize("seed", range(8))
def test_two_streams_of_pieces_are_read_again_after_a_death_at_any_place(seed: int, read: Read, plain: Plain) -> None:
    rnd = random.Random(seed)
    waiting: dict[str, list[tuple[str, str, str]]] = {"stdout": [], "stderr": []}
    for stream, pieces in waiting.items():
        for pid in range(4):
            line = f"({stream} pid={pid}) {rnd.choice((STEP, SUSPECT, 'noise', *TRACEBACK))}"
            cuts = sorted(rnd.sample(range(1, len(line)), 2))
            pieces += [
                (stream, "F" if end == len(line) else "P", line[begin:end])
                for begin, end in zip([0, *cuts], [*cuts, len(line)], strict=True)
            ]
    mixed = []
    while any(waiting.values()):
        mixed.append(waiting[rnd.choice([stream for stream, left in waiting.items() if left])].pop(0))
    data = cri(*mixed)
    whole = [(record.origin.end, plain(record)) for record in read(data)]
    for at in rnd.sample(range(len(data)), 60):
        first = Reader("run.log")
        told = first.feed(data[:at], 0.0)
        again = Reader("run.log", 0, first.reread_from, first.mark, applied_to=first.offset, context=first.context)
        later = again.feed(data[first.reread_from :], 0.0) + again.finish(0.0)
        told += [record for record in later if record.origin.end > first.offset]
        assert [(record.origin.end, plain(record)) for record in told] == whole


def test_streams_of_any_name_are_one() -> None:
    reader = Reader("run.log")
    reader.feed(b"".join(b'{"log":"step:1","stream":"s%d","logtag":"P"}\n' % n for n in range(500)), 0.0)
    assert len(reader._reading._pieces) == 1


@pytest.mark.parametrize(
    "filler",
    [b"noise\n" * (PIECES_LINES + 1), b"x" * PIECES_PAST + b"\n\n", cri(("stdout", "P", "")) * (PIECES_LINES + 1)],
)
def test_pieces_wait_for_so_many_lines_and_bytes(filler: bytes) -> None:
    reader = Reader("run.log", line_limit=2 * PIECES_PAST)
    records = reader.feed(cri(("stdout", "P", STEP)), 0.0)
    assert records == []
    assert reader.feed(filler, 0.0) == []
    assert steps(reader.feed(b"noise\n" * 66, 0.0)) == [3]  # cut, so it waits for its rest


# ---------------------------------------------------------------------------------------------- what goes by
def test_lines_of_others_go_by_a_traceback_without_being_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    taken_apart = _envelope.messages

    def messages(text: str, **how: Any) -> list[Line]:
        seen.append(text)
        return taken_apart(text, **how)

    monkeypatch.setattr(_reading, "messages", messages)
    reader = Reader("run.log")
    reader.feed(by(1, TRACEBACK[0]), 0.0)
    seen.clear()
    reader.feed(by(2, "noise") * 100 + b"noise\n" * 100 + b"\n" * 100, 0.0)
    assert seen == []
    assert faults(reader.feed(by(1, *TRACEBACK[1:]), 0.0) + reader.finish(0.0))[0]["line"] == 932
