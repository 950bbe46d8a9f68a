"""What a run is heading for, as its rules say it: memory, room for checkpoints, the end of its time."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest

from verlwatch.core._judged import JudgedSeries
from verlwatch.core.outlook import Forecasts
from verlwatch.core.rules import View, deadline, device_memory_forecast, disk_forecast, host_memory_forecast
from verlwatch.core.settings import RunLimits, Settings
from verlwatch.core.types import NOBODY, Diagnosis, Event, Origin

STEP_S = 100.0
HOST_NAME = "node-1"
MEMORY = "perf/cpu_memory_used_gb"
PEAK = "perf/max_memory_allocated_gb"


def event(name: str, host: str = "", **said: str | float) -> Event:
    return Event(Origin("host", 0, 0, NOBODY, "host"), name, said, scope=(("host", host),) if host else ())


class Course:
    """A run of steps of 100 s, and what its forecasts say of each."""

    def __init__(self, forecasts: Forecasts, planned: int | None = None) -> None:
        self.of = forecasts
        self.of.planned = planned
        self.now = 0.0
        self.told: dict[int, tuple[Diagnosis, ...]] = {}

    def step(self, number: int, *, seconds: float = STEP_S, attempt: int = 1, **values: float) -> None:
        keys = {"memory": MEMORY, "peak": PEAK}
        printed = {keys[name]: value for name, value in values.items() if name in keys}
        apart = {name: value for name, value in values.items() if name not in keys}
        self.now += seconds + sum(apart.values())
        self.of.take((attempt, number), printed, {"step": seconds, **apart}, self.now, live=True)
        view = View("r", number, {}, {}, {}, ahead=self.of.ahead(self.now))
        rules = (host_memory_forecast, device_memory_forecast, disk_forecast, deadline)
        self.told[number] = tuple(found for rule in rules for found in rule.diagnose(view))

    def hear(self, name: str, host: str = "", **said: str | float) -> None:
        self.of.hear(event(name, host, **said), self.now)

    @property
    def first(self) -> int | None:
        return next((number for number, found in self.told.items() if found), None)

    @property
    def last(self) -> Diagnosis:
        return next(found[0] for found in reversed(self.told.values()) if found)


def leaking(step: int, seed: int = 1) -> float:
    """GB of a host of 1,000: half until step 100, 10 more each step then."""
    return 500.0 + 10.0 * max(0, step - 100) + random.Random(f"{seed}/{step}").gauss(0.0, 1.0)


def test_a_leaking_host_is_told_with_growth_limit_and_lead() -> None:
    course = Course(Forecasts(1000.0), 1000)
    for step in range(1, 127):
        course.step(step, seconds=200.0, memory=leaking(step))
    assert course.first is not None
    assert course.first <= 125  # full at 145
    found = course.last
    assert (found.rule, found.subject, found.severity) == ("host_memory_forecast", "host_memory", "warning")
    assert found.title.startswith("host memory will be full in 19 to 20 steps, about 64 min")
    facts = dict(found.facts)
    assert facts["Limit"] == "95% of 1,000 GB by runs[].host_memory, where Ray kills (RAY_memory_usage_threshold)"
    assert facts["Growth"].startswith(("9.", "10"))
    assert "min" in facts["Full in"]
    assert all(found.evidence)


def test_near_the_limit_it_is_critical() -> None:
    course = Course(Forecasts(1000.0))
    for step in range(1, 141):
        course.step(step, memory=leaking(step))
    assert course.last.severity == "critical"


def test_without_a_known_limit_nothing_is_foreseen() -> None:
    course = Course(Forecasts())
    for step in range(1, 141):
        course.step(step, memory=leaking(step))
    assert course.first is None


def test_a_host_that_is_seen_itself_needs_no_configuration() -> None:
    course = Course(Forecasts())
    for step in range(1, 141):
        course.hear("host_memory", HOST_NAME, total_gb=1000.0, used_gb=leaking(step), available_gb=1.0)
        course.step(step)
    assert course.last.scope == (("host", HOST_NAME),)
    assert dict(course.last.facts)["Limit"].startswith("95% of 1,000 GB of node-1")


def test_the_memory_that_ray_reported_is_a_limit_for_the_next_attempt() -> None:
    course = Course(Forecasts())
    course.hear("fault", **{"class": "host_oom"}, total_gb=1000.0, threshold=0.9)
    for step in range(1, 141):
        course.step(step, memory=leaking(step))
    assert dict(course.last.facts)["Limit"].startswith("90% of 1,000 GB as Ray has told")


def test_a_limit_that_comes_after_the_end_is_not_told() -> None:
    course = Course(Forecasts(1000.0), 135)
    for step in range(1, 136):
        course.step(step, memory=leaking(step))
    assert course.first is None


def test_full_in_weeks_is_for_information_at_most() -> None:
    course = Course(Forecasts(1000.0))
    for step in range(1, 500):
        course.step(step, seconds=3600.0, memory=700.0 + 0.3 * step)
    assert {found.severity for told in course.told.values() for found in told} <= {"info"}


def test_what_stops_growing_is_over_after_a_few_steps() -> None:
    course = Course(Forecasts(1000.0))
    for step in range(1, 200):
        course.step(step, memory=leaking(min(step, 128), seed=step))
    assert course.first is not None
    ended = next(step for step in range(course.first, 200) if not course.told[step])
    assert 128 < ended <= 145
    assert not any(course.told[step] for step in range(ended, 200))


def test_another_attempt_begins_anew() -> None:
    course = Course(Forecasts(1000.0))
    for step in range(1, 131):
        course.step(step, memory=leaking(step))
    assert course.told[130]
    for step in range(101, 131):
        course.step(step, attempt=2, memory=500.0)
        assert course.told[step] == ()


def test_the_peak_of_a_card_is_told_as_weak_evidence_and_never_as_critical() -> None:
    course = Course(Forecasts())
    course.hear("gpu_memory", head="After FSDP", reserved_gb=37.5, used_gb=40.5, total_gb=80.0, unit="GiB")
    for step in range(1, 240):
        course.step(step, peak=50.0 + 0.1 * step)
    found = course.last
    assert (found.rule, found.subject, found.severity) == (
        "device_memory_forecast",
        "device_memory_allocated",
        "warning",
    )
    assert dict(found.facts)["Limit"] == "80 GB of the card less 3 GB outside PyTorch's allocator"
    assert any("can only rise" in line for line in found.evidence)


def test_a_peak_that_rose_in_jumps_and_stays_is_no_growth() -> None:
    course = Course(Forecasts())
    course.hear("gpu_memory", head="After FSDP", total_gb=80.0, unit="GiB")
    for step in range(1, 400):
        course.step(step, peak=60.0 + (5.0 if step >= 40 else 0.0) + (8.0 if step >= 200 else 0.0))
    assert course.first is None


def saving(course: Course, steps: range, *, free: float, each: float, every: int = 50, kept: float = 1.0) -> None:
    """A checkpoint of ``each`` GB every so many steps, of which a part is kept."""
    course.hear("disk", HOST_NAME, path="/ckpt", free_gb=free, total_gb=4000.0)
    for step in steps:
        if step % every == 0:
            course.hear("checkpoint", folder=f"/ckpt/global_step_{step}", step=step)
            course.hear("disk", HOST_NAME, path="/ckpt", free_gb=free - each, total_gb=4000.0)
            free -= each * kept
            course.hear("disk", HOST_NAME, path="/ckpt", free_gb=free, total_gb=4000.0)
        course.step(step)


def test_room_for_three_more_checkpoints_is_told_in_steps() -> None:
    course = Course(Forecasts())
    saving(course, range(1, 202), free=1450.0, each=200.0)
    (found,) = course.told[200]
    assert found.title == (
        "disk of the checkpoints: room for 3 more checkpoints, about 200 steps, about 5.6 h (650 GB of 4,000 GB free)"
    )
    assert found.severity == "warning"
    assert dict(found.facts)["A checkpoint takes"] == "200 GB"


def test_the_next_checkpoint_that_does_not_fit_is_critical() -> None:
    course = Course(Forecasts())
    saving(course, range(1, 202), free=950.0, each=200.0)
    (found,) = course.told[200]
    assert found.severity == "critical"
    assert "the next checkpoint does not fit, in about 50 steps" in found.title


def test_old_checkpoints_that_go_with_each_new_one_leave_room() -> None:
    course = Course(Forecasts())
    saving(course, range(1, 402), free=450.0, each=200.0, kept=0.0)
    assert course.first is None


def test_room_for_all_checkpoints_that_come_is_not_told() -> None:
    course = Course(Forecasts(), 260)
    saving(course, range(1, 252), free=1450.0, each=200.0)
    assert course.first is None


def test_a_run_that_will_not_be_done_is_told_where_it_will_be() -> None:
    course = Course(Forecasts(), 1000)
    course.of.until(81_250.0, "wall_limit")
    for step in range(1, 101):
        course.step(step)
    found = course.last
    assert course.first == 11
    assert found.title == "will be at step 812 of 1000 when its time is over in 20 h; 5.2 h more are needed"
    assert (found.severity, round(found.ratio, 2)) == ("warning", 1.26)


def test_validation_and_checkpoints_have_their_share() -> None:
    course = Course(Forecasts(), 1000)
    course.of.until(110_000.0, "wall_limit")
    for step in range(1, 201):
        course.step(step, testing=1000.0 if step % 50 == 0 else 0.0)
    assert course.last.title.startswith("will be at step 916 of 1000")


def test_steps_that_grow_longer_are_counted() -> None:
    course = Course(Forecasts(), 400)
    course.of.until(42_000.0, "wall_limit")
    for step in range(1, 201):
        course.step(step, seconds=80.0 + 0.1 * step)
    assert course.first is None  # 39.9 thousand seconds at 100 s, drift counted
    late = Course(Forecasts(), 400)
    late.of.until(39_000.0, "Slurm's time limit")
    for step in range(1, 201):
        late.step(step, seconds=80.0 + 0.1 * step)
    assert "s with each" in dict(late.last.facts)["Pace"]


def test_a_deadline_that_is_just_met_does_not_flap() -> None:
    course = Course(Forecasts(), 1000)
    course.of.until(100_000.0, "wall_limit")
    noise = random.Random(4)
    for step in range(1, 991):
        course.step(step, seconds=noise.gauss(100.0, 8.0))
    stands = [bool(course.told[step]) for step in range(1, 991)]
    assert sum(before != after for before, after in pairwise(stands)) <= 4


def test_slurms_end_of_a_job_is_a_deadline_and_near_it_is_critical() -> None:
    course = Course(Forecasts(), 1000)
    course.hear("job", ends_at=21_500.0, state="RUNNING")
    for step in range(1, 201):
        course.step(step)
    assert course.last.severity == "critical"
    assert dict(course.last.facts)["Limit"] == "Slurm's time limit"


def test_without_a_plan_or_a_limit_there_is_no_deadline() -> None:
    for planned, end in ((None, 5000.0), (1000, None)):
        course = Course(Forecasts(), planned)
        course.of.until(end, "wall_limit")
        for step in range(1, 41):
            course.step(step)
        assert course.first is None


def test_a_restart_in_between_changes_nothing() -> None:
    one, other = Course(Forecasts(1000.0), 1000), Course(Forecasts(1000.0), 1000)
    for course in (one, other):
        course.of.until(90_000.0, "wall_limit")
        course.hear("disk", HOST_NAME, path="/ckpt", free_gb=700.0, total_gb=900.0)
    for step in range(1, 141):
        for course in (one, other):
            if step % 20 == 0:
                course.hear("checkpoint", step=step)
                course.hear("disk", HOST_NAME, path="/ckpt", free_gb=700.0 - 4 * step, total_gb=900.0)
            course.hear("host_memory", HOST_NAME, total_gb=1000.0, used_gb=leaking(step, 2))
            course.step(step, memory=leaking(step))
        kept = orjson.loads(orjson.dumps(other.of.state()))
        other.of = Forecasts(1000.0)
        other.of.restore(kept)
        assert other.told[step] == one.told[step]
    assert {found.rule for found in one.told[140]} == {"host_memory_forecast", "disk_forecast", "deadline"}


def test_a_run_asks_the_rules_when_only_a_forecast_holds() -> None:
    settings = Settings(runs=(RunLimits("r*", host_memory_gb=1000.0),))
    judged = JudgedSeries("run", settings)
    course = Course(judged.forecasts)
    for step in range(1, 141):
        course.step(step, memory=leaking(step))
    told = judged.diagnose(140, {}, frozenset(), values={}, release="", ahead=judged.forecasts.ahead(course.now))
    assert [found.rule for found in told] == ["host_memory_forecast"]
    judged.tune(replace(settings, runs=()))
    assert judged.forecasts.ahead(course.now).fillings == ()


def test_the_state_of_a_run_keeps_its_forecasts() -> None:
    judged = JudgedSeries("run", Settings(runs=(RunLimits("run", host_memory_gb=1000.0),)))
    course = Course(judged.forecasts)
    for step in range(1, 141):
        course.step(step, memory=leaking(step))
    again = JudgedSeries("run", judged.settings)
    again.restore(orjson.loads(orjson.dumps(judged.state())))
    assert again.forecasts.ahead(course.now) == judged.forecasts.ahead(course.now)
    assert judged.forecasts.ahead(course.now).fillings


@pytest.mark.parametrize(("run", "limit"), [("a", 1.0), ("b/c", 2.0), ("d", None)])
def test_limits_are_of_the_first_entry_that_fits(run: str, limit: float | None) -> None:
    settings = Settings(runs=(RunLimits("a", 1.0), RunLimits("b/*", 2.0)))
    assert settings.of(run).host_memory_gb == limit
