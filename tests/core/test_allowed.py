"""How long a step may take: never less than healthy runs need, never more than three times what theirs took."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SOAK
from verlwatch.core.incidents import Moment
from verlwatch.core.life import Life
from verlwatch.core.life._allowed import FACTOR, OwnPace, quantile
from verlwatch.core.rules import Stage
from verlwatch.core.settings import Patience, Settings

PATIENCE = Patience()
PLANNED = 300
CONFIG = {"trainer.test_freq": 25, "trainer.save_freq": 50}


def paced(steps: int = 20, step_s: float = 60.0, *, first: int = 1, **apart: float) -> OwnPace:
    """A run whose steps take so long; ``apart``: seconds of what each tenth step did besides."""
    pace = OwnPace()
    for step in range(first, first + steps):
        extra = apart if step % 10 == 0 else {}
        pace.take(step, step_s, extra, step_s + sum(extra.values()))
    return pace


def seconds(pace: OwnPace, step: int, stage: str = "step", config: dict[str, int] | None = None) -> float:
    return pace.allowance(step, stage, config or {}, PATIENCE, PLANNED).seconds


# -------------------------------------------------------------------------------------------------- the parts
def test_a_step_may_take_two_and_a_half_times_the_95th_percentile() -> None:
    assert paced().allowance(20, "step", {}, PATIENCE) == (
        150.0, "2.5× the 95th percentile of its steps, 60 s",
    )  # fmt: skip


def test_few_steps_are_trusted_less() -> None:
    assert paced(3).allowance(3, "step", {}, PATIENCE) == (240.0, "4× the longest of its few steps, 60 s")


def test_steps_of_a_second_are_given_ten() -> None:
    assert seconds(paced(step_s=1.0), 20) == 10.0


@pytest.mark.parametrize(
    ("stage", "limit"),
    [("start", 1800.0), ("loading", 3600.0), ("first step", 3600.0), ("validation", 3600.0), ("gen", 3600.0)],
)
def test_before_the_first_step_limits_of_the_configuration_hold(stage: str, limit: float) -> None:
    assert seconds(OwnPace(), -1, stage) == limit


def test_a_validation_that_has_begun_or_is_due_is_counted_in() -> None:
    pace = paced(testing=100.0)
    assert seconds(pace, 25, "validation") == 150 + 250
    assert seconds(pace, 29) == 150 + 250
    assert seconds(pace, 28) == 150


def test_a_first_validation_has_its_own_limit_where_it_has_begun_or_the_configuration_says_that_it_comes() -> None:
    assert seconds(paced(), 20, "validation") == 150 + 3600
    assert seconds(paced(), 24, config=CONFIG) == 150 + 3600
    assert seconds(paced(), 23, config=CONFIG) == 150
    assert seconds(paced(), 24, config={"trainer.test_freq": -1}) == 150


def test_at_the_last_step_it_validates_and_saves_though_it_is_not_due() -> None:
    pace = paced(testing=100.0, save_checkpoint=20.0)
    assert seconds(pace, PLANNED - 2) == 150
    assert seconds(pace, PLANNED - 1) == 150 + 250 + 50


@pytest.mark.parametrize(("first", "due"), [(1, {20, 30}), (6, {15, 20, 25, 30}), (11, {30})])
def test_one_validation_alone_tells_when_the_next_may_come(first: int, due: set[int]) -> None:
    pace = OwnPace()
    for step in range(first, 21 if first > 10 else 11):
        extra = {"testing": 100.0} if step % 10 == 0 else {}
        pace.take(step, 60.0, extra, 60.0 + sum(extra.values()))
    last = 20 if first > 10 else 10
    assert {step for step in range(last + 1, 35) if seconds(pace, step - 1) > 150} == due


def test_what_is_printed_late_is_not_late() -> None:
    pace = OwnPace()
    for step in range(1, 31):
        pace.take(step, 60.0, {}, 180.0 if step % 3 == 0 else 0.0)
    assert seconds(pace, 30) == 2.5 * 180


def test_a_log_written_in_blocks_tells_late_of_a_validation_that_is_two_steps_ahead() -> None:
    pace = OwnPace()
    for step in range(1, 31):
        extra = {"testing": 100.0} if step % 10 == 0 else {}
        pace.take(step, 60.0, extra, 180.0 + sum(extra.values()) if step % 3 == 0 else 0.0)
    assert [seconds(pace, step) > 450 for step in (36, 37, 39, 40)] == [False, True, True, False]


def test_a_stall_that_ended_is_no_measure_of_the_next_one() -> None:
    pace = paced(8)
    pace.take(9, 600.0, {}, 600.0, was_late=True)
    assert seconds(pace, 9) == 150
    pace.take(10, 60.0, {}, 60.0)
    assert seconds(pace, 10) == 150


def test_two_late_steps_in_a_row_are_the_pace() -> None:
    pace = paced(40)
    pace.take(41, 600.0, {}, 600.0, was_late=True)
    pace.take(42, 580.0, {}, 580.0, was_late=True)
    assert pace.allowance(42, "step", {}, PATIENCE) == (870.0, "1.5× its last steps, 580 s")


def test_it_is_the_same_after_a_restart() -> None:
    pace = paced(12, testing=100.0)
    pace.take(13, 600.0, {}, 600.0, was_late=True)
    again = OwnPace()
    again.restore(orjson.loads(orjson.dumps(pace.state())))
    for one in (pace, again):
        one.take(14, 590.0, {}, 590.0, was_late=True)
    assert [seconds(pace, step) for step in range(14, 40)] == [seconds(again, step) for step in range(14, 40)]
    assert again.state() == pace.state()


# -------------------------------------------------------------------------------------------------- all together
class Step(NamedTuple):
    """Of a healthy run: its seconds, and what it did besides."""

    number: int
    took_s: float
    apart: dict[str, float]

    @property
    def whole_s(self) -> float:
        return self.took_s + sum(self.apart.values())


class Healthy:
    """A run as they are: responses grow, a step in thirty is slow, it validates every 25 steps and saves every 50.

    Its lines come at once or in blocks of up to three steps.  It shows its configuration, or says what begins.
    """

    def __init__(self, seed: int) -> None:
        noise = self.noise = random.Random(seed)
        self.step_s = noise.choice([8.0, 30.0, 70.0, 200.0, 400.0])
        self.block = noise.choice([1, 1, 1, 2, 3])
        self.says_what_begins = self.block == 1 and noise.random() < 0.5
        self.config = {} if self.says_what_begins else CONFIG

    def steps(self) -> Iterator[Step]:
        noise, spread = self.noise, self.noise.choice([0.02, 0.05, 0.1, 0.2])
        growth, slow = noise.choice([0.0, 0.0, 0.002, 0.005]), noise.choice([0.0, 0.03])
        testing_s, saving_s = self.step_s * noise.uniform(0.3, 3), self.step_s * noise.uniform(0.1, 2)
        for number in range(1, PLANNED + 1):
            took = self.step_s * (1 + growth * number) * noise.lognormvariate(0, spread)
            took *= noise.uniform(1, 2.5) if number == 1 else noise.uniform(1.2, 2) if noise.random() < slow else 1
            apart = {}
            if number % 25 == 0:
                apart["testing"] = testing_s * noise.lognormvariate(0, spread)
            if number % 50 == 0:
                apart["save_checkpoint"] = saving_s * noise.lognormvariate(0, spread)
            yield Step(number, took, apart)

    def blocks(self) -> Iterator[list[Step]]:
        """Steps whose lines come at once, when the last of them is over."""
        block: list[Step] = []
        for step in self.steps():
            block.append(step)
            if len(block) >= self.block or step.number == PLANNED:
                yield block
                block = []


STAGES = {"testing": "validation", "save_checkpoint": "checkpoint"}


def false_stalls(seed: int) -> Iterator[str]:
    """Where a healthy run is called late."""
    run, pace, last, stage = Healthy(seed), OwnPace(), -1, "first step"
    for block in run.blocks():
        waited = sum(step.whole_s for step in block)
        parts = block[0].apart.items() if run.says_what_begins else ()
        for name, took in parts:  # until then nobody knows of it
            stage = STAGES[name]
            waited, until = waited - took, waited - sum(s for _, s in parts)
            allowed = pace.allowance(last, stage if until > block[0].took_s else "step", run.config, PATIENCE, PLANNED)
            if until >= allowed.seconds:
                yield f"seed {seed}, step {block[0].number}: {until:.0f} s before {name}, allowed {allowed}"
        allowed = pace.allowance(last, stage, run.config, PATIENCE, PLANNED)
        whole = sum(step.whole_s for step in block)
        if whole >= allowed.seconds:
            yield f"seed {seed}, step {block[0].number} ({stage}): {whole:.0f} s, allowed {allowed}"
        for at, step in enumerate(block):
            pace.take(step.number, step.took_s, step.apart, 0.0 if at else whole)
        last, stage = block[-1].number, "step"


def test_no_healthy_run_is_called_stuck() -> None:
    found = [words for seed in range(200) for words in false_stalls(seed)]
    assert found == []


@pytest.mark.parametrize("seed", range(200 if SOAK else 6))
def test_no_healthy_run_is_told_of_by_the_clock(seed: int) -> None:
    run, life, now = Healthy(seed), Life("r", Settings(receivers=("team",))), 1e9
    life.config, life.planned = run.config, PLANNED
    told: list[str] = []

    def turn(until: float) -> float:
        at = now
        while (due := life.due(at)) is not None and due <= until:
            at = due
            told.extend(change.after.diagnoses[0].title for change in life.look(Moment("r", 1, life.step, at), None))
        return until

    def begin(stage: str) -> None:
        life.heard(now, history=False)
        life.stages.now = Stage(stage, now, stage)

    begin("first step")
    life.clocks.progress_at = now
    for block in run.blocks():
        now = turn(now + sum(step.took_s for step in block))
        for name, took in [part for step in block for part in step.apart.items()]:
            if run.says_what_begins:
                begin(STAGES[name])
            now = turn(now + took)
        life.heard(now, history=False)
        for step in block:
            timings = {"gen": 0.7 * step.took_s, "update_actor": 0.3 * step.took_s, "step": step.took_s}
            life.stepped("train.log", step.number, timings, {**timings, **step.apart}, now, history=False)
    assert told == []


@given(
    took=st.lists(st.floats(5.0, 15.0), min_size=5, max_size=60),
    every=st.integers(2, 12),
    testing=st.floats(1.0, 60.0),
    scale=st.sampled_from([1.0, 20.0, 300.0]),
)
@settings(max_examples=150, deadline=None)
def test_a_stall_is_told_within_three_times_the_95th_percentile(
    took: list[float], every: int, testing: float, scale: float
) -> None:
    pace = OwnPace()
    for step, s in enumerate(took, 1):
        extra = {"testing": testing * scale} if step % every == 0 else {}
        pace.take(step, s * scale, extra, s * scale + sum(extra.values()))
    last = len(took)
    validates = (last + 1) % every == 0
    allowed = pace.allowance(last, "step", {"trainer.test_freq": every}, PATIENCE).seconds
    if validates and last < every:  # its first one: how long it takes is not known
        return
    p95 = quantile([s * scale for s in took], 0.95) + (testing * scale if validates else 0.0)
    assert p95 < allowed <= max(3 * p95, 10.0)


def test_a_checkpoint_that_has_not_begun_excuses_no_validation() -> None:
    pace = OwnPace()
    for step in range(1, 11):
        pace.take(step, 20.0, {"testing": 40.0} if step == 10 else {}, None)
    config = {"trainer.test_freq": 10, "trainer.save_freq": 20}
    patience = Patience(first_validation_s=3600.0)
    validating = pace.allowance(19, "validation", config, patience)
    assert validating.seconds == FACTOR * 20.0 + FACTOR * 40.0
    assert pace.allowance(19, "checkpoint", config, patience).seconds == validating.seconds + 3600.0
