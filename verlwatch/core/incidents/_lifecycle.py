"""Diagnoses -> incidents: what belongs together, what is new, what is over.

Level-triggered: each step brings all diagnoses that hold, and an incident lasts as long as one of those that lead it.

* Phases whose changes began within TOGETHER steps of each other are one incident; the one that costs most leads it.
* STEP and THROUGHPUT follow from the phases.  A diagnosis of theirs waits PATIENCE steps for a phase that explains it,
  and one that turns up while the change of a phase fades out belongs to that change.
* After the end of a run nothing opens until its next attempt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from verlwatch.core.incidents._reason import RANK
from verlwatch.core.phases import STEP, THROUGHPUT
from verlwatch.core.types import ClosedAs, Diagnosis, Incident, Severity

TOGETHER = 3
PATIENCE = 3
DERIVED = frozenset({STEP, THROUGHPUT})


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
    """Where and when a step was judged."""

    run: str
    attempt: int
    step: int
    now: float


class OpenIncidents:
    """The incidents of one run that are not closed."""

    def __init__(self) -> None:
        self._open: list[Incident] = []
        self._absorbed: set[str] = set()  # derived subjects that belong to an incident already closed
        self._absorb_until = -1
        self._counted = (0, -1)  # attempt and step whose cost is in: a second source may tell more of the same step

    def __iter__(self) -> Iterator[Incident]:
        return iter(self._open)

    def update(
        self, diagnoses: Sequence[Diagnosis], endings: Mapping[str, Ending], moment: Moment
    ) -> tuple[Change, ...]:
        """Takes everything that holds at this step; ``endings`` says how the changes that ended just now ended."""
        if not (diagnoses or self._open or self._absorbed):
            return ()
        left = {d.subject: d for d in diagnoses}
        again = (moment.attempt, moment.step) <= self._counted
        self._counted = max(self._counted, (moment.attempt, moment.step))
        if again:
            left = {subject: replace(d, cost_s=0.0) for subject, d in left.items()}
        changes = [self._refresh(incident, left, endings, moment) for incident in self._open]
        self._absorb(left, moment)
        for diagnosis in sorted(left.values(), key=lambda d: (d.subject in DERIVED, -d.cost_s)):
            self._place(diagnosis, changes, moment)
        self._open = [change.after for change in changes if change.after.state != "closed"]
        return tuple(change for change in changes if change.before != change.after or not change.after.notified)

    def finish(self, moment: Moment, closed_as: ClosedAs = "run ended") -> tuple[Change, ...]:
        """The run is over, or will not be heard of any more: what is open ends with it."""
        end = Ending(closed_as, moment.step)
        changes = tuple(Change(incident, _closed(incident, end, moment)) for incident in self._open)
        self._open, self._absorbed = [], set()
        return changes

    def note(self, incident: Incident) -> None:
        """Replaces an open incident by a copy that remembers what was told of it."""
        self._open = [incident if known.id == incident.id else known for known in self._open]

    def _refresh(
        self, incident: Incident, left: dict[str, Diagnosis], endings: Mapping[str, Ending], moment: Moment
    ) -> Change:
        """The incident with what still holds of it; closed when nothing of what leads it does."""
        members = [left.pop(d.subject) for d in incident.diagnoses if d.subject in left]
        lead = incident.diagnoses[0].subject
        leading = [d for d in members if (d.subject in DERIVED) == (lead in DERIVED)]
        if leading:
            members = leading + [d for d in members if d not in leading]
            return Change(incident, _firing(incident, members, moment))
        self._absorbed.update(d.subject for d in members)
        self._absorb_until = moment.step + PATIENCE
        return Change(incident, _closed(incident, endings.get(lead, Ending("resolved", moment.step - 1)), moment))

    def _absorb(self, left: dict[str, Diagnosis], moment: Moment) -> None:
        """Drops derived diagnoses that are the fading trace of an incident just closed."""
        if moment.step <= self._absorb_until:
            self._absorbed.update(DERIVED & left.keys())
        self._absorbed &= left.keys()
        for subject in self._absorbed:
            del left[subject]

    def _place(self, diagnosis: Diagnosis, changes: list[Change], moment: Moment) -> None:
        """Joins a diagnosis to the incident it belongs to, or opens one for it."""
        for i, (before, after) in enumerate(changes):
            if after.state != "closed" and abs(after.diagnoses[0].onset - diagnosis.onset) <= TOGETHER:
                changes[i] = Change(before, _joined(after, diagnosis, moment))
                return
        incident = _new(diagnosis, moment)
        if incident.diagnoses[0].subject not in DERIVED:
            incident = replace(incident, state="firing")
        changes.append(Change(None, incident))

    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `from_state`."""
        return {
            "open": [asdict(incident) for incident in self._open],
            "absorbed": sorted(self._absorbed),
            "absorb_until": self._absorb_until,
            "counted": list(self._counted),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> OpenIncidents:
        """The inverse of `state`."""
        self = cls()
        self._open = [incident_from(data) for data in state["open"]]
        self._absorbed = set(state["absorbed"])
        self._absorb_until = state["absorb_until"]
        self._counted = (state["counted"][0], state["counted"][1])
        return self


def incident_id(run: str, attempt: int, subject: str, step: int) -> str:
    """Short, and the same whenever the same bytes are judged: a restarted watcher tells no incident twice."""
    return hashlib.sha256(f"{run}\0{attempt}\0{subject}\0{step}".encode()).hexdigest()[:8]


def _new(diagnosis: Diagnosis, moment: Moment) -> Incident:
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


def _joined(incident: Incident, diagnosis: Diagnosis, moment: Moment) -> Incident:
    """The incident with one more diagnosis.  A phase takes the lead of one that only a derived metric opened."""
    if incident.diagnoses[0].subject in DERIVED and diagnosis.subject not in DERIVED:
        new = _new(diagnosis, moment)
        if incident.state == "firing":  # people know it by its id
            new = replace(incident, worst_ratio=diagnosis.ratio, lost_s=new.lost_s)
        return replace(new, state="firing", diagnoses=(diagnosis, *incident.diagnoses))
    cost = 0.0 if diagnosis.subject in DERIVED else _cost_since_onset(diagnosis, moment)
    return replace(
        incident,
        diagnoses=(*incident.diagnoses, diagnosis),
        severity=_worst((incident.severity, diagnosis.severity)),
        lost_s=incident.lost_s + cost,
    )


def _firing(incident: Incident, members: Sequence[Diagnosis], moment: Moment) -> Incident:
    waited = moment.step - incident.opened_step >= PATIENCE
    lead = members[0]
    same = lead.subject == incident.diagnoses[0].subject
    return replace(
        incident,
        state="firing" if incident.state == "firing" or waited else "pending",
        diagnoses=tuple(members),
        severity=_worst((incident.severity, *(d.severity for d in members))),
        worst_ratio=max(incident.worst_ratio, lead.ratio) if same else lead.ratio,
        lost_s=incident.lost_s + sum(max(0.0, d.cost_s) for d in members if d.subject not in DERIVED or d is lead),
    )


def _cost_since_onset(diagnosis: Diagnosis, moment: Moment) -> float:
    """What this step cost, and what the steps since the onset did by the size of the change."""
    if diagnosis.cost_s == 0.0:
        return 0.0
    earlier = max(0, moment.step - diagnosis.onset) * (diagnosis.after - diagnosis.before)
    return max(0.0, diagnosis.cost_s) + max(0.0, earlier)


def _closed(incident: Incident, ending: Ending, moment: Moment) -> Incident:
    return replace(
        incident,
        state="closed",
        closed_as=ending.closed_as,
        closed_step=moment.step,
        last_step=ending.last_step,
    )


def _worst(severities: Iterable[Severity]) -> Severity:
    return max(severities, key=lambda severity: RANK[severity])


def incident_from(data: Mapping[str, Any]) -> Incident:
    """An incident from what `asdict` made of it, by way of JSON."""
    diagnoses = tuple(
        Diagnosis(**{**d, "evidence": tuple(d["evidence"]), "advice": tuple(d["advice"])}) for d in data["diagnoses"]
    )
    return Incident(**{**data, "diagnoses": diagnoses, "notified": tuple(data["notified"])})
