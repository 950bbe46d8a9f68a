"""What log shippers put around a line, and the lines that container runtimes cut."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from verlwatch.core.lines import Reader
from verlwatch.core.lines._shipping import unshipped
from verlwatch.core.lines._waiting import PIECES_BYTES
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
        "\x1b[36mverl-trainer-1  |\x1b[0m {}",
        "\x1b[36mverl-trainer-1  | \x1b[0m{}",
        "[2026-03-04 05:06:07] {}",
        "2026-03-04 05:06:07 {}",
        "2026-03-04 05:06:07,891 {}",
        "05:06:07 {}",
        "0: {}",
        " 12: {}",
        "[default0]:{}",
        "[1,12]<stderr>:{}",
        "gpu-12 [stderr] {}",
        f"ERROR {AT} {{}}",
        "Mar  4 05:06:07.891011 gpu-12 verl[4242]: {}",
        "Wed 2026-03-04 05:06:07 UTC gpu-12 verl[4242]: {}",
        f"<13>1 {AT} gpu-12 verl 4242 - - {{}}",
        f'<13>1 {AT} gpu-12 verl 4242 ID47 [a@1 b="c\\]"] {{}}',
        "verl-head-0 trainer {}",
        "\x1b[38;5;214mverl-head-x7k2p\x1b[0m \x1b[38;5;213mtrainer\x1b[0m {}",
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
        json.dumps({"log": {"offset": 12}, "message": PREFIXED}),
        json.dumps({"stream": "stdout", "logtag": "F", "log": PREFIXED}),
        docker(PREFIXED),
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
        json.dumps({"text": STEP}),
        json.dumps({"prompt": "?", "line": STEP}),
        "2026-03-04 05:06:07,891 INFO worker.py:12 -- x",
        "[2026-03-04 05:06:07 TP0] x",
        "[2026-03-04 05:06:07] x",
        "05:06:07 is the time",
        "3: three",
        "some text step:7 - x",
        "see well-known numbers step:7",
        "ERROR 05-12 01:48:42 [core.py:72] x",
    ],
)
def test_what_is_no_shippers_work_stays_as_it_is(text: str) -> None:
    shipped = unshipped(text)
    assert shipped.text in {text, "b"}
    assert not shipped.goes_on


def pieces_of(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def test_a_process_that_leaves_half_a_line_holds_nobody_up() -> None:
    reader = Reader("pod.log")
    records = reader.feed(
        f"{docker(PREFIXED)}\n{docker(PREFIXED.replace('step:7', 'step:8') + chr(10))}\n".encode(), 0.0
    )
    assert [record.step for record in [*records, *reader.finish(0.0)] if isinstance(record, Samples)] == [7, 8]


def test_pieces_of_16_kb_are_one_line_to_docker_and_to_fluent_bit(read: Callable[..., list[Record]]) -> None:
    text = PREFIXED + "".join(f" - critic/{'x' * 80}{number}:1.5" for number in range(400)) + " - critic/end:2.5"
    first, *rest = pieces_of(text, 16_384)
    tagged = [json.dumps({"stream": "stdout", "logtag": "P", "log": piece}) for piece in (text[:60], text[60:99])]
    tagged += [json.dumps({"stream": "stdout", "logtag": "F", "log": text[99:]})]
    for lines in ([docker(first), *map(docker, rest[:-1]), docker(rest[-1] + "\n")], tagged):
        (record,) = read("".join(f"{line}\n" for line in lines).encode())
        assert isinstance(record, Samples)
        assert record.values["critic/end"] == 2.5
        assert len(record.values) == 403


@pytest.mark.parametrize("part", ["[", "a-", "0", "\x1b[0m", "a.1-", "<1>1 ", "[a", " ", "2026-", "(a", "\\]"])
def test_no_front_is_slow_to_look_for(part: str) -> None:
    begin = time.process_time()
    for start in ("", "<13>1 2026-03-04T05:06:07Z h a 1 - [", "a1-", "[default0]:", "ERROR ", "05:06:07 (a"):
        unshipped(start + part * (100_000 // len(part)))
    assert time.process_time() - begin < 0.3


@pytest.mark.parametrize("size", [8, 20, 33])
@pytest.mark.parametrize("feed", [0, 1, 50])
def test_a_line_in_pieces_is_read_whole(size: int, feed: int, read: Callable[..., list[Record]]) -> None:
    *first, last = pieces_of(PREFIXED, size)
    cri = [f"{AT} stdout P {piece}" for piece in first] + [f"{AT} stdout F {last}"]
    fluent = [json.dumps({"log": piece, "stream": "stdout", "logtag": "P"}) for piece in first]
    fluent += [json.dumps({"log": last, "stream": "stdout", "logtag": "F"})]
    for lines in (cri, fluent):
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
    assert reader.offset - reader.reread_from <= 2 * PIECES_BYTES


def test_an_object_that_a_container_runtime_has_cut_is_taken_apart_once_it_is_whole(
    read: Callable[..., list[Record]],
) -> None:
    text = json.dumps({"message": PREFIXED, "@timestamp": AT})
    at = text.index("timing_s/gen")
    (record,) = read(f"{AT} stdout P {text[:at]}\n{AT} stdout F {text[at:]}\n".encode())
    assert isinstance(record, Samples)
    assert (record.step, record.origin.writer.pid) == (7, 42)
    assert record.values == {"timing_s/gen": 1.5, "timing_s/step": 2.5}


def test_a_field_may_hold_several_lines(read: Callable[..., list[Record]]) -> None:
    trace = 'Traceback (most recent call last):\n  File "/a.py", line 3, in f\n    x()\nValueError: no\n'
    records = read("".join(json.dumps({"message": text, "ts": 1}) + "\n" for text in (trace, f"x\n{STEP}\n")).encode())
    assert [record.attributes for record in records if isinstance(record, Event)] == [
        {"class": "exception", "exception": "ValueError", "text": "no", "file": "/a.py", "line": 3, "function": "f"}
    ]
    assert [record.values for record in records if isinstance(record, Samples)] == [
        {"timing_s/gen": 1.5, "timing_s/step": 2.5}
    ]
