"""Recorded runs and excerpts of public logs are read as their notes say.

The recorded runs are in tests/data.  Excerpts of public logs are other people's text and no part of this repository:
VERLWATCH_PUBLIC_LOGS names a folder that has them (default: shared/corpus beside the repository), each NUMBER-*.log
with its reading in a .yaml beside it.  What they are shaped like is in tests/corpus, with made-up numbers.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from verlwatch.core.types import Event, Record, Samples

BESIDE = Path(__file__).parents[4] / "shared" / "corpus"
PUBLIC = Path(os.environ.get("VERLWATCH_PUBLIC_LOGS", BESIDE))
CASES = ("001", "009", "010", "012", "013", "015", "018", "021", "022", "043")

Read = Callable[..., list[Record]]


def public(number: str) -> tuple[bytes, dict[str, Any]]:
    if not PUBLIC.is_dir():
        pytest.skip("needs excerpts of public logs: VERLWATCH_PUBLIC_LOGS names their folder")
    (log,) = PUBLIC.glob(f"{number}-*.log")
    return log.read_bytes(), yaml.safe_load(log.with_suffix(".yaml").read_text())["expect"]


def by_step(records: list[Record]) -> dict[int, Samples]:
    return {record.step: record for record in records if isinstance(record, Samples)}


def events(records: list[Record], name: str) -> list[Event]:
    return [record for record in records if isinstance(record, Event) and record.name == name]


@pytest.mark.parametrize("number", CASES)
def test_a_public_log_reads_as_its_notes_say(number: str, read: Read) -> None:
    data, expect = public(number)
    records = read(data)
    steps = by_step(records)
    assert list(steps) == expect["steps"]
    assert len(steps) == sum(isinstance(record, Samples) for record in records)
    for step, values in expect.get("by_step", {}).items():
        assert {key: steps[step].values.get(key) for key in values} == values
    bars = [dict(event.attributes) for event in events(records, "progress")]
    if "tqdm" in expect:
        assert any(expect["tqdm"].items() <= bar.items() for bar in bars)
    else:
        assert bars == []
    assert len(events(records, "finished")) == (number == "022")


def test_steps_whose_timing_is_cut_off_have_no_timing(read: Read) -> None:
    data, expect = public("001")
    steps = by_step(read(data))
    timed = [step for step, samples in steps.items() if any(key.startswith("timing_s/") for key in samples.values)]
    assert timed == expect["steps_with_timing"]
    assert sorted(steps.keys() - set(timed)) == expect["steps_truncated_without_timing"]
    assert {key: steps[1].values[key] for key in expect["step1"]} == expect["step1"]
    for key, value in expect["step14"].items():
        assert steps[14].values[key.removesuffix("_approx")] == pytest.approx(value, rel=1e-3)


def test_console_lines_read_to_the_digit(read: Read) -> None:
    data, expect = public("009")
    steps = by_step(read(data))
    for key in ("timing_s/gen", "timing_s/old_log_prob", "timing_s/update_actor", "timing_s/step"):
        assert [steps[step].values[key] for step in (1, 2)] == expect[key][:2]


@pytest.mark.parametrize(
    ("number", "step", "last"),
    [
        ("001", 0, "val-aux/aime_2025/score/best@30/mean"),
        ("009", 3, "global_seqlen/me"),
        ("010", 2, "timing_per_token_ms/ref"),
        ("012", 1, "prompt_length/m"),
        ("013", 80, "timing_s/old_log_prob"),
        ("013", 83, "timing_s/adv"),
        ("015", 0, "val-aux/math_dapo/reward/maj@2/mean"),
        ("021", 66, "response_length/min"),
    ],
)
def test_the_value_at_a_cut_is_unknown(number: str, step: int, last: str, read: Read) -> None:
    values = by_step(read(public(number)[0]))[step].values
    assert last not in values
    assert len(values) >= 3


def test_nan_of_a_validation_is_a_value(read: Read) -> None:
    values = by_step(read(public("015")[0]))[0].values
    assert len(values) == 6
    assert all(math.isnan(value) for value in values.values())


def test_a_log_of_fragments_is_put_together(recorded: Path, read: Read) -> None:
    records = read((recorded / "ray-misc.driver.log").read_bytes(), piece=65536)
    samples = [record for record in records if isinstance(record, Samples)]
    assert [record.step for record in samples] == [1, 7, 8, 9, 9, 9]
    assert [record.origin.writer.name for record in samples[:2]] == ["main_task", "TaskRunner"]
    assert samples[0].values == {"timing_s/gen": 5.093, "timing_s/step": 8.991}
    assert samples[1].values == {"actor/entropy": 0.5, "timing_s/gen": 41.25, "timing_s/step": 77.7}
    assert len(samples[2].values) == 2001
    assert samples[2].values["rollout/moe/max_vio/layer_1999"] == 739.63
    assert samples[2].values["timing_s/gen"] == 40.5
    assert [(e.attributes["done"], e.attributes["total"]) for e in events(records, "progress")] == [
        *((0, 3), (1, 3), (2, 3), (3, 3), (3, 3)),
    ]


@pytest.mark.parametrize(
    ("name", "decimals", "steps", "counts"),
    [
        ("verl-0.1.locallogger.log", 3, range(300), {}),
        ("verl-0.3.0.post1.driver.log", 3, range(301), {"plan": 2, "resume": 1, "checkpoint": 6, "validated": 1}),
        ("verl-0.4.1.debug.driver.log", 3, range(301), {"plan": 2, "resume": 1, "checkpoint": 6, "validated": 1}),
        ("verl-0.9.1.numpy2.nocolor.driver.log", None, range(301), {"plan": 2, "resume": 1, "checkpoint": 6}),
        ("verl-0.9.1.file_logger.jsonl", None, range(301), {}),
    ],
)
def test_every_line_of_a_recorded_run_is_read_once(
    name: str, decimals: int | None, steps: range, counts: dict[str, int], recorded: Path, read: Read
) -> None:
    records = read((recorded / name).read_bytes(), piece=65536)
    samples = [record for record in records if isinstance(record, Samples)]
    assert [record.step for record in samples] == list(steps)
    assert {record.decimals for record in samples} == {decimals}
    found = Counter(record.name for record in records if isinstance(record, Event))
    assert {event: found[event] for event in counts} == counts
    timed = {record.step for record in samples if {"timing_s/step", "timing/gen"} & record.values.keys()}
    assert timed == set(steps) - ({0} if len(steps) == 301 else set())


def test_console_and_jsonl_of_one_run_agree_to_the_digit(recorded: Path, read: Read) -> None:
    console = by_step(read((recorded / "verl-0.9.1.numpy2.nocolor.driver.log").read_bytes()))
    jsonl = by_step(read((recorded / "verl-0.9.1.file_logger.jsonl").read_bytes()))
    assert console.keys() == jsonl.keys()
    for step, samples in jsonl.items():
        printed = console[step].values
        unknown = {key for key in printed if math.isnan(printed[key])}  # the file says null
        assert {key for key, value in samples.values.items() if math.isnan(value)} == unknown
        assert {key: value for key, value in printed.items() if key not in unknown} == {
            key: value for key, value in samples.values.items() if key not in unknown
        }
