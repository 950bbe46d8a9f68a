"""What a silence covers, how long it lasts, and local time without a clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from verlwatch.core.incidents import Maintenance, Silence, Silences, Window, silence_from, silence_id, silence_state
from verlwatch.core.types import Diagnosis, Incident, Scope

GEN = Diagnosis("phase_shift", "prod-7b", "gen", "warning", 120, 120, 2.0, 40.0, 80.0, 40.0, "slow", ("seen",))
STEP = replace(GEN, rule="step_slow", subject="step")
REF = replace(GEN, subject="ref")
DAY = 86_400.0


def incident(*diagnoses: Diagnosis, run: str = "prod-7b") -> Incident:
    return Incident("id", run, 1, "firing", "warning", diagnoses, 120, 0.0, 2.0)


def on(*scope: tuple[str, str]) -> Diagnosis:
    places: Scope = scope
    return replace(GEN, rule="fault", subject="device_oom", scope=places)


TABLE = [
    ("the run by its name", Silence("s", run="prod-7b"), incident(GEN), True),
    ("runs that fit", Silence("s", run="prod-*"), incident(GEN), True),
    ("a run whose name holds brackets by its name", Silence("s", run="a[1]"), incident(GEN, run="a[1]"), True),
    ("another run", Silence("s", run="test-*"), incident(GEN), False),
    ("the phase that leads", Silence("s", phase="gen"), incident(GEN), True),
    ("the phase that leads and the step that follows from it", Silence("s", phase="gen"), incident(GEN, STEP), True),
    ("one of two slow phases", Silence("s", phase="gen"), incident(GEN, REF), False),
    ("the step where nothing else is said", Silence("s", phase="step"), incident(STEP), True),
    ("the rule", Silence("s", rule="phase_*"), incident(GEN), True),
    ("another rule", Silence("s", rule="phase_spike"), incident(GEN), False),
    ("a host", Silence("s", host="node-3"), incident(on(("host", "node-3"), ("rank", "5"))), True),
    ("a host of two", Silence("s", host="node-3"), incident(on(("host", "node-3"), ("host", "node-4"))), False),
    ("a host where none is known", Silence("s", host="node-3"), incident(GEN), False),
    ("ranks that fit", Silence("s", rank="[0-7]"), incident(on(("rank", "5"), ("rank", "6"))), True),
]


@pytest.mark.parametrize(("what", "silence", "told", "covered"), TABLE, ids=[row[0].replace(" ", "-") for row in TABLE])
def test_a_silence_of(what: str, silence: Silence, told: Incident, covered: bool) -> None:
    assert silence.covers(told) is covered


def test_a_silence_ends_when_its_time_is_up() -> None:
    silences = Silences()
    silences.add(Silence("s", phase="gen", starts_at=100.0, ends_at=200.0))
    assert silences.covering(incident(GEN), 199.9) is not None
    assert silences.covering(incident(GEN), 200.0) is None
    assert silences.expire(150.0, {}) == []
    assert [one.id for one in silences.expire(200.0, {})] == ["s"]
    assert list(silences) == []


def test_one_without_a_time_ends_with_the_last_run_that_it_fits() -> None:
    silences = Silences()
    silences.add(Silence("s", run="prod-*", starts_at=0.0))
    assert silences.expire(1.0, {"test": True}) == []
    assert silences.expire(2.0, {"test": True, "prod-1": True, "prod-2": False}) == []
    assert [one.id for one in silences.expire(3.0, {"prod-1": True, "prod-2": True})] == ["s"]


def test_one_without_a_time_and_without_a_run_ends_after_a_month() -> None:
    silences = Silences()
    silences.add(Silence("s", run="never-*"))
    assert silences.expire(30 * DAY - 1, {}) == []
    assert len(silences.expire(30 * DAY, {})) == 1


def test_a_silence_round_trips_and_its_id_says_what_it_is() -> None:
    silence = Silence("s", run="a", rank="[0-7]", starts_at=1.5, ends_at=2.5, comment="known", author="ada")
    assert silence_from(silence_state(silence)) == silence
    assert silence_id({"run": "a"}, 1.0) == silence_id({"run": "a"}, 1.0)
    assert len({silence_id({"run": "a"}, 1.0), silence_id({"run": "b"}, 1.0), silence_id({"run": "a"}, 2.0)}) == 3


# ------------------------------------------------------------------------------------------------ local time
def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NIGHT = Window(22 * 60, 8 * 60)
FRIDAY_NIGHT = Window(22 * 60, 8 * 60, frozenset({4}))
SUNDAY = Window(0, 24 * 60, frozenset({6}))
WINDOWS = [
    (NIGHT, "2026-03-02T21:59:59", False),
    (NIGHT, "2026-03-02T22:00:00", True),
    (NIGHT, "2026-03-03T07:59:59", True),
    (NIGHT, "2026-03-03T08:00:00", False),
    (FRIDAY_NIGHT, "2026-03-06T23:00:00", True),
    (FRIDAY_NIGHT, "2026-03-07T07:00:00", True),
    (FRIDAY_NIGHT, "2026-03-07T23:00:00", False),
    (FRIDAY_NIGHT, "2026-03-06T07:00:00", False),
    (SUNDAY, "2026-03-07T23:59:59", False),
    (SUNDAY, "2026-03-08T00:00:00", True),
    (SUNDAY, "2026-03-08T23:59:59", True),
    (SUNDAY, "2026-03-09T00:00:00", False),
    (Window(480, 480), "2026-03-09T01:00:00", True),
]


@pytest.mark.parametrize(("window", "at", "inside"), WINDOWS)
def test_a_window_holds(window: Window, at: str, inside: bool) -> None:
    assert window.holds(utc(at), ()) is inside


def test_a_window_follows_the_clock_of_its_zone_over_the_change_to_summer_time() -> None:
    change = utc("2026-03-29T01:00:00")
    berlin = ((0.0, 3600.0), (change, 7200.0))
    assert NIGHT.holds(utc("2026-03-28T06:59:59"), berlin)
    assert not NIGHT.holds(utc("2026-03-28T07:00:00"), berlin)
    assert NIGHT.holds(utc("2026-03-29T05:59:59"), berlin)
    assert not NIGHT.holds(utc("2026-03-29T06:00:00"), berlin)


def test_maintenance_is_of_the_runs_that_fit_and_every_week_or_once() -> None:
    once = Maintenance("prod-*", None, 100.0, 200.0)
    assert (once.covers(incident(GEN)), once.covers(incident(GEN, run="test"))) == (True, False)
    assert [once.holds(at, ()) for at in (99.0, 100.0, 199.0, 200.0)] == [False, True, True, False]
    assert Maintenance("*", SUNDAY).holds(utc("2026-03-08T12:00:00"), ())
