"""`verlwatch check --sample` and `verlwatch parse --config`: what own lines find in a log."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from verlwatch.cli import main

LOG = """\
(WorkerDict pid=41) sharding_manager __enter__ time%: 2929.5
(WorkerDict pid=42) sharding_manager __enter__ time%: n/a
(TaskRunner pid=7) step:1 - timing_s/gen:2.5 - timing_s/step:4.5 - perf/throughput:100.0
(TaskRunner pid=7) step 1: data wait 1.5 s"""
GOOD = r"""
lines:
  - name: reshard_time
    contains: "sharding_manager __"
    pattern: 'sharding_manager (?P<metric>\w+) time%: (?P<value>[0-9.]+|n/a)'
    unit: ms
  - {name: data_wait, contains: "data wait", pattern: 'step (?P<step>\d+): data wait (?P<value>\S+) (?P<unit>\w+)'}
"""
IDLE = r"""
  - {name: absent, contains: "gather took", pattern: '(?P<value>\d+)'}
  - {name: other, contains: "data wait", pattern: 'data wait: (?P<value>\d+)'}
  - {name: greedy, contains: "timing_s/gen", pattern: 'gen:(?P<value>[0-9.]+)'}
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text(LOG)
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "verlwatch.yaml"
    path.write_text(GOOD)
    return path


def test_each_match_is_shown_with_its_line_its_groups_and_what_is_read(
    log: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--config", str(config), "--sample", str(log)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "reshard_time: 2 matches, 1 not read",
        "  line 1: metric=__enter__, value=2929.5 -> __enter__ = 2.9295 s",
        "  line 2: metric=__enter__, value=n/a -> not read: value 'n/a' is no number",
        "data_wait: 1 match",
        "  line 4: step=1, value=1.5, unit=s -> own/data_wait = 1.5 in step 1",
        "built-in kinds of line: step_metrics 1",
    ]


def test_what_reads_nothing_says_why_and_makes_the_exit_code_1(
    log: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(GOOD.rstrip() + IDLE)
    assert main(["check", "--config", str(config), "--sample", str(log)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[5:] == [
        "absent: nothing; no line holds 'gather took'",
        "other: nothing; the pattern does not match line 4: step 1: data wait 1.5 s",
        "greedy: 1 match, 1 read by another kind of line first",
        "  line 3: value=2.5 -> greedy = 2.5",
        "built-in kinds of line: step_metrics 1",
    ]


def test_of_many_matches_the_first_are_shown_and_a_packed_log_will_do(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log.gz"
    line = "(WorkerDict pid=41) sharding_manager __exit__ time%: 12.5\n"
    log.write_bytes(gzip.compress((line * 3000).encode() + LOG.encode()))
    assert main(["check", "--config", str(config), "--sample", str(log)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "reshard_time: 3002 matches, 1 not read"
    assert said[10:12] == ["  line 10: metric=__exit__, value=12.5 -> __exit__ = 0.0125 s", "  and 2992 more"]


def test_what_a_log_holds_does_no_harm_to_a_terminal(
    log: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.write_text("data wait step 1: data wait \x1b]0;x\x07 s\nsharding_manager \x9b2J time%: 3\n")
    assert main(["check", "--config", str(config), "--sample", str(log)]) == 1
    assert capsys.readouterr().out.replace("\n", "").isprintable()


@pytest.mark.parametrize(("text", "code"), [("lines: [{name: x}]", 2), (GOOD, 1)])
def test_a_bad_configuration_is_2_and_a_log_that_is_not_there_1(
    text: str, code: int, tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(text)
    sample = tmp_path / ("train.log" if code == 1 else "verlwatch.yaml")
    assert main(["check", "--config", str(config), "--sample", str(sample)]) == code
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 2 if code == 2 else 1)


def test_parse_prints_them_among_the_others(log: Path, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "--json", "--config", str(config), str(log)]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["kind"] for record in records] == ["own", "step_metrics"]
    assert records[0]["attributes"] == {"line": "reshard_time", "metric": "__enter__", "value": 2.9295, "unit": "s"}
    assert main(["parse", "--json", str(log)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
