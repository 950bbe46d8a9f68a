"""Where a slowdown comes from: the phase, and how much of it is nothing but more work."""

from __future__ import annotations

import random

import pytest

from verlwatch.core.attribution import Row, attribute, equal_work
from verlwatch.core.types import Workload


def step(gen: float, update: float = 20.0, tokens: float | None = 1000.0, **more: float) -> Row:
    seconds = {"gen": gen, "update_actor": update, **more}
    return Row(seconds | {"step": sum(seconds.values())}, Workload(tokens, tokens))


def test_what_grows_with_its_tokens_has_lost_nothing() -> None:
    found = attribute([step(40.0)] * 4, [step(60.0, 30.0, 1500.0)] * 4)
    assert found is not None
    assert (found.basis, found.tokens) == ("per token", 1.5)
    assert found.step.workload_s == pytest.approx(30.0)
    assert found.step.efficiency_s == pytest.approx(0.0)
    assert [share.ratio for share in found.shares] == [1.0, 1.0]


def test_the_phase_that_moved_leads_with_its_seconds_and_its_part() -> None:
    found = attribute([step(40.0)] * 4, [step(100.0, 22.0, 1100.0)] * 4)
    assert found is not None
    assert found.lead == "gen"
    gen, update = found.shares
    assert (gen.phase, gen.difference_s, update.difference_s) == ("gen", 60.0, 2.0)
    assert gen.part == pytest.approx(60 / 62)
    assert gen.workload_s == pytest.approx(4.0)
    assert gen.efficiency_s == pytest.approx(56.0)
    assert found.other_s == pytest.approx(0.0)


def test_without_tokens_seconds_are_not_split() -> None:
    found = attribute([step(40.0, tokens=None)] * 4, [step(80.0, tokens=None)])
    assert found is not None
    assert found.basis == "seconds"
    assert found.step.workload_s is None
    assert found.shares[0].efficiency_s is None
    assert found.shares[0].ratio is None


def test_what_no_phase_explains_is_told_apart() -> None:
    slower = step(40.0)
    found = attribute([step(40.0)] * 3, [slower._replace(seconds={**slower.seconds, "step": 90.0})] * 3)
    assert found is not None
    assert (found.lead, found.other_s) == ("", 30.0)


def test_what_the_baseline_expected_counts_for_more_than_tokens() -> None:
    before = [step(40.0)._replace(expected={"gen": 40.0, "update_actor": 20.0})] * 5
    after = [step(90.0, 20.0, 1500.0)._replace(expected={"gen": 44.0, "update_actor": 20.0})] * 5
    found = attribute(before, after)
    assert found is not None
    assert found.basis == "baseline"
    assert found.shares[0].workload_s == pytest.approx(4.0)
    assert found.shares[0].efficiency_s == pytest.approx(46.0)


def test_enough_steps_give_a_regression_with_its_fixed_costs() -> None:
    noise = random.Random(3)
    rows = [step(10.0 + 30.0 * t / 1000, tokens=t) for t in (1000 * noise.uniform(0.7, 1.3) for _ in range(200))]
    expect = equal_work("gen", rows)
    assert expect(step(0.0, tokens=1250.0)) == pytest.approx(47.5, rel=0.03)
    found = attribute(rows, [step(47.5, tokens=1250.0)] * 5)
    assert found is not None
    assert found.basis == "regression"
    assert found.shares[0].ratio == pytest.approx(1.0, abs=0.03)


def test_generation_is_reckoned_by_the_tokens_of_its_responses() -> None:
    before = [step(40.0)._replace(responses=500.0)] * 4
    after = [step(80.0, 40.0, 2000.0)._replace(responses=1000.0)] * 4
    found = attribute(before, after)
    assert found is not None
    assert {share.phase: share.ratio for share in found.shares} == {"gen": 1.0, "update_actor": 1.0}


def test_a_phase_of_zero_seconds_divides_nothing() -> None:
    found = attribute([step(40.0, adv=0.0)] * 30, [step(50.0, adv=0.0)] * 30)
    assert found is not None
    assert next(share for share in found.shares if share.phase == "adv").ratio is None


def test_one_step_is_split_by_what_its_baselines_expected() -> None:
    now = {"gen": 90.0, "update_actor": 24.0, "step": 116.0}
    expected = {"gen": 44.0, "update_actor": 24.0, "step": 70.0}
    usual = {"gen": 40.0, "update_actor": 20.0, "step": 62.0}
    found = attribute([Row(usual, expected=usual)], [Row(now, expected=expected)])
    assert found is not None
    assert (found.lead, found.basis) == ("gen", "baseline")
    gen, update = found.shares
    assert gen.efficiency_s == pytest.approx(46.0)
    assert gen.workload_s == pytest.approx(4.0)
    assert update.efficiency_s == pytest.approx(0.0)


def test_nothing_to_compare_is_no_difference() -> None:
    assert attribute([], [step(40.0)]) is None
    assert attribute([Row({"step": 3.0})], [Row({"step": 4.0})]) is None
