"""What people are told of an incident over hours, with a clock of our own."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import orjson
import pytest

from verlwatch.core._telling import Told, calm, tell
from verlwatch.core.incidents import (
    ENDS,
    Calm,
    Change,
    Context,
    Ending,
    Moment,
    Mute,
    OpenIncidents,
    Silence,
    Silences,
    Window,
)
from verlwatch.core.settings import Maintenance, Policy, Route, Settings
from verlwatch.core.types import Diagnosis, Incident, Notification, Severity

STEP_S = 60.0
HOUR_S = 3600.0
SETTINGS = Settings(receivers=("team",))


def slow(
    subject: str = "gen",
    ratio: float = 2.0,
    *,
    onset: int = 0,
    severity: Severity = "warning",
    rule: str = "phase_shift",
) -> Diagnosis:
    return Diagnosis(rule, "r", subject, severity, onset, onset, ratio, 40.0, 40.0 * ratio, 1.0, "slow", ("seen",))


class Day:
    """A run judged step by step and the people who are told; time passes by itself between two steps."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.settings = settings
        self.incidents = OpenIncidents(settings.policy)
        self.silences = Silences()
        self.now = 1_000_000.0
        self.step = 0
        self.told: list[Notification] = []
        self.history: list[tuple[str, int]] = []
        self.mute: Mute | None = None

    def judge(self, *diagnoses: Diagnosis, every: float = STEP_S, **endings: Ending) -> None:
        """One more step; an onset of 0 is this very step, kept while the same subject stays slow."""
        self.wait(every)
        self.step += 1
        since = {d.subject: d.onset for incident in self.incidents for d in incident.diagnoses}
        dated = [replace(d, onset=d.onset or since.get(d.subject, self.step), step=self.step) for d in diagnoses]
        self._tell(self.incidents.update(dated, endings, self._moment()))

    def wait(self, seconds: float, turn_s: float = 60.0) -> None:
        """Time passes, in turns of ``turn_s`` at most."""
        ends = self.now + seconds
        while self.now < ends:
            self.now = min(ends, self.now + turn_s)
            self.silences.expire(self.now, {"r": False})
            self._tell(self.incidents.waiting())

    def silence(self, lasts: float | None = None, **patterns: str) -> None:
        ends_at = None if lasts is None else self.now + lasts
        self.silences.add(Silence(f"s{self.now:.0f}", starts_at=self.now, ends_at=ends_at, **patterns))

    def restart(self) -> None:
        """The watcher is killed and takes up its state."""
        self.incidents = OpenIncidents.from_state(
            orjson.loads(orjson.dumps(self.incidents.state())), self.settings.policy
        )

    def finish(self) -> None:
        self._tell(self.incidents.finish(self._moment()))

    def _moment(self) -> Moment:
        return Moment("r", 1, self.step, self.now, self.mute)

    def _tell(self, changes: Iterable[Change]) -> None:
        told = Told()
        for incident in tell(changes, self._moment(), self._calm, lambda _: Context(), self.settings, told):
            self.incidents.note(incident)
        self.told += told.notifications
        self.history += [(transition.event, transition.step) for transition in told.transitions]

    def _calm(self, incident: Incident) -> Calm:
        return calm(incident, self.now, self.settings, self.silences, self.mute)

    @property
    def reasons(self) -> list[str]:
        return [notification.reason for notification in self.told]

    @property
    def held(self) -> list[str]:
        return [incident.held for incident in self.incidents]


# ------------------------------------------------------------------------------------------------ how often
def test_a_critical_incident_is_told_again_every_four_hours_and_a_warning_is_not() -> None:
    day = Day()
    day.judge(slow(severity="critical"), slow("ref", onset=-50))
    day.wait(12.5 * HOUR_S)
    assert [(n.reason, n.message.phase) for n in day.told] == [
        ("opened", "gen"),
        ("opened", "ref"),
        *[("repeated", "gen")] * 3,
    ]


def test_what_grows_step_by_step_is_told_every_ten_minutes_at_most() -> None:
    day = Day()
    for step in range(60):
        day.judge(slow(ratio=1.3 * 1.1**step))
    assert day.reasons == ["opened", *["updated"] * 5]
    gaps = [b.message.at - a.message.at for a, b in zip(day.told, day.told[1:], strict=False)]
    assert min(gaps) == 600.0


def test_what_came_and_went_three_times_is_told_as_flapping_once_and_its_end_an_hour_later() -> None:
    day = Day()
    for _ in range(10):
        day.judge(slow())
        day.judge()
    assert day.reasons == ["opened", "resolved", "reopened", "resolved", "reopened", "resolved", "flapping"]
    assert len({notification.incident for notification in day.told}) == 1
    assert len({notification.dedup_key for notification in day.told}) == 7
    assert [event for event, _ in day.history] == ["opened", "closed"] * 10, "history knows each time"
    day.wait(2 * HOUR_S)
    assert day.reasons[7:] == ["resolved"]


def test_what_flaps_and_stays_is_not_told_again_but_as_ended_when_it_ends() -> None:
    day = Day()
    for _ in range(4):
        day.judge(slow())
        day.judge()
    day.judge(slow())
    day.wait(3 * HOUR_S)
    assert day.reasons[6:] == ["flapping"]
    day.judge()
    assert day.reasons[7:] == ["resolved"]


# ------------------------------------------------------------------------------------------------ when not
def test_what_holds_when_a_silence_ends_is_told_then() -> None:
    day = Day()
    day.silence(2 * HOUR_S, phase="gen")
    day.judge(slow())
    assert day.held == ["silenced by s1000000"]
    assert day.history == [("opened", 1)], "history is not silenced"
    day.wait(1.9 * HOUR_S)
    assert day.reasons == []
    day.wait(0.2 * HOUR_S)
    assert day.reasons == ["opened"]
    assert day.held == [""]


def test_what_began_and_ended_in_silence_is_not_told() -> None:
    day = Day()
    day.silence(2 * HOUR_S, phase="gen")
    day.judge(slow())
    day.judge()
    day.wait(3 * HOUR_S)
    assert day.reasons == []


def test_what_was_known_and_ended_in_silence_is_told_as_ended_at_once() -> None:
    day = Day()
    day.judge(slow())
    day.silence(2 * HOUR_S, phase="gen")
    day.judge()
    assert day.reasons == ["opened", "resolved"]
    day.restart()
    day.judge(slow())  # comes back while it is silenced
    day.judge()
    assert day.reasons == ["opened", "resolved"]
    day.wait(24 * HOUR_S)
    assert day.reasons == ["opened", "resolved"]


def test_what_became_worse_in_silence_is_told_once_as_it_is_then() -> None:
    day = Day()
    day.judge(slow())
    day.silence(HOUR_S, run="*")
    for ratio in (3.0, 4.0, 5.0):
        day.judge(slow(ratio=ratio, severity="critical"))
    day.wait(1.1 * HOUR_S)
    assert [(n.reason, n.message.ratio) for n in day.told] == [("opened", 2.0), ("escalated", 5.0)]


def test_a_slow_phase_beside_a_silenced_one_is_told() -> None:
    day = Day()
    day.silence(HOUR_S, phase="gen")
    day.judge(slow())
    day.judge(slow(), slow("ref"))
    assert day.reasons == ["opened"]


def test_a_silence_until_the_end_of_the_run_ends_with_it() -> None:
    day = Day()
    day.judge(slow())
    day.silence(None, run="r")
    day.judge(slow(ratio=9.0))
    day.wait(HOUR_S)
    assert day.reasons == ["opened"]
    day.finish()
    assert day.reasons == ["opened", "run ended"]


NIGHT = replace(SETTINGS, quiet_hours=(Window(22 * 60, 8 * 60),))


def at_midnight(settings: Settings) -> Day:
    day = Day(settings)
    day.now = 20_000 * 24 * HOUR_S
    return day


def test_a_warning_of_the_night_waits_until_morning_and_a_critical_one_does_not() -> None:
    day = at_midnight(NIGHT)
    day.judge(slow(), slow("ref", onset=-50, severity="critical"))
    assert [n.message.phase for n in day.told] == ["ref"]
    assert sorted(day.held) == ["", "quiet hours"]
    day.wait(7.9 * HOUR_S)
    assert [n.message.phase for n in day.told if n.reason == "opened"] == ["ref"]
    day.wait(0.2 * HOUR_S)
    assert [n.message.phase for n in day.told if n.reason == "opened"] == ["ref", "gen"]
    (morning,) = (n.message.at for n in day.told if n.message.phase == "gen")
    assert morning % (24 * HOUR_S) == 8 * HOUR_S


def test_a_warning_that_becomes_critical_at_night_wakes_people() -> None:
    day = at_midnight(NIGHT)
    day.judge(slow())
    day.judge(slow(severity="critical"))
    assert [(n.reason, n.message.severity) for n in day.told] == [("opened", "critical")]


def test_maintenance_of_a_run_holds_back_critical_incidents_too() -> None:
    begin = 1_000_000.0
    day = Day(replace(SETTINGS, maintenance=(Maintenance("r", None, begin, begin + HOUR_S),)))
    day.judge(slow(severity="critical"))
    assert day.held == ["maintenance"]
    day.wait(HOUR_S)
    assert day.reasons == ["opened"]


@pytest.mark.parametrize("mute", ["validation", "checkpoint", "resume"])
def test_a_step_that_does_other_things_opens_nothing_by_itself(mute: Mute) -> None:
    day = Day()
    day.mute = mute
    day.judge(slow())
    assert day.held == [mute]
    day.mute = None
    day.judge(slow())
    assert day.reasons == ["opened"]


def test_a_step_that_does_other_things_and_is_the_last_one_heard_of_is_told_after_a_while() -> None:
    day = Day()
    day.mute = "validation"
    day.judge(slow())
    day.wait(1000.0)
    assert day.reasons == ["opened"]


# ------------------------------------------------------------------------------------------------ to whom
def test_who_heard_of_the_warning_hears_of_the_end_of_what_became_critical() -> None:
    routes = (Route(("pager",), "critical"), Route(("team",)))
    day = Day(Settings(receivers=("pager", "team"), routes=routes))
    day.judge(slow())
    day.judge(slow(severity="critical"))
    day.judge()
    assert [(n.reason, n.receiver) for n in day.told] == [
        ("opened", "team"),
        ("escalated", "pager"),
        ("escalated", "team"),
        ("resolved", "pager"),
        ("resolved", "team"),
    ]


def test_sixty_four_ranks_that_fail_within_seconds_are_three_messages_at_most() -> None:
    day = Day()
    failed: list[Diagnosis] = []
    for rank in range(64):
        failed.append(replace(slow("device_oom", rule="fault"), scope=(("rank", str(rank)),)))
        failed.append(replace(slow("actor_died", rule="fault"), scope=(("rank", str(63 - rank)),)))
        if rank % 16 == 15:
            day.judge(*failed, every=1.0)
    day.finish()
    assert len(day.told) <= 3
    assert {notification.incident for notification in day.told} == {day.told[0].incident}


# ------------------------------------------------------------------------------------------------ nothing is forgotten
@pytest.mark.parametrize("seed", range(20))
def test_nothing_that_still_holds_is_forgotten_whatever_was_silent(seed: int) -> None:
    chance = random.Random(seed)
    settings = replace(NIGHT, policy=Policy(repeat_critical_s=6 * HOUR_S, reopen_steps=chance.choice((0, 3, 10))))
    day = at_midnight(settings)
    for _ in range(150):
        said = [
            slow(subject, chance.choice((1.5, 2.0, 4.0)), severity=chance.choice(("warning", "warning", "critical")))
            for subject in ("gen", "ref", "step")
            if chance.random() < 0.6
        ]
        day.mute = chance.choice((None, None, "validation", "resume"))
        if chance.random() < 0.15:
            day.silence(
                chance.choice((600.0, 3 * HOUR_S)), **chance.choice(({"phase": "gen"}, {"run": "r"}, {"rank": "3"}))
            )
        if chance.random() < 0.1:
            day.restart()
        day.judge(*said, every=chance.choice((30.0, 300.0, 2400.0)))
    day.mute = None
    day.wait(24 * HOUR_S, turn_s=600.0)

    told: dict[str, str] = {}
    for notification in day.told:
        told[notification.incident] = notification.reason
    known_open = {incident for incident, last in told.items() if last not in ENDS}
    assert known_open == {incident.id for incident in day.incidents if incident.state == "firing"}
    for incident in day.incidents:
        if incident.state == "firing":
            last = next(n for n in reversed(day.told) if n.incident == incident.id).message
            assert (last.rule, last.phase, last.severity) == (
                incident.diagnoses[0].rule,
                incident.diagnoses[0].subject,
                incident.severity,
            )
    assert len({n.dedup_key for n in day.told}) == len(day.told)
