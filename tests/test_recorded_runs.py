"""Recorded runs of verl 0.1 to 0.9.1, replayed as a user would: exactly what was injected is found, and nothing else.

Injected: gen ×4 in steps 120-123, old_log_prob ×3 in 150-151, gen ×1.6 from 200 on, a gradient that is nan in 260
(tests/data/README.md).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verlwatch.cli import main
from verlwatch.core.lines import Reader
from verlwatch.core.types import Samples

CONSOLE = (
    "verl-0.3.0.post1.driver.log",
    "verl-0.4.1.debug.driver.log",
    "verl-0.4.1.allranks-debug.nodedup.driver.log",
    "verl-0.9.1.numpy2.nocolor.driver.log",
)
JSONL = "verl-0.9.1.file_logger.jsonl"
Found = list[dict[str, Any]]


def replay(capsys: pytest.CaptureFixture[str], *logs: Path) -> Found:
    assert main(["replay", "--json", *map(str, logs)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def check(found: Found, *, ends: bool) -> None:
    """The four incidents of the recorded runs, but for memory; ``ends``: the log says that the run is over."""
    found = [event for event in found if not event["rule"].startswith("memory_")]
    opened = [event for event in found if event["event"] == "opened"]
    closed = {event["incident"]: event for event in found if event["event"] == "closed"}
    assert [event["phase"] for event in opened] == ["gen", "old_log_prob", "gen", "losses"]
    gen, old, shift, nan = opened

    assert 120 <= gen["step"] <= 121
    assert 3.5 <= gen["ratio"] <= 4.5
    assert closed[gen["incident"]]["closed_as"] == "resolved"
    assert 123 < closed[gen["incident"]]["step"] <= 128

    assert 150 <= old["step"] <= 151
    assert 2.6 <= old["ratio"] <= 3.4
    assert closed[old["incident"]]["closed_as"] == "resolved"
    assert 151 < closed[old["incident"]]["step"] <= 156

    assert 198 <= shift["onset_step"] <= 202
    assert 1.5 <= shift["ratio"] <= 1.7
    if ends:
        assert closed[shift["incident"]]["closed_as"] == "run ended"

    assert (nan["rule"], nan["step"], nan["summary"]) == ("not_finite", 260, "actor/grad_norm is nan at step 260")
    assert (closed[nan["incident"]]["closed_as"], closed[nan["incident"]]["step"]) == ("resolved", 261)
    assert len(closed) == 3 + ends


def test_where_all_ranks_print_their_memory_the_leaking_one_is_named(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [event for event in replay(capsys, recorded / CONSOLE[2]) if event["rule"].startswith("memory_")]
    told = [event for event in found if event["severity"] != "info"]
    assert {event["phase"] for event in told} == {"memory rank 3"}
    assert told[0]["event"] == "opened"
    assert 180 <= told[0]["onset_step"] <= told[0]["step"] <= 184
    assert "growing 1." in told[0]["title"]
    for name in (*CONSOLE[:2], CONSOLE[3], JSONL):
        assert not [event for event in replay(capsys, recorded / name) if event["rule"].startswith("memory_")]


@pytest.mark.parametrize("name", CONSOLE)
def test_a_console_log_tells_what_was_injected(recorded: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    check(replay(capsys, recorded / name), ends=True)


def test_a_jsonl_log_tells_what_was_injected(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(replay(capsys, recorded / JSONL), ends=False)


@pytest.mark.parametrize("order", [1, -1], ids=["console first", "jsonl first"])
def test_console_and_jsonl_of_one_run_are_counted_once(
    recorded: Path, capsys: pytest.CaptureFixture[str], order: int
) -> None:
    check(replay(capsys, *[recorded / CONSOLE[-1], recorded / JSONL][::order]), ends=True)


def test_the_oldest_release_tells_its_gen_events_and_its_nan_only(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = [e for e in replay(capsys, recorded / "verl-0.1.locallogger.log") if e["event"] == "opened"]
    assert [(event["phase"], event["onset_step"]) for event in opened] == [("gen", 120), ("gen", 200), ("losses", 260)]


def test_a_log_of_crashes_and_fragments_tells_of_the_crashes_as_one(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (opened,) = replay(capsys, recorded / "ray-misc.driver.log")
    assert (opened["event"], opened["rule"], opened["severity"]) == ("opened", "device_oom", "critical")


def test_console_values_equal_those_of_the_jsonl_to_the_digit(recorded: Path) -> None:
    def values(path: Path) -> dict[int, Samples]:
        reader = Reader(str(path))
        records = reader.feed(path.read_bytes(), 0.0) + reader.finish(0.0)
        return {record.step: record for record in records if isinstance(record, Samples)}

    console, jsonl = values(recorded / CONSOLE[-1]), values(recorded / JSONL)
    shared = console.keys() & jsonl.keys()
    assert len(shared) == 301
    for step in shared:
        a, b = console[step].values, jsonl[step].values
        differing = {key: (a[key], b[key]) for key in a.keys() & b.keys() if a[key] != b[key] and a[key] == a[key]}
        assert differing == {}, step
        assert a.keys() >= b.keys()


@pytest.mark.parametrize("name", [*CONSOLE, JSONL])
def test_the_same_findings_whatever_the_size_of_the_pieces(
    recorded: Path, capsys: pytest.CaptureFixture[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = replay(capsys, recorded / name)
    monkeypatch.setattr("verlwatch.replay.PIECE", 1013)
    assert replay(capsys, recorded / name) == whole
