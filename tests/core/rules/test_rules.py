"""Each rule: a view that fires it, a near miss that must not, evidence that is not empty."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from verlwatch.core import rules
from verlwatch.core.rules import (
    RULES,
    Ahead,
    Arrival,
    Filling,
    NotFinite,
    Room,
    Span,
    View,
    aborted,
    all_slow,
    deadline,
    device_memory_forecast,
    disk_forecast,
    early_slow,
    entropy_collapse,
    grad_norm_explosion,
    host_memory_forecast,
    kl_explosion,
    length_collapse,
    limit,
    long_tail,
    metric_shift,
    not_finite,
    phase_drift,
    phase_noise,
    phase_shift,
    phase_spike,
    preemptions,
    response_clipping,
    reward_collapse,
    step_slow,
    tool_calls,
)
from verlwatch.core.types import ChangePoint, SeriesKey

EXPECTED = {"gen": 40.0, "old_log_prob": 6.0, "adv": 0.05, "step": 70.0, "throughput": 55.0}


def change(metric: str, effect: float, kind: Literal["spike", "level", "dispersion", "drift"]) -> ChangePoint:
    before = EXPECTED[metric]
    return ChangePoint(SeriesKey("r", metric), kind, "opened", 120, 120, effect, "ratio", before, before * effect)


def view(*changes: ChangePoint) -> View:
    by_metric = {point.series.metric: point for point in changes}
    now = {metric: by_metric[metric].after if metric in by_metric else s for metric, s in EXPECTED.items()}
    return View("r", 120, by_metric, now, EXPECTED)


def young(metric: str, effect: float) -> View:
    """A run without baselines, in which one metric stands out of its few steps."""
    point = change(metric, effect, "spike")
    return View("r", 5, {}, EXPECTED | {metric: point.after}, {}, early={metric: point})


def limited(**limits: float) -> View:
    return View("r", 120, {}, EXPECTED, EXPECTED, limits=limits)


def measured(metric: str, effect: float, *others: ChangePoint, release: str = "") -> View:
    """A run of which a measure has changed for the worse to stay, from 40 of its units."""
    point = ChangePoint(SeriesKey("r", metric), "level", "opened", 120, 118, effect, "ratio", 40.0, 40.0 * effect)
    changes = {p.series.metric: p for p in (point, *others)}
    return View("r", 120, changes, EXPECTED, EXPECTED, metrics=frozenset({metric}), release=release)


def off(metric: str, effect: float, before: float, after: float, **values: float) -> View:
    """A run of which a metric that training itself moves has left its course to stay."""
    point = ChangePoint(SeriesKey("r", metric), "level", "opened", 120, 118, effect, "ratio", before, after)
    return View("r", 120, {metric: point}, EXPECTED | {metric: after}, EXPECTED, values=values)


SAMPLES = {
    "timing_s/agent_loop/slowest/generate_sequences": 36.0,
    "timing_s/agent_loop/generate_sequences/mean": 9.0,
}
OFF = {
    # rule: metric, effect, before and after of a change that is told, and of one that is not
    long_tail.NAME: ("slowest_sample", (2.0, 2.0, 4.0), (1.45, 2.0, 2.9)),
    preemptions.NAME: ("preemptions", (4.0, 0.01, 0.2), (1.9, 0.01, 0.08)),
    tool_calls.NAME: ("tool_wait", (1.5, 20.0, 32.0), (1.3, 20.0, 29.0)),
    aborted.NAME: ("aborted", (3.0, 0.5, 9.0), (1.8, 0.5, 4.0)),
    response_clipping.NAME: ("clipped", (3.0, 1.0, 25.0), (1.2, 60.0, 76.0)),
    grad_norm_explosion.NAME: ("grad_norm", (3.1, 0.4, 1.24), (2.9, 0.4, 1.16)),
    entropy_collapse.NAME: ("entropy", (0.45, 0.4, 0.18), (0.55, 0.4, 0.22)),
    kl_explosion.NAME: ("kl", (3.1, 0.1, 0.34), (2.9, 0.1, 0.32)),
    reward_collapse.NAME: ("score", (0.4, 0.6, 0.2), (0.6, 0.6, 0.33)),
    length_collapse.NAME: ("response_length", (0.4, 600.0, 240.0), (0.6, 600.0, 360.0)),
}


def ahead(what: Filling | Room | Arrival) -> View:
    """A run that is heading for something."""
    found = Ahead(
        (what,) if isinstance(what, Filling) else (),
        (what,) if isinstance(what, Room) else (),
        what if isinstance(what, Arrival) else None,
    )
    return View("r", 120, {}, EXPECTED, EXPECTED, ahead=found)


SLOPE, STEPS = Span(9.0, 10.0, 11.0), Span(12.0, 15.0, 18.0)
HOST = Filling("cpu_memory_used_gb", 950.0, "by runs[].host_memory", SLOPE, STEPS, 800.0, 500.0, 90, 30, 100.0)
CARD = HOST._replace(subject="max_memory_allocated_gb")
ROOM = Room("/ckpt", 650.0, 4000.0, 200.0, 200.0, 50, 3, 200, 5, 100.0)
LATE = Arrival(1000, Span(810, 812, 815), 69200.0, Span(87000.0, 88000.0, 89000.0), 100.0, 0.0, "wall_limit")
NAN = NotFinite({"actor/grad_norm": "nan"}, {}, 120, 1)
FIRES = {
    **{name: off(metric, *told, **SAMPLES) for name, (metric, told, _) in OFF.items()},
    not_finite.NAME: View("r", 120, {}, EXPECTED, EXPECTED, not_finite=NAN),
    host_memory_forecast.NAME: ahead(HOST),
    device_memory_forecast.NAME: ahead(CARD),
    disk_forecast.NAME: ahead(ROOM),
    deadline.NAME: ahead(LATE),
    limit.NAME: limited(gen=39.0),
    early_slow.NAME: young("gen", 3.0),
    metric_shift.NAME: measured("mfu_actor", 0.67),
    phase_spike.NAME: view(change("gen", 4.0, "spike")),
    phase_noise.NAME: view(change("gen", 3.0, "dispersion")),
    phase_drift.NAME: view(change("gen", 1.06, "drift")),
    phase_shift.NAME: view(change("gen", 1.6, "level")),
    step_slow.NAME: view(change("step", 1.5, "level")),
    all_slow.NAME: view(*(change(name, 1.6, "level") for name in ("gen", "old_log_prob", "adv"))),
}
NEAR_MISS = {
    **{name: off(metric, *missed, **SAMPLES) for name, (metric, _, missed) in OFF.items()},
    not_finite.NAME: View("r", 120, {}, EXPECTED, EXPECTED, values={"critic/score/mean": float("nan")}),
    host_memory_forecast.NAME: ahead(CARD),
    device_memory_forecast.NAME: ahead(HOST),
    disk_forecast.NAME: ahead(ROOM._replace(fits=9, steps=500)),
    deadline.NAME: ahead(ROOM),
    limit.NAME: limited(gen=40.0, testing=1.0),
    early_slow.NAME: young("adv", 3.0),
    metric_shift.NAME: measured("mfu_actor", 0.91),
    phase_spike.NAME: view(change("adv", 4.0, "spike")),
    phase_noise.NAME: view(change("adv", 3.0, "dispersion"), change("gen", 3.0, "level")),
    phase_drift.NAME: view(change("gen", 1.06, "level"), change("adv", 1.5, "drift")),
    phase_shift.NAME: view(change("gen", 4.0, "spike")),
    step_slow.NAME: view(change("step", 1.5, "level"), change("gen", 1.9, "level")),
    all_slow.NAME: view(change("gen", 1.6, "level"), change("old_log_prob", 1.6, "level")),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.NAME)
def test_every_rule_has_a_view_that_fires_it_and_a_near_miss(rule: rules.Rule) -> None:
    (found,) = rule.diagnose(FIRES[rule.NAME])
    assert found.rule == rule.NAME
    assert all(found.evidence)
    assert found.summary
    assert rule.diagnose(NEAR_MISS[rule.NAME]) == ()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.NAME)
def test_a_quiet_view_fires_nothing(rule: rules.Rule) -> None:
    assert rule.diagnose(view()) == ()


def test_the_folder_is_the_list() -> None:
    folder = Path(rules.__file__).parent
    names = [rule.NAME for rule in RULES] + [rule.NAME for rule in rules.LIFE_RULES]
    names += [rule.NAME for rule in rules.MEMORY_RULES]
    assert sorted(path.stem for path in folder.glob("[!_]*.py")) == sorted(names)


def test_throughput_speaks_only_where_neither_step_nor_phase_does() -> None:
    low = change("throughput", 0.7, "level")
    assert [d.subject for d in step_slow.diagnose(view(low))] == ["throughput"]
    assert step_slow.diagnose(view(low, change("gen", 1.7, "level"))) == ()
    assert [d.subject for d in step_slow.diagnose(view(low, change("step", 1.4, "level")))] == ["step"]


def test_a_change_that_adds_half_a_step_is_critical() -> None:
    assert [d.severity for d in phase_shift.diagnose(view(change("gen", 2.0, "level")))] == ["critical"]
    assert [d.severity for d in phase_shift.diagnose(view(change("gen", 1.6, "level")))] == ["warning"]


def test_before_there_are_baselines_the_step_speaks_where_no_phase_does() -> None:
    assert [d.subject for d in early_slow.diagnose(young("step", 2.5))] == ["step"]


def test_waiting_for_samples_is_called_so() -> None:
    point = change("gen", 2.0, "level")
    asynchronous = View("r", 120, {"gen": point}, EXPECTED | {"gen": point.after}, EXPECTED, is_async=True)
    (told,) = phase_shift.diagnose(asynchronous)
    assert "asynchronous: gen is the time it waits" in " ".join(told.evidence)


def test_phases_that_became_slow_one_after_the_other_are_not_all_slow_at_once() -> None:
    one, two, three = (change(name, 1.6, "level") for name in ("gen", "old_log_prob", "adv"))
    assert all_slow.diagnose(view(one._replace(onset=60), two, three)) == ()


def test_where_the_largest_phase_is_as_before_not_all_are_slow() -> None:
    expected = EXPECTED | {"ref": 5.0, "values": 5.0}
    changes = {n: change("gen", 1.6, "level")._replace(series=SeriesKey("r", n)) for n in ("ref", "values", "adv")}
    assert all_slow.diagnose(View("r", 120, changes, expected, expected)) == ()


def test_all_slow_says_what_the_whole_step_took_and_takes() -> None:
    (found,) = all_slow.diagnose(FIRES[all_slow.NAME])
    assert (found.subject, found.severity) == ("all_phases", "critical")
    assert found.after / found.before == pytest.approx(1.6)
    assert found.cost_s == pytest.approx(0.6 * 46.05)


def test_swings_are_told_with_less_severity_and_cost_nothing() -> None:
    small = ChangePoint(SeriesKey("r", "gen"), "dispersion", "opened", 120, 115, 3.0, "ratio", 1.0, 3.0)
    large = small._replace(before=4.0, after=12.0)
    (told,) = phase_noise.diagnose(View("r", 120, {"gen": small}, EXPECTED, EXPECTED))
    assert (told.severity, told.cost_s, told.ratio) == ("info", 0.0, 3.0)
    assert "3.0× as much" in told.summary
    assert "±3 s" in told.evidence[0]
    assert [d.severity for d in phase_noise.diagnose(View("r", 120, {"gen": large}, EXPECTED, EXPECTED))] == ["warning"]


def test_swings_explain_no_slow_step_and_are_none() -> None:
    assert step_slow.diagnose(view(change("step", 3.0, "dispersion"))) == ()
    assert step_slow.diagnose(view(change("throughput", 3.0, "dispersion"))) == ()
    slow = step_slow.diagnose(view(change("step", 1.5, "level"), change("gen", 3.0, "dispersion")))
    assert [d.subject for d in slow] == ["step"]


def test_phases_that_only_swing_are_not_slower_together() -> None:
    noisy = [change(metric, 3.0, "dispersion") for metric in ("gen", "old_log_prob", "adv")]
    assert all_slow.diagnose(view(*noisy)) == ()


def test_a_metric_is_no_news_where_the_phase_it_follows_from_explains_half_of_it() -> None:
    slower = change("gen", 1.5, "level")._replace(series=SeriesKey("r", "update_actor"))
    assert metric_shift.diagnose(measured("mfu_actor", 0.67, slower)) == ()
    assert metric_shift.diagnose(measured("mfu_actor", 0.67, slower._replace(effect=1.05))) != ()
    assert metric_shift.diagnose(measured("mfu_actor", 0.67, slower._replace(kind="dispersion"))) != ()
    assert metric_shift.diagnose(measured("mfu_critic", 0.67, slower)) != ()
    assert metric_shift.diagnose(measured("cpu_memory_used_gb", 1.3, slower)) != ()


def test_throughput_beside_a_printed_step_is_this_rules_alone() -> None:
    low = measured("throughput", 0.7)
    assert step_slow.diagnose(low) == ()
    assert [(d.severity, d.subject) for d in metric_shift.diagnose(low)] == [("info", "throughput")]
    assert metric_shift.diagnose(measured("throughput", 0.7, change("step", 1.4, "level"))) == ()
    assert metric_shift.diagnose(measured("throughput", 0.7, change("gen", 1.5, "level"))) == ()


@pytest.mark.parametrize("kind", ["spike", "dispersion"])
def test_what_does_not_last_is_no_shift_of_a_metric(kind: Literal["spike", "dispersion"]) -> None:
    view = measured("cpu_memory_used_gb", 1.5)
    passing = view.changes["cpu_memory_used_gb"]._replace(kind=kind)
    assert metric_shift.diagnose(View("r", 120, {"cpu_memory_used_gb": passing}, {}, {}, metrics=view.metrics)) == ()


@pytest.mark.parametrize(
    ("release", "whose"),
    [
        ("0.4.x", "rank 0 only: this release"),
        ("0.6-0.7.0", "the maximum over the ranks;"),
        (">=0.7.1", "the maximum over the ranks;"),
        (">=0.8", "rank 0 only: this release"),
        ("", "rank 0 only in verl up to 0.5 and from 0.8 on, the maximum over the ranks in 0.6 and 0.7"),
    ],
)
def test_whose_memory_is_told_depends_on_the_release(release: str, whose: str) -> None:
    (told,) = metric_shift.diagnose(measured("max_memory_allocated_gb", 1.2, release=release))
    assert told.evidence[0] == "since step 118: 48 GB instead of 40 GB"
    assert told.evidence[1].startswith(whose)
    assert (told.severity, told.cost_s) == ("warning", 0.0)


def test_a_metric_that_nobody_chose_is_not_told() -> None:
    assert metric_shift.diagnose(replace(measured("mfu_actor", 0.5), metrics=frozenset())) == ()


def test_time_per_token_is_told_beside_the_seconds_where_the_step_prints_its_tokens() -> None:
    point = change("gen", 1.6, "level")
    now = EXPECTED | {"gen": 64.0}
    seen = View("r", 120, {"gen": point}, now, EXPECTED, per_token={"gen": 0.8})
    (told,) = phase_shift.diagnose(seen)
    assert told.evidence[1] == "0.8 ms per token, expected 0.5 ms"
    (waits,) = phase_shift.diagnose(replace(seen, is_async=True))
    assert "per token" not in " ".join(waits.evidence)


def test_what_is_near_is_critical_and_what_is_far_for_information() -> None:
    severities = [
        host_memory_forecast.diagnose(ahead(HOST._replace(steps=Span(s, s, s), step_s=step_s)))[0].severity
        for s, step_s in ((9.0, 1000.0), (40.0, 30.0), (40.0, 1000.0), (100.0, 1000.0), (100.0, 100.0))
    ]
    assert severities == ["critical", "critical", "warning", "info", "warning"]


def test_a_forecast_says_now_growth_limit_and_lead() -> None:
    (found,) = host_memory_forecast.diagnose(ahead(HOST))
    assert (
        found.title
        == "host memory will be full in 12 to 18 steps, about 25 min: 800 GB of 950 GB, 10 GB more each step"
    )
    assert dict(found.facts)["Growth"] == "10 GB a step (9 to 11)"
    (full,) = host_memory_forecast.diagnose(ahead(HOST._replace(level=960.0, steps=Span(0, 0, 0))))
    assert full.title == "host memory is at its limit: 960 GB of 950 GB"


def test_a_deadline_says_where_the_run_will_be() -> None:
    (found,) = deadline.diagnose(ahead(LATE))
    assert found.title == "will be at step 810 to 815 of 1000 when its time is over in 19 h; 5.2 h more are needed"
    (over,) = deadline.diagnose(ahead(LATE._replace(left_s=0.0, reach=Span(120, 120, 120))))
    assert over.title == "is at step 120 of 1000 now that its time is over; 24 h more are needed"
    assert over.severity == "critical"


def test_memory_that_will_be_full_is_not_told_as_higher_too() -> None:
    higher = measured("cpu_memory_used_gb", 1.2)
    assert len(metric_shift.diagnose(higher)) == 1
    full = replace(higher, ahead=ahead(HOST).ahead)
    assert metric_shift.diagnose(full) == ()
    assert len(metric_shift.diagnose(replace(full, told=frozenset({"cpu_memory_used_gb"})))) == 1  # until it ends
    assert host_memory_forecast.diagnose(full)[0].subject == "host_memory"
