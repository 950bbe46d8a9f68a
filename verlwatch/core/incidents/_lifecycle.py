"""Diagnoses -> incidents: what belongs together, what is new, what is over.

Level-triggered: each step brings all diagnoses that hold, and an incident lasts as long as one of those that lead it.

* Phases whose changes began within TOGETHER steps of each other are one incident; the one that costs most leads it, or
  what explains all of them.
* STEP, throughput and MFU follow from the phases.  A diagnosis of theirs waits PATIENCE steps for a phase that explains
  it, and one that turns up while the change of a phase fades out belongs to that change.
* What comes back within a few steps of its end is the same incident, open again.
* What a person has accepted stays accepted while it lasts and does not grow by MOVED.
* After the end of a run nothing opens until its next attempt.
* A closed incident is kept until its end has been told to those who know of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from verlwatch.core.incidents._grouping import ALL_SLOW, DERIVED, by_subject, cost_s, is_derived, order, worst
from verlwatch.core.incidents._incident import (
    Change,
    Ending,
    Moment,
    closed,
    incident_from,
    incident_state,
    is_untold,
    joined,
    may_come_back,
    new,
    reopened,
    worse_ratio,
)
from verlwatch.core.incidents._policy import Policy
from verlwatch.core.incidents._reason import MOVED
from verlwatch.core.metrics import less_is_worse
from verlwatch.core.types import ClosedAs, Diagnosis, Incident

TOGETHER = 3
PATIENCE = 3


class OpenIncidents:
    """The incidents of one run: those that are open, and closed ones that are not done with."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._open: list[Incident] = []
        self._lately: list[Incident] = []  # closed; may come back, or its end is not told yet
        self._absorbed: set[str] = set()  # derived subjects that belong to an incident already closed
        self._absorb_until = -1
        self._accepted: dict[str, float] = {}  # subject -> ratio that a person has accepted
        self._counted = (0, -1)  # attempt and step whose cost is in: a second source may tell more of the same step

    def __iter__(self) -> Iterator[Incident]:
        return iter(self._open)

    @property
    def subjects(self) -> frozenset[str]:
        """What is known of already: subjects of open incidents, and accepted ones."""
        return frozenset(self._accepted) | {d.subject for incident in self._open for d in incident.diagnoses}

    def update(
        self, diagnoses: Sequence[Diagnosis], endings: Mapping[str, Ending], moment: Moment
    ) -> tuple[Change, ...]:
        """Takes everything that holds at this step; ``endings`` says how the changes that ended just now ended.

        Answers with every incident that people may have to be told of, changed or not.
        """
        if not (diagnoses or self._open or self._absorbed or self._lately or self._accepted):
            return ()
        left = by_subject(diagnoses)
        again = (moment.attempt, moment.step) <= self._counted
        self._counted = max(self._counted, (moment.attempt, moment.step))
        if again:
            left = {subject: replace(d, cost_s=0.0) for subject, d in left.items()}
        self._leave_out_accepted(left)
        changes = [self._refresh(incident, left, endings, moment) for incident in self._open]
        self._absorb(left, moment)
        for diagnosis in sorted(left.values(), key=order):
            self._place(diagnosis, changes, moment)
        self._open = [change.after for change in changes if change.after.state != "closed"]
        self._lately = [incident for incident in self._lately if self._is_of_use(incident, moment)]
        untold = [Change(incident, incident) for incident in self._lately]
        self._lately += [change.after for change in changes if change.after.state == "closed"]
        return (*changes, *untold)

    def finish(self, moment: Moment, closed_as: ClosedAs = "run ended") -> tuple[Change, ...]:
        """The run is over, or will not be heard of any more: what is open ends with it."""
        end = Ending(closed_as, moment.step)
        changes = tuple(Change(incident, closed(incident, end, moment)) for incident in self._open)
        untold = tuple(Change(incident, incident) for incident in self._lately)
        self._lately += [change.after for change in changes if change.after.told]
        self._open, self._absorbed, self._accepted = [], set(), {}
        return (*changes, *untold)

    def waiting(self) -> tuple[Change, ...]:
        """Every incident that people may have to be told of, though no step has been judged: time has passed.

        What only history shows waits for the first new step.
        """
        known = (incident for incident in (*self._open, *self._lately) if incident.recorded is not None)
        return tuple(Change(incident, incident) for incident in known)

    def accept(self, key: str, moment: Moment) -> Change | None:
        """A person wants to hear no more of it unless it grows; None if no open incident has that id."""
        incident = next((incident for incident in self._open if incident.id == key), None)
        if incident is None:
            return None
        self._accepted.update((d.subject, d.ratio) for d in incident.diagnoses)
        after = replace(closed(incident, Ending("accepted", moment.step), moment), by_hand=True)
        change = Change(incident, after)
        self._open.remove(incident)
        self._lately.append(change.after)
        return change

    def note(self, incident: Incident) -> None:
        """Replaces an incident by a copy that remembers what was told of it, or forgets it where that was the end."""
        self._open = [incident if known.id == incident.id else known for known in self._open]
        self._lately = [incident if known.id == incident.id else known for known in self._lately]
        if incident.state == "closed" and incident.closed_as != "resolved" and not is_untold(incident):
            self._lately = [known for known in self._lately if known.id != incident.id]

    # ------------------------------------------------------------------------------------------------ a step's way
    def _leave_out_accepted(self, left: dict[str, Diagnosis]) -> None:
        """Drops what a person has accepted; what is over, or has grown, is accepted no longer."""
        self._accepted = {
            subject: ratio
            for subject, ratio in self._accepted.items()
            if subject in left and not _has_grown(ratio, left[subject])
        }
        for subject in self._accepted:
            del left[subject]

    def _refresh(
        self, incident: Incident, left: dict[str, Diagnosis], endings: Mapping[str, Ending], moment: Moment
    ) -> Change:
        """The incident with what still holds of it; closed when nothing of what leads it does."""
        members = [left.pop(d.subject) for d in incident.diagnoses if d.subject in left]
        lead = incident.diagnoses[0]
        leading = [d for d in members if is_derived(d) == is_derived(lead)]
        if leading:
            members = leading + [d for d in members if d not in leading]
            return Change(incident, self._firing(incident, members, moment))
        self._absorbed.update(d.subject for d in members)
        self._absorb_until = moment.step + PATIENCE
        return Change(incident, closed(incident, _ending(incident, endings, moment), moment))

    def _firing(self, incident: Incident, members: Sequence[Diagnosis], moment: Moment) -> Incident:
        waited = moment.step - incident.opened_step >= PATIENCE
        lead = members[0]
        same = lead.subject == incident.diagnoses[0].subject
        lost = incident.lost_s + cost_s(members)
        lasted = moment.step - lead.onset + 1
        severity = worst((incident.severity, *(d.severity for d in members)))
        if severity == "warning" and lasted >= self.policy.critical_steps and lost >= self.policy.critical_cost_s:
            severity = "critical"
        return replace(
            incident,
            state="firing" if incident.state == "firing" or waited else "pending",
            diagnoses=tuple(members),
            severity=severity,
            worst_ratio=worse_ratio(incident, lead) if same else lead.ratio,
            lost_s=lost,
        )

    def _absorb(self, left: dict[str, Diagnosis], moment: Moment) -> None:
        """Drops derived diagnoses that are the fading trace of an incident just closed."""
        if moment.step <= self._absorb_until:
            self._absorbed.update(DERIVED & left.keys())
        self._absorbed &= left.keys()
        for subject in self._absorbed:
            del left[subject]

    def _place(self, diagnosis: Diagnosis, changes: list[Change], moment: Moment) -> None:
        """Joins a diagnosis to the incident it belongs to, opens one again or opens one for it."""
        for i, (before, after) in enumerate(changes):
            if after.state != "closed" and abs(after.diagnoses[0].onset - diagnosis.onset) <= TOGETHER:
                changes[i] = Change(before, joined(after, diagnosis, moment))
                return
        earlier = self._come_back(diagnosis, moment)
        if earlier is not None:
            changes.append(Change(earlier, reopened(earlier, diagnosis, moment)))
            return
        incident = new(diagnosis, moment)
        if not is_derived(incident.diagnoses[0]):
            incident = replace(incident, state="firing")
        changes.append(Change(None, incident))

    def _come_back(self, diagnosis: Diagnosis, moment: Moment) -> Incident | None:
        """The incident of the same subject that ended a few steps ago; it is closed no longer."""
        for incident in reversed(self._lately):
            if incident.diagnoses[0].subject == diagnosis.subject and self._may_come_back(incident, moment):
                self._lately.remove(incident)
                return incident
        return None

    def _may_come_back(self, incident: Incident, moment: Moment) -> bool:
        return may_come_back(incident, moment.attempt, moment.step, self.policy)

    def _is_of_use(self, incident: Incident, moment: Moment) -> bool:
        """Whether a closed incident may come back, or has an end that people must still be told."""
        return is_untold(incident) or self._may_come_back(incident, moment)

    # ------------------------------------------------------------------------------------------------ state
    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `from_state`."""
        return {
            "open": [incident_state(incident) for incident in self._open],
            "lately": [incident_state(incident) for incident in self._lately],
            "accepted": self._accepted,
            "absorbed": sorted(self._absorbed),
            "absorb_until": self._absorb_until,
            "counted": list(self._counted),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], policy: Policy | None = None) -> OpenIncidents:
        """The inverse of `state`."""
        self = cls(policy)
        self._open = [incident_from(data) for data in state["open"]]
        self._lately = [incident_from(data) for data in state["lately"]]
        self._accepted = dict(state["accepted"])
        self._absorbed = set(state["absorbed"])
        self._absorb_until = state["absorb_until"]
        self._counted = (state["counted"][0], state["counted"][1])
        return self


def _ending(incident: Incident, endings: Mapping[str, Ending], moment: Moment) -> Ending:
    """How what led the incident has ended; all phases together have as the first of them did."""
    lead = incident.diagnoses[0]
    subjects = [d.subject for d in incident.diagnoses] if lead.rule == ALL_SLOW else [lead.subject]
    known = (endings[subject] for subject in subjects if subject in endings)
    return next(known, Ending("resolved", moment.step - 1))


def _has_grown(accepted: float, diagnosis: Diagnosis) -> bool:
    """Whether it is worse by MOVED than what was accepted; of throughput less is worse."""
    factor = diagnosis.ratio / accepted
    return (1 / factor if less_is_worse(diagnosis.subject) else factor) >= MOVED
