"""JSONL lines of which a value, or the step, is not what it should be."""

from __future__ import annotations

from math import inf

import pytest

from tests.core.lines.conftest import Read
from verlwatch.core.types import Samples

GEN = '"timing_s/gen":40.5'


def numbers(read: Read, text: str) -> list[tuple[int, dict[str, float]]]:
    return [(r.step, dict(r.values)) for r in read(text.encode() + b"\n") if isinstance(r, Samples)]


@pytest.mark.parametrize(
    "step",
    ["true", "false", "null", '"1"', "[1]", "{}", "1.5", "-1", "NaN", "Infinity", "1e400", "1" + "0" * 400, "1e18"],
)
def test_what_is_no_step_is_no_line(step: str, read: Read) -> None:
    assert numbers(read, f'{{"step":{step},"data":{{{GEN}}}}}') == []
    assert numbers(read, f'{{"step":{step},"data":{{{GEN},"actor/x":NaN}}}}') == []


@pytest.mark.parametrize("step", ["7", "7.0", "7e0"])
def test_a_whole_number_is_a_step_however_it_is_written(step: str, read: Read) -> None:
    assert numbers(read, f'{{"step":{step},"data":{{{GEN}}}}}') == [(7, {"timing_s/gen": 40.5})]
    assert numbers(read, f'{{"step":{step},"data":{{{GEN},"a/b":-Infinity}}}}') == [
        (7, {"timing_s/gen": 40.5, "a/b": -inf})
    ]


@pytest.mark.parametrize("value", ["null", '"5"', "[5]", '{"a": 5}', '"NaN"'])
def test_what_is_no_number_is_left_out_and_nothing_else(value: str, read: Read) -> None:
    assert numbers(read, f'{{"step":7,"data":{{"a/b":{value},{GEN}}}}}') == [(7, {"timing_s/gen": 40.5})]


@pytest.mark.parametrize("value", ["1e400", "1" + "0" * 400, "9" * 5000])
def test_a_number_that_no_float_holds_is_infinite_as_in_the_console_line(value: str, read: Read) -> None:
    told = [(7, {"a/b": inf, "timing_s/gen": 40.5})]
    assert numbers(read, f'{{"step":7,"data":{{"a/b":{value},{GEN}}}}}') == told
    if "e" not in value:
        assert numbers(read, f"step:7 - a/b:{value} - timing_s/gen:40.5 - timing_s/step:50.5")[0][1]["a/b"] == inf


def test_a_truth_value_counts_as_in_the_console_line(read: Read) -> None:
    ((_, jsonl),) = numbers(read, f'{{"step":7,"data":{{"a/b":true,"a/c":false,{GEN}}}}}')
    ((_, console),) = numbers(read, "step:7 - a/b:True - a/c:False - timing_s/gen:40.5 - timing_s/step:50.5")
    assert (jsonl["a/b"], jsonl["a/c"]) == (console["a/b"], console["a/c"]) == (1.0, 0.0)


def test_of_a_key_that_occurs_twice_the_last_value_counts(read: Read) -> None:
    text = f'{{"step":1,"step":7,"data":{{"timing_s/gen":1.5,{GEN}}}}}'
    assert numbers(read, text) == numbers(read, text.replace("40.5", '40.5,"a/b":NaN').replace(',"a/b":NaN', ""))
    assert numbers(read, text) == [(7, {"timing_s/gen": 40.5})]


@pytest.mark.parametrize("end", ["", "}", "[" * 5000, '"x'])
def test_a_broken_line_says_nothing_and_breaks_nothing(end: str, read: Read) -> None:
    assert numbers(read, f'{{"step":7,"data":{{{GEN},"a/b":NaN,{end}') == []
