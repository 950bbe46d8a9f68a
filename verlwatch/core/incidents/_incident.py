"""One incident: how it begins, grows, ends and comes back, each as a copy; and its form in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from verlwatch.core.incidents._grouping import ALL_SLOW, is_derived, worst
from verlwatch.core.incidents._policy import Policy
from verlwatch.core.incidents._reason import Mute, news
from verlwatch.core.incidents._words import duration
from verlwatch.core.metrics import less_is_worse
from verlwatch.core.types import ClosedAs, Diagnosis, Incident, Notice

MINUTE_S = 60.0


class Ending(NamedTuple):
    """How a change ended, and the last step that showed it."""

    closed_as: ClosedAs
    last_step: int


class Change(NamedTuple):
    """One incident before and after a step; ``before`` is None for a new one."""

    before: Incident | None
    after: Incident


@dataclass(frozen=True, slots=True)
class Moment:
    """Where and when a step was judged; ``mute`` is what made it a step that opens nothing by itself."""

    run: str
    attempt: int
    step: int
    now: float
    mute: Mute | None = None


def incident_id(run: str, attempt: int, subject: str, step: int) -> str:
    """Short, and the same whenever the same bytes are judged: a restarted watcher tells no incident twice."""
    return hashlib.sha256(f"{run}\0{attempt}\0{subject}\0{step}".encode()).hexdigest()[:8]


def new(diagnosis: Diagnosis, moment: Moment) -> Incident:
    """What a diagnosis opens; it waits until it is known whether something explains it."""
    return Incident(
        id=incident_id(moment.run, moment.attempt, diagnosis.subject, moment.step),
        run=moment.run,
        attempt=moment.attempt,
        state="pending",
        severity=diagnosis.severity,
        diagnoses=(diagnosis,),
        opened_step=moment.step,
        opened_at=moment.now,
        worst_ratio=diagnosis.ratio,
        lost_s=_cost_since_onset(diagnosis, moment),
    )


def reopened(incident: Incident, diagnosis: Diagnosis, moment: Moment) -> Incident:
    """Another episode of the incident; what it cost goes on adding up."""
    return replace(
        incident,
        state="firing",
        severity=diagnosis.severity,
        diagnoses=(diagnosis,),
        worst_ratio=diagnosis.ratio,
        lost_s=incident.lost_s + _cost_since_onset(diagnosis, moment),
        closed_as=None,
        closed_step=None,
        last_step=None,
        episodes=incident.episodes + 1,
    )


def joined(incident: Incident, diagnosis: Diagnosis, moment: Moment) -> Incident:
    """The incident with one more diagnosis.  What explains the one that leads it takes the lead."""
    lead = incident.diagnoses[0]
    if is_derived(lead) and not is_derived(diagnosis):
        led = new(diagnosis, moment)
        if incident.state == "firing":  # people know it by its id
            led = replace(incident, worst_ratio=diagnosis.ratio, lost_s=led.lost_s)
        return replace(led, state="firing", diagnoses=(diagnosis, *incident.diagnoses))
    severity = worst((incident.severity, diagnosis.severity))
    if diagnosis.rule == ALL_SLOW:
        lost = max(incident.lost_s, _cost_since_onset(diagnosis, moment))
        members = (diagnosis, *incident.diagnoses)
        return replace(incident, diagnoses=members, severity=severity, lost_s=lost, worst_ratio=diagnosis.ratio)
    is_counted = is_derived(diagnosis) or lead.rule == ALL_SLOW
    cost = 0.0 if is_counted else _cost_since_onset(diagnosis, moment)
    members = (*incident.diagnoses, diagnosis)
    return replace(incident, diagnoses=members, severity=severity, lost_s=incident.lost_s + cost)


def worse_ratio(incident: Incident, lead: Diagnosis) -> float:
    """The worst ratio so far; of throughput and the like the smallest."""
    return (min if less_is_worse(lead.subject) else max)(incident.worst_ratio, lead.ratio)


def _cost_since_onset(diagnosis: Diagnosis, moment: Moment) -> float:
    """What this step cost, and what the steps since the onset did by the size of the change."""
    if diagnosis.cost_s == 0.0:
        return 0.0
    earlier = max(0, moment.step - diagnosis.onset) * (diagnosis.after - diagnosis.before)
    return max(0.0, diagnosis.cost_s) + max(0.0, earlier)


def closed(incident: Incident, ending: Ending, moment: Moment) -> Incident:
    """The incident at its end."""
    return replace(
        incident,
        state="closed",
        closed_as=ending.closed_as,
        closed_step=moment.step,
        last_step=ending.last_step,
    )


def may_come_back(incident: Incident, attempt: int, step: int, policy: Policy) -> bool:
    """Whether what turns up at this step would be a closed incident again, and no new one."""
    ended = incident.closed_step if incident.closed_step is not None else -1
    near = incident.attempt == attempt and step - ended <= policy.reopen_steps
    return near and incident.closed_as == "resolved"


def is_untold(incident: Incident) -> bool:
    """Whether those whom a closed incident concerns have not been told of its end."""
    last = incident.told[-1] if incident.told else None
    return news(last, incident) is not None


def told_ago(incident: Incident, now: float) -> str:
    """How long ago people were first told of it, in words; empty for less than a minute, and where they were not."""
    ago = float(int(now - incident.told[0].at)) if incident.told else 0.0
    return duration(ago) if ago >= MINUTE_S else ""


def incident_state(incident: Incident) -> dict[str, Any]:
    """JSON-safe; the inverse of `incident_from`."""
    recorded = None if incident.recorded is None else _written(incident.recorded)
    return {**asdict(incident), "told": [_written(notice) for notice in incident.told], "recorded": recorded}


def _written(notice: Notice) -> dict[str, Any]:
    data = notice._asdict()
    return {"said_at": data.pop("at"), **data}


def incident_from(data: Mapping[str, Any]) -> Incident:
    """The inverse of `incident_state`, by way of JSON."""
    return Incident(
        **{
            **data,
            "diagnoses": tuple(map(_diagnosis_from, data["diagnoses"])),
            "told": tuple(map(_notice_from, data["told"])),
            "recorded": None if data["recorded"] is None else _notice_from(data["recorded"]),
        }
    )


def _diagnosis_from(data: Mapping[str, Any]) -> Diagnosis:
    texts = {name: tuple(data[name]) for name in ("evidence", "advice")}
    pairs = {name: tuple((label, value) for label, value in data[name]) for name in ("scope", "facts")}
    return Diagnosis(**{**data, **texts, **pairs})


def _notice_from(data: Mapping[str, Any]) -> Notice:
    rule, phase = data["lead"]
    receivers = tuple(data["receivers"])
    return Notice(data["said_at"], data["reason"], data["severity"], (rule, phase), data["ratio"], receivers)
