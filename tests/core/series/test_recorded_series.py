"""Recorded runs of verl 0.1 to 0.9.1, series by series: what was injected is found, and nothing else.

Injected: gen x4 in steps 120-123, old_log_prob x3 in 150-151, gen x1.6 from 200 on.
"""

from __future__ import annotations

import pytest

from tests.core.series.harness import judge, recorded, watch_of
from verlwatch.core.phases import STEP, THROUGHPUT
from verlwatch.core.types import ChangePoint

WORKER = "ray_session/worker-97c7b7d74d3ad70806480ae311817e17bd043adab20b29195d9d0836-01000000-10691.out.gz"
RUNS = (
    "verl-0.3.0.post1.driver.log.gz",
    "verl-0.4.1.debug.driver.log.gz",
    "verl-0.4.1.allranks-debug.nodedup.driver.log.gz",
    "verl-0.9.1.numpy2.nocolor.driver.log.gz",
    "verl-0.9.1.file_logger.jsonl.gz",
    WORKER,
)
OLD = "verl-0.1.locallogger.log.gz"
RATES = (1e-4, 1e-5, 1e-6)


def actions(told: list[ChangePoint]) -> list[tuple[str, str]]:
    return [(point.kind, point.action) for point in told]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", [*RUNS, OLD])
def test_the_slow_stretch_of_gen_is_told_at_once_and_closes_when_it_ends(name: str, rate: float) -> None:
    told = [point for point in judge(name, rate)["gen"] if point.step < 190]
    assert actions(told) == [("spike", "opened"), ("level", "changed"), ("level", "returned")]
    opened, changed, returned = told
    assert opened.step in {120, 121}
    assert 3.5 <= opened.effect <= 4.5
    assert changed.onset == 120
    assert 3.5 <= changed.effect <= 4.5
    assert returned.onset == 124
    assert returned.step <= 126
    assert 0.85 <= returned.effect <= 1.15


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", [*RUNS, OLD])
def test_the_lasting_shift_of_gen_opens_as_a_level_with_its_onset_and_ratio(name: str, rate: float) -> None:
    told = [point for point in judge(name, rate)["gen"] if point.step >= 190]
    assert actions(told) == [("level", "opened")]
    assert 198 <= told[0].onset <= 202
    assert 1.5 <= told[0].effect <= 1.7
    assert told[0].step <= 205


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", RUNS)
def test_the_two_slow_steps_of_old_log_prob_open_and_close(name: str, rate: float) -> None:
    told = judge(name, rate)["old_log_prob"]
    assert actions(told) == [("spike", "opened"), ("spike", "returned")]
    assert told[0].step in {150, 151}
    assert 2.6 <= told[0].effect <= 3.4
    assert told[1].onset == 152
    assert told[1].step <= 154


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", [*RUNS, OLD])
def test_no_other_phase_changes(name: str, rate: float) -> None:
    told = judge(name, rate)
    assert len(told) >= 6, "the file was not read"
    explained = {"gen", STEP, THROUGHPUT, *(("old_log_prob",) if name != OLD else ())}
    assert {metric: points for metric, points in told.items() if points and metric not in explained} == {}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("metric", [STEP, THROUGHPUT])
def test_step_and_throughput_change_only_where_a_phase_did(name: str, metric: str, rate: float) -> None:
    onsets = {point.onset for point in judge(name, rate)[metric]}
    assert onsets <= {120, 124, 150, 151, 152, 200, 201}
    assert {120, 200} <= onsets


def test_validation_and_checkpoint_steps_are_judged_without_them() -> None:
    """They make step 50 twice as long; corrected, it is an ordinary step."""
    step = next(record for record in recorded(RUNS[1]) if record.step == 50)
    assert step.values[STEP] < 80.0


@pytest.mark.parametrize("name", ["tutorial-forms.log.gz", "ray-misc.driver.log.gz"])
def test_a_handful_of_steps_tells_nothing_yet(name: str) -> None:
    told = judge(name, 1e-4)
    assert "gen" in told
    assert not any(told.values())


@pytest.mark.parametrize("name", RUNS)
def test_the_slow_stretch_teaches_the_baseline_nothing(name: str) -> None:
    """With the four slow steps made normal again, the expectation afterwards is the same to 2 %."""
    slow, clean = watch_of(), watch_of()
    for record in recorded(name):
        if record.step > 140:
            break
        seconds, work = record.values["gen"], record.work
        slow.update(record.step, seconds, work)
        clean.update(record.step, seconds / 4.0 if 120 <= record.step <= 123 else seconds, work)
    expected, without = slow.expected(work), clean.expected(work)
    assert expected is not None
    assert without is not None
    assert expected == pytest.approx(without, rel=0.02)
