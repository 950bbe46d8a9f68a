"""Should anybody be told?  One pure function with a closed list of answers.

It compares how an incident stands with what people were last told of it, and not one step with the step before: what
is held back now is asked for again, so nothing that still holds is forgotten.

* What is held back by a silence, a maintenance or quiet hours is told when that ends, if it still holds by then.
* The end of what people know of is told at any time: who is not told would go on looking for what is over.
* What ended before anybody knew of it is told to nobody.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from verlwatch.core.incidents._grouping import ANNOUNCED, RANK
from verlwatch.core.incidents._policy import Policy
from verlwatch.core.types import ClosedAs, Incident, Notice, Reason

MOVED = 1.25
"""An open incident is told again when its ratio has changed by this factor."""
HOUR_S = 3600.0
MUTE_S = 900.0
"""So long at most a validation, a checkpoint or a resume keeps an incident from being told."""

LATE = frozenset({"stalled", "silent"})
"""Rules of one and the same: that a run is late, with lines that come or without."""

Mute = Literal["validation", "checkpoint", "resume", "told as a stall"]
Held = Literal[
    "nothing new",
    "repeat not due",
    "waits for an explanation",
    "ended before anybody was told",
    "for information only",
    "silenced",
    "maintenance",
    "quiet hours",
    "validation",
    "checkpoint",
    "resume",
    "told as a stall",
    "flapping",
    "told just now",
]
"""Why nobody is told."""
NO_NEWS: frozenset[Held] = frozenset({"nothing new", "repeat not due"})

ENDS: frozenset[Reason] = frozenset(get_args(ClosedAs))
_OPENINGS: frozenset[Reason] = frozenset({"opened", "reopened"})
_FINAL: frozenset[Reason] = frozenset({"accepted", "run ended", "expired"})


class Calm(NamedTuple):
    """What keeps people from being told of one incident now: a silence (its id), a time, or what the run is doing."""

    silence: str = ""
    maintenance: bool = False
    quiet_hours: bool = False
    mute: Mute | None = None


class Verdict(NamedTuple):
    """Why people are told, or why not; ``silence`` is the id of the silence that holds it back."""

    reason: Reason | None
    held: Held | None = None
    silence: str = ""

    def __str__(self) -> str:
        return f"silenced by {self.silence}" if self.silence else self.reason or self.held or ""


def news(last: Notice | None, incident: Incident) -> Reason | None:
    """What is new of an incident against what was last said of it; None if nothing is.

    opened: it fires and nobody knows · reopened: it fires again after its end · escalated: more severe, or a slow step
    turned out to last · updated: its size moved by MOVED, or another phase leads it now · resolved, accepted, run
    ended, expired: it was known and is closed · finished: an announcement that nobody knows yet.
    """
    if incident.diagnoses[0].rule in ANNOUNCED:
        return "finished" if last is None else None
    if incident.state == "closed":
        return incident.closed_as if last is not None and last.reason not in ENDS else None
    if incident.state == "pending":
        return None
    if last is None:
        return "opened"
    if last.reason in ENDS:
        return "reopened"
    lead, (rule, phase) = incident.diagnoses[0], last.lead
    if RANK[incident.severity] > RANK[last.severity]:
        return "escalated"
    if lead.subject != phase:
        return "updated"
    if lead.rule != rule and not {lead.rule, rule} <= LATE:
        return "escalated"
    factor = lead.ratio / last.ratio if last.ratio > 0 else 1.0
    return "updated" if factor >= MOVED or factor <= 1 / MOVED else None


def reason(incident: Incident, calm: Calm, now: float, policy: Policy) -> Verdict:
    """Why people are told of ``incident`` at ``now``, or what keeps them from being told."""
    last = incident.told[-1] if incident.told else None
    what = news(last, incident) or _repeat(incident, last, now, policy)
    if what is None:
        return Verdict(None, _nothing(incident, last, policy))
    if incident.severity == "info" and what != "finished":
        return Verdict(None, "for information only")
    if what in ENDS:
        return _damped(what, incident, now, policy)
    if calm.silence:
        return Verdict(None, "silenced", calm.silence)
    if calm.maintenance:
        return Verdict(None, "maintenance")
    if calm.quiet_hours and incident.severity != "critical":
        return Verdict(None, "quiet hours")
    if calm.mute is not None and what == "opened":
        return Verdict(None, calm.mute)
    return _damped(what, incident, now, policy)


def _repeat(incident: Incident, last: Notice | None, now: float, policy: Policy) -> Reason | None:
    if last is None or incident.state != "firing":
        return None
    return "repeated" if _since(last, now) >= policy.repeat_s(incident.severity) else None


def _nothing(incident: Incident, last: Notice | None, policy: Policy) -> Held:
    if incident.state == "pending":
        return "waits for an explanation"
    if incident.state == "closed":
        return "ended before anybody was told" if last is None else "nothing new"
    return "repeat not due" if policy.repeat_s(incident.severity) < float("inf") else "nothing new"


def _damped(what: Reason, incident: Incident, now: float, policy: Policy) -> Verdict:
    """What comes too often is told once as flapping; how it stands an hour later is told then."""
    within_the_hour = [notice for notice in incident.told if _since(notice, now) < HOUR_S]
    worse = bool(incident.told) and RANK[incident.severity] > RANK[incident.told[-1].severity]
    if what not in _FINAL and not worse:
        if any(notice.reason == "flapping" for notice in within_the_hour):
            return Verdict(None, "flapping")
        openings = sum(notice.reason in _OPENINGS for notice in within_the_hour)
        if what == "reopened" and openings >= policy.openings_per_hour:
            return Verdict("flapping")
    if what == "updated" and _since(incident.told[-1], now) < policy.update_s:
        return Verdict(None, "told just now")
    return Verdict(what)


def _since(notice: Notice, now: float) -> float:
    """Seconds since then; a notice of the future was written by a clock that has been set back, and is long ago."""
    return now - notice.at if notice.at <= now else float("inf")
