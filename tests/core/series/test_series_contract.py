"""What every channel of DETECTORS, and the watch made of them, must hold: state, hostile numbers, stated figures."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import orjson
import pytest

from tests.core.series.harness import NO_WORK, feed, noise, seconds, watch_of
from verlwatch.core.series import DETECTORS, Watch
from verlwatch.core.series._baseline import Baseline
from verlwatch.core.types import SeriesKey, Workload

if TYPE_CHECKING:
    from verlwatch.core.series._channel import Alarm, Detector, Seen
    from verlwatch.core.types import ChangePoint

EVERY_DETECTOR = pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.KIND)

# A run that goes through everything: spike, stretch, improvement, shift that moves, return, shift that settles, swings.
EVENTFUL = {
    60: 3.0,
    61: 2.5,
    **dict.fromkeys(range(90, 94), 4.0),
    **dict.fromkeys(range(110, 130), 0.6),
    **dict.fromkeys(range(150, 165), 1.6),
    **dict.fromkeys(range(165, 180), 2.4),
    **dict.fromkeys(range(200, 300), 1.5),
    **{step: 2.0 if step % 2 else 1.2 for step in range(300, 330)},
}


def eventful() -> tuple[list[float], list[Workload]]:
    tokens = [15_000.0 * math.exp(0.1 * e / 0.02) for e in noise(9, 330)]
    works = [Workload(t, 300.0) if step % 11 else Workload(None, 300.0) for step, t in enumerate(tokens)]
    return seconds(lambda step: EVENTFUL.get(step, 1.0), 330, seed=5), works


def shown(values: list[float]) -> list[tuple[Seen, Baseline]]:
    """Log values as a channel sees them; the baseline learns all it is shown."""
    baseline = Baseline(0.0, 0.0)
    baseline.begin(values[:16], [0.0] * 16, [0.0] * 16)
    rows: list[tuple[Seen, Baseline]] = []
    for step, y in enumerate(values):
        seen = baseline.judge(step, y, 0.0, 0.0, 0.0)
        rows.append((seen, Baseline.from_state(baseline.state())))
        baseline.learn(seen)
    return rows


def run(channel: Detector, rows: list[tuple[Seen, Baseline]]) -> list[Alarm]:
    """Every alarm of a channel that learns each step twelve steps late."""
    alarms = []
    for i, (seen, baseline) in enumerate(rows):
        alarm = channel.update(seen, baseline)
        if alarm is not None:
            alarms.append(alarm)
            channel.rebase()
        elif i >= 12:
            channel.learn(rows[i - 12][0], 12, baseline)
    return alarms


def changed(kind: str, ratio: float, seed: int) -> list[float]:
    """A series whose noise, level or trend is another one from step 200 on."""
    if kind == "dispersion":
        return [40.0 * math.exp(e * (ratio if s >= 200 else 1.0)) for s, e in enumerate(noise(seed, 300))]
    if kind == "drift":
        return seconds(lambda s: ratio ** max(0, s - 199), 300, seed=seed)
    return seconds(lambda s: ratio if s >= 200 else 1.0, 300, seed=seed)


@EVERY_DETECTOR
def test_a_channel_goes_on_the_same_when_restored_after_any_step(detector: type[Detector]) -> None:
    rows = shown([math.log(value) for value in eventful()[0]])
    whole, pieces = detector(1e-4), detector(1e-4)
    alarms = 0
    for i, (seen, baseline) in enumerate(rows):
        pieces = detector.from_state(json.loads(json.dumps(pieces.state())))
        alarm = whole.update(seen, baseline)
        assert pieces.update(seen, baseline) == alarm
        for channel in (whole, pieces):
            if alarm is not None:
                channel.rebase()
            elif i >= 12:
                channel.learn(rows[i - 12][0], 12, baseline)
        alarms += alarm is not None
        assert pieces.state() == whole.state()
        assert pieces.suspects == whole.suspects
    assert alarms


@EVERY_DETECTOR
@pytest.mark.parametrize("value", [0.0, -12.5, 300.0])
def test_a_channel_is_silent_on_a_constant(detector: type[Detector], value: float) -> None:
    assert run(detector(1e-2), shown([value] * 400)) == []


@EVERY_DETECTOR
def test_a_channel_keeps_its_stated_false_alarms(detector: type[Detector]) -> None:
    """24 series of 1000 steps at one in a thousand: 24 are asked for; three standard deviations are granted."""
    rate, alarms, steps = 1e-3, 0, 0
    for seed in range(24):
        watch = watch_of("reward", rate)
        values = [40.0 * math.exp(e) for e in noise(seed, 1000, sd=0.03, heavy=seed % 2 == 1)]
        told = feed(watch, values)
        alarms += sum(point.action == "opened" and point.kind == detector.KIND for point in told)
        steps += 1000
    asked = detector.FALSE_ALARMS * rate * steps
    assert alarms <= asked + 3.0 * math.sqrt(asked)


@EVERY_DETECTOR
def test_a_channel_keeps_its_stated_delay(detector: type[Detector]) -> None:
    """Where the level channel is as fast, the change is told as a level."""
    ratio, steps = detector.DELAY
    first = []
    for seed in range(20):
        told = feed(watch_of(rate=1e-4), changed(detector.KIND, ratio, seed))
        first.append(next(point for point in told if point.step >= 200 and point.action == "opened"))
    assert max(point.step for point in first) - 200 + 1 <= steps
    assert sum(point.kind == detector.KIND for point in first) >= 10


@pytest.mark.parametrize("metric", ["gen", "throughput"])
def test_a_watch_goes_on_the_same_when_restored_after_any_step(metric: str) -> None:
    """Through stdlib json and orjson alike; state, expectation and every change point are equal to the last bit."""
    values, works = eventful()
    if metric == "throughput":
        values = [4000.0 / value for value in values]
    whole, pieces = watch_of(metric, accept_after=60), watch_of(metric, accept_after=60)
    told: list[ChangePoint] = []
    for step, (value, work) in enumerate(zip(values, works, strict=True)):
        state = pieces.state()
        text = orjson.dumps(state) if step % 2 else json.dumps(state)
        assert orjson.loads(text) == state
        pieces = Watch.from_state(pieces.key, orjson.loads(text))
        points = whole.update(step, value, work, restart=step in {0, 140})
        assert pieces.update(step, value, work, restart=step in {0, 140}) == points
        assert pieces.state() == whole.state()
        assert pieces.change == whole.change
        assert pieces.expected(work) == whole.expected(work)
        told += points
    assert {point.action for point in told} == {"opened", "changed", "returned", "settled"}
    assert {point.kind for point in told} == {"spike", "level", "dispersion"}


def test_the_state_of_a_watch_stays_under_eight_kibibytes() -> None:
    values, works = eventful()
    watch, largest = watch_of(), 0
    for step, (value, work) in enumerate(zip(values, works, strict=True)):
        watch.update(1_000_000 + step, value, work)
        largest = max(largest, len(orjson.dumps(watch.state())))
    assert 2_000 < largest <= 8_192


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, 1e-300, 1e300])
def test_what_is_no_number_of_a_step_is_ignored(value: float) -> None:
    """The watch's state after it is what it was before: it neither judges nor learns it."""
    values, works = eventful()
    watch = watch_of()
    feed(watch, values[:80], works[:80])
    before = watch.state()
    assert watch.update(80, value, works[80]) == ()
    assert watch.state() == before


@pytest.mark.parametrize("value", [5e-9, 0.001, 1.0, 3600.0, 5e11])
def test_a_constant_series_never_alarms(value: float) -> None:
    assert feed(watch_of(rate=1e-2), [value] * 600) == []


@pytest.mark.parametrize("amount", [0.0, -3.0, math.nan, math.inf, 1e-300, 1e300])
def test_work_that_is_no_number_is_unknown_work(amount: float) -> None:
    values = seconds(lambda _: 1.0, 120)
    strange, unknown = watch_of(), watch_of()
    feed(strange, values, [Workload(amount, amount)] * 120)
    feed(unknown, values)
    assert strange.state() == unknown.state()
    assert strange.expected(Workload(amount, amount)) == unknown.expected(NO_WORK)


def test_extremes_of_value_and_work_never_raise() -> None:
    extremes = [2e-9, 5e11, 1.0, 1e-3, 9e11, 40.0]
    watch = watch_of(rate=1e-2)
    for step in range(900):
        value = extremes[step % 6] if step % 7 < 3 else 40.0
        work = Workload(extremes[step % 5], extremes[(step + 2) % 6])
        for point in watch.update(step, value, work, restart=step % 211 == 0):
            assert all(math.isfinite(number) for number in (point.effect, point.before, point.after))
        assert orjson.loads(orjson.dumps(watch.state())) == watch.state()


def test_a_series_that_was_constant_for_very_long_still_hears_a_change() -> None:
    """What decays while nothing varies (variances, chances, long-run variances) has floors."""
    watch = watch_of(rate=1e-4)
    feed(watch, [40.0] * 5000)
    told = [point for step in range(5000, 5010) for point in watch.update(step, 60.0, NO_WORK)]
    assert [(point.kind, point.onset) for point in told] == [("level", 5000)]


def test_the_scope_of_a_series_is_in_its_change_points() -> None:
    key = SeriesKey("run-7", "gen", (("host", "a"),))
    watch = Watch(key, (0.0, 0.0), 1e-5)
    told = feed(watch, seconds(lambda s: 3.0 if s == 100 else 1.0, 110))
    assert {point.series for point in told} == {key}
    assert Watch.from_state(key, watch.state()).key == key
