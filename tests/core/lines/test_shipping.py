"""What log shippers put around a line, and the lines that container runtimes cut."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from verlwatch.core.lines import Reader
from verlwatch.core.lines._shipping import unshipped
from verlwatch.core.types import Event, Record, Samples, Writer

STEP = "step:7 - timing_s/gen:1.5 - timing_s/step:2.5"
PREFIXED = f"\x1b[36m(TaskRunner pid=42, ip=10.0.0.7)\x1b[0m {STEP}"
AT = "2026-03-04T05:06:07.891011121Z"


def docker(text: str, stream: str = "stdout") -> str:
    return json.dumps({"log": text, "stream": stream, "time": AT})


@pytest.mark.parametrize(
    "around",
    [
        f"{AT} {{}}",
        "2026-03-04T05:06:07+01:00 {}",
        "2026-03-04 05:06:07.891+01:00 {}",
        f"{AT} stdout F {{}}",
        f"{AT} stderr F {{}}",
        "Mar  4 05:06:07 gpu-12 verl[4242]: {}",
        "2026-03-04T05:06:07+0100 gpu-12 python3[4242]: {}",
        "[pod/verl-head-0/trainer] {}",
        f"[pod/verl-head-0/trainer] {AT} {{}}",
        "verl-trainer-1  | {}",
    ],
)
def test_what_stands_in_front_comes_off(around: str, read: Callable[..., list[Record]]) -> None:
    (record,) = read(around.format(PREFIXED).encode() + b"\n")
    assert isinstance(record, Samples)
    assert record.values == {"timing_s/gen": 1.5, "timing_s/step": 2.5}
    assert record.origin.writer == Writer("TaskRunner", 42, "10.0.0.7")


@pytest.mark.parametrize(
    "line",
    [
        docker(PREFIXED + "\n"),
        json.dumps({"@timestamp": AT, "message": PREFIXED}),
        json.dumps({"level": "info", "msg": PREFIXED, "ts": 1}),
        json.dumps({"time": AT, "text": PREFIXED, "pod": {"name": "x"}}),
        docker(f"{AT} {PREFIXED}\n"),
        json.dumps({"message": docker(PREFIXED + "\n")}),
    ],
)
def test_a_line_that_is_a_field_of_an_object_is_read(line: str, read: Callable[..., list[Record]]) -> None:
    (record,) = read(line.encode() + b"\n")
    assert isinstance(record, Samples)
    assert (record.step, record.origin.writer.pid) == (7, 42)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        '{"log":',
        '{"log":5}',
        '{"step":7,"data":{"log":1.0}}',
        "20 | 30",
        "a | b",
        "2026",
        f"{AT}",
        "[pod/x",
    ],
)
def test_what_is_no_shippers_work_stays_as_it_is(text: str) -> None:
    shipped = unshipped(text)
    assert shipped.text in {text, "b"}
    assert not shipped.goes_on


def pieces_of(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [8, 20, 33])
@pytest.mark.parametrize("feed", [0, 1, 50])
def test_a_line_in_pieces_is_read_whole(size: int, feed: int, read: Callable[..., list[Record]]) -> None:
    *first, last = pieces_of(PREFIXED, size)
    cri = [f"{AT} stdout P {piece}" for piece in first] + [f"{AT} stdout F {last}"]
    json_file = [docker(piece) for piece in first] + [docker(last + "\n")]
    for lines in (cri, json_file):
        between = [lines[0], f"{AT} stderr F Total training steps: 9", *lines[1:]]
        records = read("".join(f"{line}\n" for line in between).encode(), piece=feed)
        kinds = [record.name if isinstance(record, Event) else record.step for record in records]
        needle_at = PREFIXED.index("step:")  # pieces before the one that holds the needle are not looked at
        if size > needle_at + 5:
            assert kinds == ["plan", 7]
            assert records[1].origin.writer == Writer("TaskRunner", 42, "10.0.0.7")
        assert "plan" in kinds


def test_a_piece_whose_rest_never_comes_is_read_as_far_as_it_came() -> None:
    reader = Reader("pod.log")
    text = f"{AT} stdout P {STEP}\n".encode()
    assert reader.feed(text, 0.0) == []
    assert reader.reread_from == 0
    (record,) = reader.tick(5.0)
    assert isinstance(record, Samples)
    assert record.values == {"timing_s/gen": 1.5}  # the last value may be cut
    assert reader.reread_from == len(text)


def test_a_restart_amid_the_pieces_reads_them_again() -> None:
    lines = [f"{AT} stdout P {STEP[:30]}\n", f"{AT} stdout F {STEP[30:]}\n"]
    text = "".join(lines).encode()
    first = Reader("pod.log")
    assert first.feed(lines[0].encode(), 0.0) == []
    again = Reader("pod.log", 0, first.reread_from, first.mark, applied_to=first.offset)
    (record,) = again.feed(text[first.reread_from :], 0.0)
    assert isinstance(record, Samples)
    assert record.values == {"timing_s/gen": 1.5, "timing_s/step": 2.5}


def test_pieces_without_end_do_not_fill_the_memory() -> None:
    reader = Reader("pod.log")
    line = f"{AT} stdout P {'x' * 16000}\n".encode()
    reader.feed(f"{AT} stdout P {STEP}".encode() + b"\n", 0.0)
    for _ in range(20):
        reader.feed(line, 0.0)
    assert reader.reread_from == reader.offset
