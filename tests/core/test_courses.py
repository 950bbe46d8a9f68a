"""The course of a metric that training itself moves: what goes with training is on it, what runs away is not."""

from __future__ import annotations

import random
from math import exp, log

import pytest

from verlwatch.core._courses import SPAN, Courses
from verlwatch.core.metrics import HEALTH, MEASURES, MOVING
from verlwatch.core.types import ChangePoint, SeriesKey


def off(courses: Courses, metric: str, value: float) -> float:
    """How far the value is off its course, on the scale of the metric; worse is above zero."""
    return log(courses.shown(metric, value))


def followed(metric: str, values: list[float]) -> tuple[Courses, list[float]]:
    courses, seen = Courses(), []
    for value in values:
        seen.append(off(courses, metric, value))
        courses.follow(metric, value, None)
    return courses, seen


def change(metric: str, effect: float) -> ChangePoint:
    return ChangePoint(SeriesKey("r", metric), "level", "opened", 9, 9, effect, "ratio", 1.0, effect)


@pytest.mark.parametrize("metric", ["gen", "step", "mfu_actor", "cpu_memory_used_gb"])
def test_what_training_does_not_move_is_shown_as_it_is(metric: str) -> None:
    courses = Courses()
    assert courses.shown(metric, 41.5) == 41.5
    assert courses.meant(metric, 41.5) == 41.5
    assert courses.change(metric, change(metric, 2.0)) == change(metric, 2.0)


@pytest.mark.parametrize("metric", sorted(MOVING))
@pytest.mark.parametrize("value", [-3.0, -0.01, 0.0, 0.004, 0.7, 300.0])
def test_what_is_meant_is_what_was_shown(metric: str, value: float) -> None:
    courses, _ = followed(metric, [0.5, 0.6, 0.4])
    assert courses.meant(metric, courses.shown(metric, value)) == pytest.approx(value, rel=1e-6, abs=1e-9)


def test_worse_is_above_the_course_whether_more_or_less_is_worse() -> None:
    for metric in MOVING:
        courses, _ = followed(metric, [1.0] * 20)
        more, less = off(courses, metric, 1.5), off(courses, metric, 0.5)
        assert (more > 0.0 > less) == (MEASURES[metric].worse == "up")


def test_a_slide_within_the_pace_is_off_by_a_constant() -> None:
    _, seen = followed("entropy", [0.6 * exp(-0.01 * step) for step in range(300)])
    assert seen[60] == pytest.approx(0.01 * SPAN, abs=0.02)
    assert seen[-1] == pytest.approx(seen[60], abs=0.005)


def test_a_collapse_runs_away_from_the_course() -> None:
    courses, seen = followed("entropy", [0.6] * 50 + [0.6 * exp(-0.1 * step) for step in range(1, 21)])
    assert seen[-1] > 1.6
    assert courses.meant("entropy", 1.0) > 0.4


def test_what_becomes_better_is_followed_at_once() -> None:
    _, seen = followed("score", [0.1] * 30 + [0.1 + 0.015 * step for step in range(1, 41)] + [0.7] * 40)
    assert max(seen) < 0.05
    assert min(seen) > -0.6
    assert seen[-1] == pytest.approx(0.0, abs=0.1)


def test_noise_leans_to_neither_side() -> None:
    noise = random.Random(4)
    courses, _ = followed("score", [noise.gauss(0.0, 0.12) for _ in range(400)])
    assert abs(off(courses, "score", 0.0)) < 0.25


def test_a_large_change_holds_the_course_until_it_is_over() -> None:
    courses, _ = followed("entropy", [0.6] * 20)
    for _ in range(50):
        courses.follow("entropy", 0.1, change("entropy", exp(1.2)))
    assert courses.is_held("entropy")
    assert courses.meant("entropy", 1.0) == pytest.approx(0.6)
    courses.follow("entropy", 0.1, change("entropy", 1.1))
    assert courses.is_held("entropy")
    courses.follow("entropy", 0.5, None)
    assert not courses.is_held("entropy")


def test_a_small_change_holds_nothing() -> None:
    courses, _ = followed("entropy", [0.6] * 20)
    for _ in range(60):
        courses.follow("entropy", 0.5, change("entropy", exp(0.18)))
    assert courses.meant("entropy", 1.0) == pytest.approx(0.5, rel=0.02)


def test_the_state_goes_on_as_it_would_have() -> None:
    values = [0.5 + 0.01 * (step % 7) for step in range(40)]
    courses, _ = followed("kl", values[:20])
    other = Courses()
    other.restore(courses.state())
    for value in values[20:]:
        assert other.shown("kl", value) == courses.shown("kl", value)
        for one in (courses, other):
            one.follow("kl", value, None)


@pytest.mark.parametrize("value", [1e300, -1e300, 5e-324])
@pytest.mark.parametrize("metric", sorted(HEALTH))
def test_absurd_values_stay_numbers(metric: str, value: float) -> None:
    courses, _ = followed(metric, [0.5] * 10)
    assert 0.0 < courses.shown(metric, value) < 1e12
