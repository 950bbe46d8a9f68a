"""Patterns of own lines: what the engine runs, and what it refuses before it could be slow or silent."""

from __future__ import annotations

import sys
import time

import pytest

from verlwatch.core.lines import Fact, Line
from verlwatch.core.lines._own import LONGEST
from verlwatch.shell.own_lines import TAKEN, is_installed, own_line, search_of


def test_a_pattern_is_searched_for_and_gives_its_named_groups() -> None:
    search = search_of(
        r"(?:gather|scatter) (?P<metric>\w+)(?: rank (?P<rank>\d+))? took (?P<value>[0-9.]+)(?P<unit>µ?s)"
    )
    assert search("12:01 gather weights took 3.5µs") == {"metric": "weights", "value": "3.5", "unit": "µs"}
    assert search("scatter x rank 2 took 3s.") == {"metric": "x", "rank": "2", "value": "3", "unit": "s"}
    assert search("gather took 3s") is None


def test_an_own_line_is_a_kind_of_line() -> None:
    kind = own_line("wait", "время ожидания", r"ожидания (?P<value>\d+)", "ms")
    assert ("wait", ("время ожидания".encode(),)) == (kind.NAME, kind.NEEDLES)
    assert kind.parse(Line("время ожидания 12")) == Fact(
        "own", {"line": "wait", "metric": "wait", "value": 0.012, "unit": "s"}
    )


def test_equal_patterns_are_compiled_once() -> None:
    assert search_of(r"(?P<value>\d)x") is search_of(r"(?P<value>\d)x")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(?P<value>\d+", r"is no pattern of RE2 \(missing \): "),
        (r"(?<=x)(?P<value>\d+)", r"is no pattern of RE2 \(invalid .*without look-around"),
        (r"(?P<value>\d+)\1", r"is no pattern of RE2 \(invalid escape sequence: \\1\)"),
        (r"took [0-9.]+", r"has no group value; put \(\?P<value>…\) around the number"),
        (r"took ([0-9.]+)", r"has no group value"),
        (r"(?P<value>\d+) (?P<time>\d+)", r"has the group time, which stands for nothing; known: value, metric, unit,"),
        (r"a(?P<value>\d)|b(?P<value>\d)", r"has the group value twice"),
        (r"(?P<value>(\pL|\d){1,400})z", r"is too large when written out"),
        ("(?P<value>x)" + "y" * 1000, r"is longer than 1000 characters"),
    ],
)
def test_what_cannot_be_run_or_read_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        search_of(pattern)


def test_an_escaped_bracket_is_no_group() -> None:
    assert search_of(r"\(?P<x> (?P<value>\d)")("(P<x> 3") == {"value": "3"}


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"[(?P<value>]+ (?P<value>\d)", "(P< 3"),
        (r"\Q(?P<value>\E (?P<value>\d)", "(?P<value> 3"),
        (r"(?<value>\d)", "3"),
    ],
)
def test_what_only_looks_like_a_group_is_none(pattern: str, text: str) -> None:
    assert search_of(pattern)(text) == {"value": "3"}


@pytest.mark.parametrize("pattern", [r"(?<value>a)|(?P<value>b)", r"(?P<rank>a)(?P<value>1)(?<rank>b)"])
def test_a_group_that_is_named_twice_in_two_ways_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="twice"):
        search_of(pattern)


@pytest.mark.parametrize("pattern", [r"(x+x+)+y(?P<value>\d)", r"(x*)*(?P<value>\d)", r"((.?){9}){8}z(?P<value>\d)"])
def test_no_pattern_explodes(pattern: str) -> None:
    """A pattern that backtracks would take longer than the universe lasts."""
    search = search_of(pattern)
    begin = time.process_time()
    assert search("x" * LONGEST) is None
    assert time.process_time() - begin < 1.0


def test_without_the_engine_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_installed()
    monkeypatch.setitem(sys.modules, "re2", None)
    assert not is_installed()
    search_of.cache_clear()
    with pytest.raises(ValueError, match=r"pip install 'verlwatch\[own\]'"):
        search_of(r"(?P<value>\d)")


def test_names_of_built_in_kinds_are_taken() -> None:
    assert {"step_metrics", "progress"} <= TAKEN
