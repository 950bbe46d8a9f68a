"""Should anybody be told?  The whole answer as one table of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest

from verlwatch.core.incidents import Calm, Held, Policy, reason
from verlwatch.core.types import Diagnosis, Incident, Notice, Reason, Severity

NOW = 100_000.0
LEAD = Diagnosis("phase_spike", "r", "gen", "warning", 120, 120, 2.0, 40.0, 80.0, 40.0, "slow", ("seen",))
UNTOLD = Incident("id", "r", 1, "firing", "warning", (LEAD,), 120, 0.0, 2.0)


def said(
    reason: Reason = "opened", *, ago: float = 3600.0, severity: Severity = "warning", rule: str = "phase_spike"
) -> Notice:
    return Notice(NOW - ago, reason, severity, (rule, "gen"), 2.0, ("team",))


def told(*notices: Notice, **values: Any) -> Incident:
    return replace(UNTOLD, told=notices or (said(),), **values)


def lead(**values: Any) -> tuple[Diagnosis, ...]:
    return (replace(LEAD, **values),)


FIRING = told()
CLOSED = told(state="closed", closed_as="resolved")
DONE = replace(
    UNTOLD, state="closed", closed_as="run ended", severity="info", diagnoses=(replace(LEAD, rule="finished"),)
)
CRITICAL = told(said(ago=4 * 3600.0, severity="critical"), severity="critical")
GROWN = lead(ratio=2.5)
OFTEN = (said(ago=3000.0), said("resolved", ago=2500.0), said("reopened", ago=2000.0), said("resolved", ago=1500.0))
THRICE = (*OFTEN, said("reopened", ago=1000.0), said("resolved", ago=500.0))
FLAPPING = (*THRICE, said("flapping", ago=400.0))
NOTHING = Calm()

Row = tuple[str, Incident, Calm, Reason | None, Held | None]
TABLE: Sequence[Row] = [
    # what is new
    ("it fires for the first time", UNTOLD, NOTHING, "opened", None),
    ("it waits for an explanation", replace(UNTOLD, state="pending"), NOTHING, None, "waits for an explanation"),
    ("it is there for information only", replace(UNTOLD, severity="info"), NOTHING, None, "for information only"),
    ("it has become worse before anybody was told", replace(UNTOLD, severity="critical"), NOTHING, "opened", None),
    (
        "it has ended before anybody was told",
        replace(UNTOLD, state="closed", closed_as="resolved"),
        NOTHING,
        None,
        "ended before anybody was told",
    ),
    ("nothing has changed", FIRING, NOTHING, None, "nothing new"),
    ("it lasts a step longer", replace(FIRING, lost_s=99.0), NOTHING, None, "nothing new"),
    ("the slow step turns out to last", told(diagnoses=lead(rule="phase_shift")), NOTHING, "escalated", None),
    ("lines come again", told(said(rule="silent"), diagnoses=lead(rule="stalled")), NOTHING, None, "nothing new"),
    ("it is late, and then dead", told(said(rule="silent"), diagnoses=lead(rule="killed")), NOTHING, "escalated", None),
    ("it becomes critical", told(severity="critical"), NOTHING, "escalated", None),
    ("it becomes less severe", told(said(severity="critical")), NOTHING, None, "nothing new"),
    ("it grows by a quarter", told(diagnoses=GROWN), NOTHING, "updated", None),
    ("it shrinks by a quarter", told(diagnoses=lead(ratio=1.5)), NOTHING, "updated", None),
    ("it moves a little", told(diagnoses=lead(ratio=2.2)), NOTHING, None, "nothing new"),
    ("another phase leads it now", told(diagnoses=lead(subject="ref", ratio=1.1)), NOTHING, "updated", None),
    ("it goes back", CLOSED, NOTHING, "resolved", None),
    ("it becomes the normal case", replace(CLOSED, closed_as="accepted"), NOTHING, "accepted", None),
    ("the run ends", replace(CLOSED, closed_as="run ended"), NOTHING, "run ended", None),
    ("nothing is heard of it any more", replace(CLOSED, closed_as="expired"), NOTHING, "expired", None),
    ("its end has been told", replace(CLOSED, told=(said(), said("resolved"))), NOTHING, None, "nothing new"),
    ("it comes back after its end", told(said(), said("resolved")), NOTHING, "reopened", None),
    ("it comes back before its end was told", told(said()), NOTHING, None, "nothing new"),
    # how often
    ("it grows a minute after a message", told(said(ago=60.0), diagnoses=GROWN), NOTHING, None, "told just now"),
    ("it becomes critical a minute after a message", told(said(ago=60.0), severity="critical"), NOTHING, "escalated",
     None),
    ("it ends a minute after a message", replace(CLOSED, told=(said(ago=60.0),)), NOTHING, "resolved", None),
    ("the clock was set back since it was told", told(said(ago=-9e5), diagnoses=GROWN), NOTHING, "updated", None),
    ("a critical one has been open for four hours", CRITICAL, NOTHING, "repeated", None),
    ("a critical one has been open for less", replace(CRITICAL, told=(said(severity="critical"),)), NOTHING, None,
     "repeat not due"),
    ("a warning has been open for a day", told(said(ago=86_400.0)), NOTHING, None, "nothing new"),
    ("it comes back for the second time within the hour", told(*OFTEN), NOTHING, "reopened", None),
    ("it comes back for the third time within the hour", told(*THRICE), NOTHING, "flapping", None),
    ("it flaps and ends again", replace(CLOSED, told=FLAPPING), NOTHING, None, "flapping"),
    ("it flaps and moves", told(*FLAPPING, diagnoses=GROWN), NOTHING, None, "flapping"),
    ("it flaps and turns out to last", told(*FLAPPING, diagnoses=lead(rule="phase_shift")), NOTHING, None, "flapping"),
    ("it flaps and becomes critical", told(*FLAPPING, severity="critical"), NOTHING, "escalated", None),
    ("it flaps and the run ends", replace(CLOSED, told=FLAPPING, closed_as="run ended"), NOTHING, "run ended", None),
    ("it flapped and has ended an hour later", replace(CLOSED, told=(said("flapping", ago=3600.0),)), NOTHING,
     "resolved", None),
    # when people do not want to be told
    ("somebody has silenced it", UNTOLD, Calm(silence="s1"), None, "silenced"),
    ("somebody has silenced it and it is critical", replace(UNTOLD, severity="critical"), Calm(silence="s1"), None,
     "silenced"),
    ("it ends in silence", CLOSED, Calm(silence="s1"), "resolved", None),
    ("it is accepted in silence", replace(CLOSED, closed_as="accepted"), Calm(silence="s1"), "accepted", None),
    ("it comes back in silence", told(said(), said("resolved")), Calm(silence="s1"), None, "silenced"),
    ("it opened and ended in silence", replace(UNTOLD, state="closed", closed_as="resolved"), Calm(silence="s1"), None,
     "ended before anybody was told"),
    ("it is silenced and nothing has changed", FIRING, Calm(silence="s1"), None, "nothing new"),
    ("its repeat falls into a silence", CRITICAL, Calm(silence="s1"), None, "silenced"),
    ("the hosts are being worked on", UNTOLD, Calm(maintenance=True), None, "maintenance"),
    ("it fires at night", UNTOLD, Calm(quiet_hours=True), None, "quiet hours"),
    ("it ends while the hosts are being worked on", CLOSED, Calm(maintenance=True), "resolved", None),
    ("it ends at night", CLOSED, Calm(quiet_hours=True), "resolved", None),
    ("it flaps and ends again at night", replace(CLOSED, told=FLAPPING), Calm(quiet_hours=True), None, "flapping"),
    ("it is critical at night", replace(UNTOLD, severity="critical"), Calm(quiet_hours=True), "opened", None),
    ("it fires in a step that validates", UNTOLD, Calm(mute="validation"), None, "validation"),
    ("it fires in a step that saves", UNTOLD, Calm(mute="checkpoint"), None, "checkpoint"),
    ("it fires in the first steps of a resume", UNTOLD, Calm(mute="resume"), None, "resume"),
    ("it is the step that people know as a stall", UNTOLD, Calm(mute="told as a stall"), None, "told as a stall"),
    ("it ends in a step that validates", CLOSED, Calm(mute="validation"), "resolved", None),
    ("the run is done", DONE, Calm(), "finished", None),
    ("the run is done, as people know", replace(DONE, told=(said("finished"),)), Calm(), None, "nothing new"),
    ("the run is done in silence", DONE, Calm(silence="s1"), None, "silenced"),
    ("the run is done at night", DONE, Calm(quiet_hours=True), None, "quiet hours"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "incident", "calm", "expected", "held"), TABLE, ids=[row[0].replace(" ", "-") for row in TABLE]
)
def test_reason(sentence: str, incident: Incident, calm: Calm, expected: Reason | None, held: Held | None) -> None:
    verdict = reason(incident, calm, NOW, Policy())
    assert (verdict.reason, verdict.held) == (expected, held)
    assert verdict.silence == (calm.silence if held == "silenced" else "")


def test_the_table_has_every_answer() -> None:
    assert {row[4] for row in TABLE} - {None} == set(get_args(Held))
    answers = {answer for part in get_args(Reason) for answer in (get_args(part) or (part,))}
    assert {row[3] for row in TABLE} - {None} == answers


def test_a_verdict_says_which_silence_holds_it_back() -> None:
    assert str(reason(UNTOLD, Calm(silence="s1a"), NOW, Policy())) == "silenced by s1a"
