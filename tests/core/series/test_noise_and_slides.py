"""A phase that swings more than it did, and one that becomes slower bit by bit."""

from __future__ import annotations

import math

import pytest

from tests.core.series.harness import NO_WORK, feed, noise, watch_of
from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._channel import Seen
from verlwatch.core.series.dispersion import Dispersion
from verlwatch.core.series.drift import GAIN, Drift
from verlwatch.core.types import ChangePoint


def noisy(seed: int, length: int, *, since: int, until: int, factor: float = 3.0, level: float = 1.0) -> list[float]:
    """40 s with 2 % noise, which is ``factor`` times as large in some steps."""
    return [
        40.0 * level * math.exp(e * (factor if since <= step < until else 1.0))
        for step, e in enumerate(noise(seed, length))
    ]


def words(told: list[ChangePoint]) -> list[tuple[str, str]]:
    return [(point.kind, point.action) for point in told]


def test_more_noise_opens_as_dispersion_with_the_spread_then_and_now() -> None:
    told = feed(watch_of(rate=1e-4), noisy(1, 300, since=200, until=300))
    assert words(told) == [("dispersion", "opened")]
    assert 198 <= told[0].onset <= 207
    assert told[0].before == pytest.approx(0.8, rel=0.3)
    assert told[0].effect == pytest.approx(3.0, rel=0.4)
    assert told[0].after == pytest.approx(told[0].before * told[0].effect)


def test_noise_that_calms_down_returns() -> None:
    watch = watch_of(rate=1e-4)
    told = feed(watch, noisy(1, 340, since=200, until=280))
    assert words(told) == [("dispersion", "opened"), ("dispersion", "returned")]
    assert 275 <= told[1].onset <= 290
    assert told[1].step <= 305
    assert watch.change is None


def test_noise_that_stays_is_settled_and_what_the_series_is_judged_by() -> None:
    watch = watch_of(rate=1e-4, accept_after=60)
    told = feed(watch, noisy(1, 600, since=200, until=600))
    assert words(told) == [("dispersion", "opened"), ("dispersion", "settled")]
    assert told[1].step == told[0].step + 60
    assert watch._baseline.sd == pytest.approx(0.06, rel=0.3)


def test_while_a_phase_swings_a_shift_is_judged_by_its_swings_and_told_beside_them() -> None:
    values = noisy(1, 300, since=200, until=300)
    watch = watch_of(rate=1e-4)
    told = feed(watch, [value * (1.6 if step >= 240 else 1.0) for step, value in enumerate(values)])
    assert words(told) == [("dispersion", "opened"), ("level", "opened")]
    assert 239 <= told[1].onset <= 242
    assert told[1].effect == pytest.approx(1.6, rel=0.08)
    assert watch.change == told[1]


def test_when_the_shift_is_over_the_swings_are_the_open_change_again() -> None:
    values = noisy(1, 300, since=200, until=300)
    watch = watch_of(rate=1e-4)
    told = feed(watch, [value * (1.6 if 240 <= step < 260 else 1.0) for step, value in enumerate(values)])
    assert words(told) == [("dispersion", "opened"), ("level", "opened"), ("level", "returned")]
    assert watch.change == told[0]


def test_a_restart_ends_the_swings_and_the_old_noise_counts() -> None:
    watch = watch_of(rate=1e-4)
    feed(watch, noisy(1, 250, since=200, until=250))
    loud = watch._baseline.sd
    watch.update(250, 40.0, NO_WORK, restart=True)
    assert watch.change is None
    assert watch._baseline.sd < loud / 2.0


def test_swings_below_fifty_milliseconds_are_not_told() -> None:
    assert feed(watch_of(rate=1e-4), [value / 1000.0 for value in noisy(1, 300, since=200, until=300)]) == []


@pytest.mark.parametrize("factor", [1.1, 1.25, 2.0])
def test_a_shift_is_not_called_noise(factor: float) -> None:
    for seed in range(10):
        told = feed(
            watch_of(rate=1e-4),
            [40.0 * math.exp(e) * (factor if s >= 200 else 1) for s, e in enumerate(noise(seed, 260))],
        )
        assert {point.kind for point in told if point.step >= 200} <= {"level", "spike"}


def test_far_steps_on_one_side_alone_are_no_noise() -> None:
    channel, baseline = Dispersion(1e-2), Baseline(0.0, 0.0)
    assert [channel.update(Seen(i, 0.0, 0.0, 0.0, 0.2, 0.2, 4.0), baseline) for i in range(20)] == [None] * 20


def test_the_noise_of_a_heavy_tail_is_learned() -> None:
    """Told apart: what is three times the noise here is ordinary in a series that has shown it."""
    channel, baseline = Dispersion(1e-4), Baseline(0.0, 0.0)
    before = list(channel.votes)
    for i in range(400):
        channel.learn(Seen(i, 0.0, 0.0, 0.0, 0.0, 0.0, 4.5 if i % 10 == 0 else 0.5), 12, baseline)
    assert channel.votes[6] < 0.5 < before[6]


def test_a_slow_slide_is_told_with_its_beginning_and_how_far_it_has_come() -> None:
    values = [40.0 * math.exp(e) * 1.001 ** max(0, s - 199) for s, e in enumerate(noise(1, 300))]
    told = feed(watch_of(rate=1e-4), values)
    assert words(told[:1]) == [("drift", "opened")]
    assert told[0].step <= 264
    assert abs(told[0].onset - 200) <= 25
    assert told[0].effect == pytest.approx(1.001 ** (told[0].step - 199), abs=0.02)


def test_a_slide_for_the_better_is_no_change() -> None:
    values = [40.0 * math.exp(e) * 0.999 ** max(0, s - 199) for s, e in enumerate(noise(1, 400))]
    assert feed(watch_of(rate=1e-4), values) == []


def test_a_slide_that_goes_on_is_told_again_after_another_quarter() -> None:
    values = [40.0 * math.exp(e) * 1.002 ** max(0, s - 199) for s, e in enumerate(noise(1, 420))]
    told = feed(watch_of(rate=1e-4, accept_after=1000), values)
    assert words(told) == [("drift", "opened"), ("drift", "changed")]
    assert told[1].effect / told[0].effect == pytest.approx(1.25, rel=0.1)


@pytest.mark.parametrize("spans", [1.5, 2.5, 4.0])
def test_the_two_means_tell_when_a_slide_began_and_its_size(spans: float) -> None:
    channel, steps = Drift(1e-4), round(spans / GAIN)
    near = far = 0.0
    for step in range(1, steps + 1):
        near += GAIN * (0.001 * step - near)
        far += GAIN * (near - far)
    channel.near, channel.far = near, far
    age, size = channel._slide()
    assert age == pytest.approx(spans, rel=0.1)
    assert size == pytest.approx(0.001 * steps, rel=0.1)
