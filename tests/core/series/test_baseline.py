"""The workload model, the whitening, the contest of two levels, and what tells a level from noise."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest

from tests.core.series.harness import noise
from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._rival import Rival
from verlwatch.core.series.level import Level


def learned(tokens_share: float, path: list[float], *, prior: tuple[float, float] = (0.9, 0.0)) -> Baseline:
    """A baseline that saw steps of 40 s whose ``tokens_share`` grows with tokens that vary by 20 %."""
    tokens = [15_000.0 * math.exp(10.0 * e) for e in noise(77, len(path))]
    values = [
        math.log(40.0 * (1.0 - tokens_share + tokens_share * t / 15_000.0)) + e
        for t, e in zip(tokens, path, strict=True)
    ]
    baseline = Baseline(*prior)
    baseline.begin(values[:16], tokens[:16], [0.0] * 16)
    for step, (y, t) in enumerate(zip(values, tokens, strict=True)):
        baseline.learn(baseline.judge(step, y, *baseline.relative(t, 0.0), 0.0))
    return baseline


@pytest.mark.parametrize("share", [0.6, 0.8, 1.0])
def test_the_share_that_grows_with_tokens_is_learned(share: float) -> None:
    baseline = learned(share, noise(1, 600))
    for factor in (0.7, 1.0, 1.4):
        truth = 40.0 * (1.0 - share + share * factor)
        assert math.exp(baseline.expect(*baseline.relative(15_000.0 * factor, 0.0))) == pytest.approx(truth, rel=0.02)


def test_the_autocorrelation_and_both_scales_are_learned() -> None:
    baseline = learned(0.9, noise(2, 3000, sd=0.05, phi=0.6))
    assert baseline.phi == pytest.approx(0.6, abs=0.1)
    assert baseline.sd == pytest.approx(0.05, rel=0.2)
    assert baseline.sigma == pytest.approx(0.05 * 0.8, rel=0.2)


def test_outliers_hardly_move_the_level_and_the_scale() -> None:
    path = [e + (1.5 if step % 20 == 10 else 0.0) for step, e in enumerate(noise(3, 600))]
    baseline = learned(0.9, path)
    assert math.exp(baseline.expect(0.0, 0.0)) == pytest.approx(40.0, rel=0.04)
    assert baseline.sd < 0.04


def test_a_lone_slow_step_does_not_make_the_next_look_fast() -> None:
    baseline = learned(0.9, noise(4, 600, phi=0.6))
    slow = baseline.judge(600, baseline.expect(0.0, 0.0) + 1.0, 0.0, 0.0, 0.0)
    after = baseline.judge(601, baseline.expect(0.0, 0.0), 0.0, 0.0, 0.0)
    assert slow.score > 20.0
    assert abs(after.score) < 1.0


def test_work_beyond_reason_is_cut() -> None:
    baseline = learned(0.9, noise(5, 100))
    assert baseline.relative(1e11, 0.0) == (99.0, 0.0)
    assert baseline.relative(0.0, 500.0) == (0.0, 0.0)


def test_two_normal_steps_end_a_clear_shift() -> None:
    baseline = learned(0.9, noise(6, 300))
    rival = Rival(math.log(1.5), lasting=True)
    assert [rival.vote(step, residual, baseline) for step, residual in ((7, 0.41), (8, 0.01), (9, -0.02))] == [
        False,
        False,
        True,
    ]
    assert rival.back == 8
    assert rival.back_at == pytest.approx(-0.005)


def test_a_step_near_neither_level_does_not_count_for_the_old_one() -> None:
    baseline = learned(0.9, noise(6, 300))
    rival = Rival(math.log(6.0), lasting=False)
    assert not any(rival.vote(step, math.log(1.7), baseline) for step in range(10))
    assert rival.votes == 0.0


def test_a_shift_that_has_faded_is_over() -> None:
    baseline = learned(0.9, noise(6, 300, sd=0.1))
    assert not Rival(0.05, lasting=True).vote(1, 0.02, baseline)
    assert Rival(0.02, lasting=True).vote(1, 0.02, baseline)


@pytest.mark.parametrize(("scores", "unrest"), [([2000] * 12, 1.0), ([3000, -3000] * 6, 8.0)])
def test_scores_that_vary_more_than_noise_does_weaken_the_evidence_of_a_level(scores: list[int], unrest: float) -> None:
    level = Level(1e-4, sums=list(accumulate([0] * 150 + scores)))
    assert level._unrest(12) == pytest.approx(unrest, abs=0.5)
