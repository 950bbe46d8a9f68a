"""What a watch tells of one series, and when."""

from __future__ import annotations

import math

import pytest

from tests.core.series.harness import NO_WORK, feed, noise, seconds, watch_of
from verlwatch.core.series import Watch
from verlwatch.core.types import ChangePoint, SeriesKey, Workload


def words(told: list[ChangePoint]) -> list[tuple[str, str, int, int]]:
    return [(point.kind, point.action, point.step, point.onset) for point in told]


def test_one_slow_step_opens_at_once_and_returns_two_steps_after_it() -> None:
    told = feed(watch_of(), seconds(lambda s: 3.0 if s == 150 else 1.0, 300))
    assert words(told) == [("spike", "opened", 150, 150), ("spike", "returned", 152, 151)]
    assert told[0].effect == pytest.approx(3.0, rel=0.08)
    assert told[0].after == pytest.approx(120.0, rel=0.08)
    assert told[1].effect == pytest.approx(1.0, rel=0.08)


def test_a_slow_step_that_lasts_is_confirmed_as_a_level_with_its_onset_and_median() -> None:
    told = feed(watch_of(), seconds(lambda s: 3.0 if s >= 150 else 1.0, 200))
    assert words(told) == [("spike", "opened", 150, 150), ("level", "changed", 152, 150)]
    assert told[1].effect == pytest.approx(3.0, rel=0.04)


def test_a_shift_too_small_for_one_step_opens_as_a_level_after_three() -> None:
    told = feed(watch_of(), seconds(lambda s: 1.6 if s >= 150 else 1.0, 200))
    assert words(told) == [("level", "opened", 152, 150)]
    assert told[0].before == pytest.approx(40.0, rel=0.04)
    assert told[0].after == pytest.approx(64.0, rel=0.06)


def test_a_slow_stretch_of_four_steps_closes_and_a_later_shift_is_seen_in_full() -> None:
    factors = {**dict.fromkeys(range(150, 154), 4.0), **dict.fromkeys(range(230, 300), 1.6)}
    told = feed(watch_of(), seconds(lambda s: factors.get(s, 1.0), 300))
    assert words(told) == [
        ("spike", "opened", 150, 150),
        ("level", "changed", 152, 150),
        ("level", "returned", 155, 154),
        ("level", "opened", 232, 230),
    ]
    assert told[-1].effect == pytest.approx(1.6, rel=0.05)


def test_the_end_of_a_long_change_is_told_within_three_steps() -> None:
    told = feed(watch_of(), seconds(lambda s: 1.5 if 150 <= s < 250 else 1.0, 300))
    assert words(told) == [("level", "opened", 152, 150), ("level", "returned", 251, 250)]


def test_a_change_that_fades_away_returns_and_is_not_settled() -> None:
    told = feed(watch_of(), seconds(lambda s: 1.0 if s < 150 else max(1.0, 1.2 - 0.002 * (s - 150)), 400))
    assert [point.action for point in told] == ["opened", "returned"]
    assert 200 < told[1].step < 300
    assert told[1].effect == pytest.approx(1.0, abs=0.05)


def test_a_level_that_moves_by_a_quarter_is_told_again() -> None:
    told = feed(watch_of(), seconds(lambda s: 1.0 if s < 150 else 1.5 if s < 180 else 2.4, 220))
    assert words(told) == [("level", "opened", 152, 150), ("level", "changed", 182, 180)]
    assert told[1].effect == pytest.approx(2.4, rel=0.05)
    assert told[1].before == pytest.approx(40.0, rel=0.05)


def test_a_level_that_moves_by_less_is_not_told_again() -> None:
    told = feed(watch_of(), seconds(lambda s: 1.0 if s < 150 else 1.5 if s < 180 else 1.7, 220))
    assert words(told) == [("level", "opened", 152, 150)]


def test_a_level_that_stays_is_settled_and_is_the_baseline_then() -> None:
    watch = watch_of(accept_after=60)
    told = feed(watch, seconds(lambda s: 1.5 if s >= 150 else 1.0, 300))
    assert words(told) == [("level", "opened", 152, 150), ("level", "settled", 212, 150)]
    assert watch.change is None
    assert watch.expected(NO_WORK) == pytest.approx(60.0, rel=0.05)
    assert told[1].effect == pytest.approx(1.5, rel=0.05)


def test_after_settling_the_way_back_is_an_improvement_and_the_next_rise_an_alarm() -> None:
    factor = [1.0] * 150 + [1.5] * 150 + [1.0] * 150 + [1.5] * 50
    told = feed(watch_of(accept_after=60), seconds(factor.__getitem__, 500))
    assert [point.action for point in told] == ["opened", "settled", "opened"]
    assert told[-1].onset == 450


def test_a_lasting_improvement_is_no_change_and_becomes_the_baseline() -> None:
    watch = watch_of()
    assert feed(watch, seconds(lambda s: 0.6 if s >= 150 else 1.0, 260)) == []
    assert watch.expected(NO_WORK) == pytest.approx(24.0, rel=0.05)


def test_a_passing_improvement_is_no_change_and_teaches_nothing() -> None:
    watch = watch_of()
    assert feed(watch, seconds(lambda s: 0.5 if 150 <= s < 160 else 1.0, 260)) == []
    assert watch.expected(NO_WORK) == pytest.approx(40.0, rel=0.03)


def test_a_slow_step_amid_an_improvement_is_measured_from_the_old_baseline() -> None:
    told = feed(watch_of(), seconds(lambda s: 1.0 if s < 150 else 3.0 if s == 165 else 0.7, 200))
    assert words(told)[:1] == [("spike", "opened", 165, 165)]
    assert told[0].effect == pytest.approx(3.0, rel=0.1)
    assert words(told)[1:] == [("spike", "returned", 167, 166)]


def test_a_rise_amid_an_improvement_that_ends_below_the_old_baseline_is_no_change() -> None:
    assert feed(watch_of(), seconds(lambda s: 1.0 if s < 150 else 0.5 if s < 170 else 0.8, 230)) == []


def test_throughput_alarms_when_it_falls() -> None:
    told = feed(watch_of("throughput"), seconds(lambda s: 0.5 if 150 <= s < 170 else 1.0, 220, usual=50.0))
    assert [point.action for point in told] == ["opened", "changed", "returned"]
    assert told[0].step == 150
    assert told[0].effect == pytest.approx(0.5, rel=0.08)
    assert told[0].before == pytest.approx(50.0, rel=0.08)
    assert told[0].after == pytest.approx(25.0, rel=0.08)
    assert told[-1].onset == 170


def test_throughput_that_rises_is_no_change() -> None:
    assert feed(watch_of("throughput"), seconds(lambda s: 2.0 if s >= 150 else 1.0, 220, usual=50.0)) == []


def test_seconds_that_grow_with_the_responses_are_no_change() -> None:
    works = [Workload(15_000.0 * (1.0 + step / 150), 300.0 * (1.0 + step / 150)) for step in range(300)]
    values = [
        40.0 * (0.1 + 0.9 * work.tokens / 15_000.0) * math.exp(e)
        for work, e in zip(works, noise(3, 300), strict=True)
        if work.tokens
    ]
    watch = watch_of("update_actor")
    assert feed(watch, values, works) == []
    assert watch.expected(Workload(30_000.0, 600.0)) == pytest.approx(76.0, rel=0.05)


def test_the_effect_is_taken_at_equal_work() -> None:
    works = [Workload(15_000.0 * (2.0 if step >= 150 else 1.0)) for step in range(200)]
    values = [
        40.0 * (2.0 if s >= 150 else 1.0) * (1.5 if s >= 170 else 1.0) * math.exp(e)
        for s, e in enumerate(noise(4, 200))
    ]
    told = feed(watch_of("update_actor"), values, works)
    assert words(told) == [("level", "opened", 172, 170)]
    assert told[0].effect == pytest.approx(1.5, rel=0.1)
    assert told[0].before == pytest.approx(80.0, rel=0.1)


def test_the_first_steps_after_a_start_and_a_restart_are_not_judged() -> None:
    watch = watch_of()
    for step, value in enumerate(
        seconds(lambda s: {0: 6.0, 1: 3.0, 2: 2.0, 150: 6.0, 151: 3.0, 152: 2.0}.get(s, 1.0), 300)
    ):
        assert watch.update(step, value, NO_WORK, restart=step in {0, 150}) == ()


def test_an_open_change_ends_with_a_restart_and_is_told_anew_against_the_same_baseline() -> None:
    watch = watch_of()
    told: list[ChangePoint] = []
    for step, value in enumerate(seconds(lambda s: 1.6 if 150 <= s < 200 else 1.0, 240)):
        told += watch.update(step, value, NO_WORK, restart=step == 170)
    assert words(told) == [
        ("level", "opened", 152, 150),
        ("level", "opened", 175, 173),
        ("level", "returned", 201, 200),
    ]


def test_values_rounded_to_milliseconds_never_alarm_where_they_are_tiny() -> None:
    """A log with ``.3f`` prints 0.001 and 0.002 in turn, or 0.004 from some step on."""
    flicker = [0.001 + 0.001 * (step % 3 == 0) for step in range(200)]
    assert feed(watch_of("adv"), [*flicker, *[0.004] * 100, *[0.001] * 100, *flicker]) == []


def test_a_tiny_phase_that_grows_into_seconds_does_alarm() -> None:
    told = feed(watch_of("adv"), [*[0.002] * 200, *[2.0] * 20])
    assert [point.action for point in told] == ["opened", "changed"]
    assert told[0].after == pytest.approx(2.0, rel=0.1)


def test_steps_that_jump_keep_their_own_numbers() -> None:
    watch = watch_of()
    told: list[ChangePoint] = []
    for i, value in enumerate(seconds(lambda s: 1.6 if s >= 150 else 1.0, 200)):
        told += watch.update(10 * i + 7, value, NO_WORK)
    assert words(told) == [("level", "opened", 1527, 1507)]


def test_missing_steps_change_nothing_but_the_count() -> None:
    """Every fifth value is absent; the change is still told by its own step numbers."""
    watch = watch_of()
    told: list[ChangePoint] = []
    for step, value in enumerate(seconds(lambda s: 1.6 if s >= 200 else 1.0, 260)):
        if step % 5:
            told += watch.update(step, value, NO_WORK)
    assert words(told) == [("level", "opened", 203, 201)]


def test_work_unknown_at_times_is_taken_as_usual_work() -> None:
    works = [Workload(15_000.0, 300.0) if step % 4 else NO_WORK for step in range(250)]
    told = feed(watch_of(), seconds(lambda s: 1.6 if s >= 200 else 1.0, 250), works)
    assert words(told) == [("level", "opened", 202, 200)]


def test_from_step_twenty_on_a_gross_step_is_told() -> None:
    told = feed(watch_of(), seconds(lambda s: 4.0 if s >= 20 else 1.0, 40))
    assert words(told)[0] == ("spike", "opened", 20, 20)


def test_nothing_is_expected_before_there_is_a_baseline() -> None:
    watch = watch_of()
    for step, value in enumerate(seconds(lambda _: 1.0, 19)):
        assert watch.expected(NO_WORK) is None
        watch.update(step, value, NO_WORK)
    assert watch.expected(NO_WORK) == pytest.approx(40.0, rel=0.05)


def test_the_open_change_is_the_one_last_told() -> None:
    watch = watch_of()
    for step, value in enumerate(seconds(lambda s: 3.0 if 150 <= s < 160 else 1.0, 200)):
        told = watch.update(step, value, NO_WORK)
        if told:
            assert watch.change == (told[-1] if told[-1].action in {"opened", "changed"} else None)
    assert watch.change is None


def test_slow_steps_that_go_on_and_off_do_not_stay_open_for_ever() -> None:
    watch = watch_of(accept_after=50)
    feed(watch, seconds(lambda s: 2.0 if s >= 150 and s % 2 else 1.0, 400))
    assert watch.change is None


@pytest.mark.parametrize("rate", [0.0, -1e-5, 2.0, math.nan])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        Watch(SeriesKey("run", "gen"), (0.4, 0.4), rate)


def test_a_slow_step_amid_an_improvement_that_the_old_baseline_calls_normal_is_no_change() -> None:
    assert feed(watch_of(), seconds(lambda s: 1.0 if s < 150 else 1.2 if s == 165 else 0.5, 190)) == []


def test_a_spike_that_ends_at_another_level_moves_there_and_does_not_return() -> None:
    told = feed(watch_of(), seconds(lambda s: 1.0 if s < 150 else 6.0 if s == 150 else 1.5, 190))
    assert [(point.kind, point.action) for point in told] == [("spike", "opened"), ("level", "changed")]
    assert told[1].effect == pytest.approx(1.5, rel=0.05)


def test_a_shift_of_less_than_five_per_cent_is_learned_and_not_told() -> None:
    watch = watch_of(rate=1e-3)
    values = [40.0 * (1.03 if step >= 150 else 1.0) * math.exp(e) for step, e in enumerate(noise(2, 600, sd=0.003))]
    assert feed(watch, values) == []
    assert watch.expected(NO_WORK) == pytest.approx(41.2, rel=0.01)


def test_a_series_that_stalls_time_and_again_falls_silent() -> None:
    """Every eighth step takes twice as long: that is how this series is."""
    told = feed(watch_of(rate=1e-4), seconds(lambda s: 2.0 if s >= 150 and s % 8 == 0 else 1.0, 1000))
    opened = [point.step for point in told if point.action == "opened"]
    assert 1 <= len(opened) <= 6
    assert max(opened) < 300


def test_noise_that_wanders_keeps_the_budget_once_it_is_known() -> None:
    """With phi = 0.9 a series leans for dozens of steps; the long-run variance knows after a few hundred."""
    alarms = 0
    for seed in range(12):
        told = feed(watch_of("reward", 1e-3), [40.0 * math.exp(e) for e in noise(seed, 1500, sd=0.05, phi=0.9)])
        alarms += sum(point.action == "opened" and point.step >= 500 for point in told)
    assert alarms <= 24


def test_a_small_shift_in_a_noisy_series_is_found_because_it_is_not_learned_meanwhile() -> None:
    """+10 % in noise of 6 %; were suspected steps learned, 25 of the 40 would be found."""
    found = 0
    for seed in range(40):
        path = noise(seed, 500, sd=0.06, phi=0.4)
        told = feed(watch_of(), [40.0 * (1.1 if s >= 250 else 1.0) * math.exp(e) for s, e in enumerate(path)])
        found += any(point.action == "opened" and point.step >= 250 for point in told)
    assert found >= 34


def test_the_latest_twelve_steps_have_taught_nothing_yet() -> None:
    values = seconds(lambda _: 1.0, 212)
    plain, other = watch_of(), watch_of()
    feed(plain, values)
    feed(other, [value * (1.005 if step >= 200 else 1.0) for step, value in enumerate(values)])
    assert other.expected(NO_WORK) == plain.expected(NO_WORK)


def test_once_a_change_is_open_none_of_its_steps_waits_to_be_learned() -> None:
    watch = watch_of()
    feed(watch, seconds(lambda s: 1.25 if s >= 150 else 1.0, 156))
    assert watch.change is not None
    assert watch.change.onset == 150
    assert [seen.step for seen in watch._pending if seen.step >= 150] == []
    assert watch._pending
