"""Growth a step, how sure it is, and when a limit is reached: exact numbers, and what must not be told."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import orjson
import pytest

from verlwatch.core.outlook._forecast import KEPT, Trend, carried_over, growth, slope, time_to
from verlwatch.core.rules import Span

LIMIT = 95.0


def line(*values: float) -> list[tuple[int, float]]:
    return list(enumerate(values, 1))


def told_at(values: Iterable[float], limit: float = LIMIT) -> int | None:
    """The first step at which the limit is foreseen."""
    trend = Trend()
    for step, value in enumerate(values, 1):
        trend.add(step, value)
        if trend.lead(limit):
            return step
    return None


def noisy(seed: int, scale: float, of: Callable[[int], float], steps: int) -> list[float]:
    chance = random.Random(seed)
    carried, values = 0.0, []
    for step in range(1, steps + 1):
        carried = 0.6 * carried + 0.8 * chance.gauss(0.0, scale)
        values.append(of(step) + carried)
    return values


def lead_of(rate: float, scale: float, seed: int) -> int:
    """Steps from the first word of a leak that begins at step 120 with half in use, to the limit."""
    values = noisy(seed, scale, lambda step: 50.0 + rate * max(0, step - 120), 120 + int(60 / rate))
    full = next(step for step, value in enumerate(values, 1) if value >= LIMIT)
    told = told_at(values[: full - 1])
    return 0 if told is None else full - told


def test_a_straight_line_has_its_slope_and_no_width() -> None:
    assert slope(line(1, 3, 5, 7, 9, 11)) == Span(2.0, 2.0, 2.0)
    found = growth(line(1, 3, 5, 7, 9, 11))
    assert found is not None
    assert (found.slope, found.level, found.before, found.since, found.seen) == (Span(2.0, 2.0, 2.0), 11, 3, 1, 5)
    assert time_to(found, 21.0) == Span(5.0, 5.0, 5.0)


def test_the_interval_is_sens() -> None:
    """Of 28 slopes, C = 1.645·√(8·7·21/18) = 13.3: those of rank 7 from either end."""
    values = line(1.0, 4.0, 3.0, 7.0, 9.0, 8.0, 12.0, 20.0)
    slopes = sorted((b - a) / (j - i) for i, a in values for j, b in values if i < j)
    found = slope(values)
    assert found == Span(slopes[6], (slopes[13] + slopes[14]) / 2, slopes[21])


def test_scipy_gives_the_same_slope_and_no_wider_interval() -> None:
    """``scipy.stats.theilslopes(values, steps, 0.9)`` rounds the rank, here it is rounded outwards."""
    found = slope(line(2.0, 1.5, 3.1, 2.2, 4.8, 3.9, 4.1, 6.6, 5.2, 5.9, 7.7, 6.1, 8.4, 7.9, 9.0))
    assert found == pytest.approx(Span(0.4, 0.5285714285714286, 0.6125))
    assert found is not None
    assert found.low <= 0.4 + 1e-12 < 0.6 <= found.high


def test_what_carries_over_widens_the_interval() -> None:
    values = line(*noisy(3, 1.0, lambda _: 0.0, 40))
    narrow, wide = slope(values), slope(values, 0.6)
    assert narrow is not None
    assert wide is not None
    assert wide.low < narrow.low < narrow.high < wide.high


def test_a_bend_does_not_pass_for_carrying_over() -> None:
    assert carried_over([50.0] * 30 + [50.0 + step for step in range(30)]) == 0.0
    assert carried_over(noisy(1, 1.0, lambda step: step, 400)) == pytest.approx(0.6, abs=0.1)


def test_a_quarter_of_the_values_may_be_anything() -> None:
    values = [50.0 + 0.5 * step + (30.0 if step % 5 == 0 else 0.0) for step in range(1, 41)]
    found = growth(line(*values))
    assert found is not None
    assert found.slope.mid == pytest.approx(0.5, abs=0.05)
    assert found.swing == pytest.approx(30.0, abs=2.0)


def test_missing_steps_are_no_slower_growth() -> None:
    found = growth([(step, 50.0 + step) for step in range(1, 80, 3)])
    assert found is not None
    assert found.slope.mid == 1.0


def test_where_growth_has_just_begun_the_last_steps_count() -> None:
    found = growth(line(*([50.0] * 50), *(50.0 + 2.0 * step for step in range(1, 11))))
    assert found is not None
    assert found.slope.high == pytest.approx(2.0)
    assert found.seen < 20


@pytest.mark.parametrize(("rate", "least"), [(0.1, 250), (0.3, 60), (1.0, 20), (3.0, 5)])
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
def test_a_leak_that_begins_late_is_told_well_before_the_limit(rate: float, least: int, scale: float) -> None:
    leads = sorted(lead_of(rate, scale, seed) for seed in range(3))
    assert leads[1] >= least


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
def test_a_percent_a_step_is_always_told_ten_steps_before(scale: float) -> None:
    assert min(lead_of(1.0, scale, seed) for seed in range(10)) >= 10


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(lambda _: 90.0, id="nearly full and flat"),
        pytest.param(lambda step: 60.0 if step < 200 else 85.0, id="a jump"),
        pytest.param(lambda step: 50.0 + 30.0 * (1 - 0.97**step), id="growth that slows down"),
        pytest.param(lambda step: 70.0 + 0.4 * (step % 25), id="a saw-tooth of 25 steps"),
        pytest.param(lambda step: 75.0 + (15.0 if step % 25 == 0 else 0.0), id="validation takes and gives back"),
        pytest.param(lambda step: 50.0 + 0.02 * step, id="slow growth that is far from the limit"),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_no_growth_to_the_limit_is_not_told(of: Callable[[int], float], seed: int) -> None:
    assert told_at(noisy(seed, 0.3, of, 400)) is None


def test_a_long_tooth_is_told_once_at_most() -> None:
    """The first ramp may be a leak; the next ones are known to fall back."""
    values = noisy(1, 0.3, lambda step: 70.0 + 0.15 * (step % 100), 400)
    trend = Trend()
    told = []
    for step, value in enumerate(values, 1):
        trend.add(step, value)
        if trend.lead(LIMIT):
            told.append(step)
    assert max(told) < 120


def test_a_saw_tooth_that_climbs_is_told_by_its_tops() -> None:
    values = noisy(1, 0.3, lambda step: 60.0 + 0.05 * step + 0.4 * (step % 25), 700)
    full = next(step for step, value in enumerate(values, 1) if value >= LIMIT)
    told = told_at(values)
    assert told is not None
    assert full - told >= 100


def test_a_trend_goes_on_after_a_restart_as_if_there_had_been_none() -> None:
    one, other = Trend(), Trend()
    for step, value in enumerate(noisy(2, 1.0, lambda step: 50.0 + 0.3 * step, 140), 1):
        one.add(step, value)
        other.add(step, value)
        other = Trend.from_state(orjson.loads(orjson.dumps(other.state())))
        assert other.lead(LIMIT) == one.lead(LIMIT)
    assert len(one.points) == KEPT
    assert len(orjson.dumps(one.state())) <= 1024


def test_a_step_that_is_not_later_is_left_out() -> None:
    trend = Trend()
    for step in (1, 2, 3, 4, 4, 2, 5):
        trend.add(step, float(step))
    assert [step for step, _ in trend.points] == [4, 5]
