"""Own lines in the configuration: every fault at its place, and what becomes of a good one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from verlwatch.config import Config, apply, changes, check, own_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    Loads = Callable[[str | bytes], Config]
    Complains = Callable[[str | bytes], list[str]]

EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
ONE = r"""
lines:
  - name: reshard_time
    contains: "sharding_manager __"
    pattern: 'sharding_manager (?P<metric>\w+) time%: (?P<value>[0-9.]+)'
    unit: ms
"""

EVERYTHING_WRONG = r"""lines:
  - {name: Reshard, contains: abcd, pattern: '(?P<value>\d'}
  - {name: progress, contains: "a\nbcdef", pattern: 'took (\d+)', unit: 7s}
  - {name: gather, contains: gather took, pattern: '(?P<value>\d+)(?P<sort>\w)'}
  - {name: gather, contains: gather took, patern: x, unit: ''}
  - {contains: gather took}
  - reshard
"""

EVERY_PROBLEM = """\
2:12: lines[0].name: must begin with a-z and consist of a-z, 0-9 and _ (at most 64); as in gather_time
2:31: lines[0].contains: must be 5 to 200 printable bytes that stand, as they are, in each such line; \
take the longest part of it that never changes
2:46: lines[0].pattern: is no pattern of RE2 (missing ): (?P<value>\\d); write it as for Python's re, \
without look-around and back references
3:12: lines[1].name: progress is the name of a built-in kind of line; write for example my_progress
3:32: lines[1].contains: must be 5 to 200 printable bytes that stand, as they are, in each such line; \
take the longest part of it that never changes
3:53: lines[1].pattern: has no group value; put (?P<value>…) around the number, as in (?P<value>[0-9.]+)
3:73: lines[1].unit: must be a unit of at most 20 characters; write for example ms
4:52: lines[2].pattern: has the group sort, which stands for nothing; known: value, metric, unit, rank, step; \
write (?:…) around what is not to be read
5:12: lines[3].name: gather is already the name of lines[2]; give each its own
5:43: lines[3].patern: unknown key; did you mean pattern?
5:60: lines[3].unit: must be a unit of at most 20 characters; write for example ms
6:5: lines[4].name: is required; add it
6:5: lines[4].pattern: is required; add it
7:5: lines[5]: must be a mapping; write it as key: value lines
"""


def test_every_fault_is_told_at_its_place(complains: Complains) -> None:
    assert complains(EVERYTHING_WRONG) == EVERY_PROBLEM.splitlines()


def test_without_the_engine_the_configuration_is_refused(
    complains: Complains, loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    assert complains(ONE) == [
        "3:3: lines: are read with google-re2, which is not installed; pip install 'verlwatch[own]'"
    ]
    assert loads("lines: []") == Config()


def test_there_may_be_so_many_that_others_are_still_read_quickly(complains: Complains, loads: Loads) -> None:
    entries = [f"{{name: n{number}, contains: gather {number:02}, pattern: '(?P<value>.)'}}" for number in range(33)]
    assert len(loads(f"lines: [{', '.join(entries[:32])}]").lines) == 32
    (problem,) = complains(f"lines: [{', '.join(entries)}]")
    assert problem.startswith("1:8: lines: must be at most 32")


def test_a_good_one_is_a_kind_of_line(loads: Loads) -> None:
    (line,) = own_lines(loads(ONE))
    assert (line.NAME, line.NEEDLES, line.unit) == ("reshard_time", (b"sharding_manager __",), "ms")
    assert line.search("x sharding_manager __exit__ time%: 12.5") == {"metric": "__exit__", "value": "12.5"}
    assert own_lines(Config()) == ()


def test_flags_and_variables_leave_them_alone(loads: Loads) -> None:
    config = loads(ONE)
    assert apply(config, {"VERLWATCH_LOG_LEVEL": "debug"}, {}).lines == config.lines


def test_they_change_without_a_restart(loads: Loads) -> None:
    reload = changes(loads(ONE), loads(ONE.replace("unit: ms", "unit: s")))
    assert (reload.live, reload.restart) == (("lines",), ())
    assert own_lines(loads(ONE)) == own_lines(loads(ONE))


def test_the_example_in_the_example_is_a_good_one(config_file: Path) -> None:
    text = EXAMPLE.read_text()
    block = text[text.index("# lines:\n") :].split("\n\n")[0]
    config_file.write_text("runs: [{logs: [/a]}]\n" + "".join(f"{line[2:]}\n" for line in block.splitlines()))
    assert [problem.text for problem in check(config_file) if problem.path.startswith("lines")] == []
