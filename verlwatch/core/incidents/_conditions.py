"""Incidents that are no change of a metric: a run is stuck, a host runs out of memory, a card has gone.

What such a diagnosis says stands in its own title and facts; its ratio means nothing.  Level-triggered as the others
are: an incident lasts as long as a rule repeats the diagnosis of its subject.  Another rule may take it over (a run
that was stuck turns out to be dead): that is the same incident, which has become worse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from verlwatch.core.incidents._grouping import by_subject, worst
from verlwatch.core.incidents._incident import (
    Change,
    Ending,
    Moment,
    closed,
    incident_from,
    incident_id,
    incident_state,
    is_untold,
    may_come_back,
    new,
    reopened,
)
from verlwatch.core.incidents._policy import Policy
from verlwatch.core.types import ClosedAs, Diagnosis, Incident

MOST_LATELY = 256
"""Closed ones that are remembered: a run may make no step for long."""
OPENINGS = 512
"""So many are counted; onsets only grow."""


class Conditions:
    """Those of one run: at most one open incident for each subject."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._open: dict[str, Incident] = {}
        self._lately: list[Incident] = []  # closed; may come back, or its end is not told yet
        self._accepted: dict[str, str] = {}  # subject -> the rule that a person wants to hear no more of
        self._openings: dict[str, int] = {}  # of a subject with the same onset: no two incidents have the same id

    def __iter__(self) -> Iterator[Incident]:
        return iter(self._open.values())

    def __getitem__(self, subject: str) -> Incident:
        return self._open[subject]

    def __contains__(self, subject: str) -> bool:
        return subject in self._open

    def update(
        self,
        diagnoses: Sequence[Diagnosis],
        moment: Moment,
        outcomes: Mapping[str, str] | None = None,
        unknown: Collection[str] = (),
    ) -> tuple[Change, ...]:
        """Takes everything that holds now.

        ``outcomes`` word by subject how that ended which holds no longer; ``unknown`` are subjects of which nobody
        knows: what was open of them stays open.
        """
        left = by_subject(diagnoses)
        self._accepted = {
            subject: rule
            for subject, rule in self._accepted.items()
            if (left[subject].rule == rule if subject in left else subject in unknown)
        }
        for subject in self._accepted:
            left.pop(subject, None)
        changes = []
        for subject, known in list(self._open.items()):
            if subject in left:
                changes.append(Change(known, _grown(known, left[subject])))
            elif subject in unknown:
                changes.append(Change(known, known))
            else:
                end = Ending("resolved", moment.step)
                changes.append(self._closed(known, end, moment, (outcomes or {}).get(subject, "")))
        changes += [self._opened(diagnosis, moment) for subject, diagnosis in left.items() if subject not in self._open]
        over = {change.after.id for change in changes}
        untold = [Change(incident, incident) for incident in self._lately if incident.id not in over]
        self._open = {c.after.diagnoses[0].subject: c.after for c in changes if c.after.state != "closed"}
        return (*changes, *untold)

    def announce(self, diagnosis: Diagnosis, moment: Moment) -> Change:
        """What is told once and is over with that."""
        opened = self._opened(diagnosis, moment).after
        return self._closed(opened, Ending("run ended", moment.step), moment, diagnosis.title)

    def finish(self, moment: Moment, closed_as: ClosedAs = "run ended", outcome: str = "") -> tuple[Change, ...]:
        """Nothing more is expected: what is open ends."""
        end = Ending(closed_as, moment.step)
        changes = [self._closed(incident, end, moment, outcome) for incident in self._open.values()]
        self._open, self._accepted = {}, {}
        return tuple(changes)

    def waiting(self) -> tuple[Change, ...]:
        """Every incident that people may have to be told of though nothing has changed.

        What only history shows waits for the first news.
        """
        known = (incident for incident in (*self._open.values(), *self._lately) if incident.recorded is not None)
        return tuple(Change(incident, incident) for incident in known)

    def accept(self, key: str, moment: Moment) -> Change | None:
        """A person wants to hear no more of it until it is another; None if no open incident has that id."""
        known = next((incident for incident in self._open.values() if incident.id == key), None)
        if known is None:
            return None
        lead = known.diagnoses[0]
        self._accepted[lead.subject] = lead.rule
        del self._open[lead.subject]
        return self._closed(replace(known, by_hand=True), Ending("accepted", moment.step), moment, "")

    def note(self, incident: Incident) -> None:
        """Replaces an incident by a copy that remembers what was told of it, or forgets it where that was the end."""
        subject = incident.diagnoses[0].subject
        if subject in self._open and self._open[subject].id == incident.id:
            self._open[subject] = incident
        is_done = incident.state == "closed" and incident.closed_as != "resolved" and not is_untold(incident)
        known = (incident if one.id == incident.id else one for one in self._lately)
        self._lately = [one for one in known if not (is_done and one.id == incident.id)]

    def forget(self, attempt: int, step: int) -> None:
        """Lets go of closed incidents whose end is told and which are too long ago to come back."""
        kept = [one for one in self._lately if is_untold(one) or may_come_back(one, attempt, step, self.policy)]
        self._lately = kept[-MOST_LATELY:]

    # ------------------------------------------------------------------------------------------------ one incident
    def _opened(self, diagnosis: Diagnosis, moment: Moment) -> Change:
        for known in self._lately:
            lead = known.diagnoses[0]
            same = (lead.subject, lead.rule) == (diagnosis.subject, diagnosis.rule)
            if same and may_come_back(known, moment.attempt, moment.step, self.policy):
                self._lately.remove(known)
                return Change(known, replace(reopened(known, diagnosis, moment), outcome=""))
        return Change(None, replace(new(diagnosis, moment), id=self._id(diagnosis, moment), state="firing"))

    def _id(self, diagnosis: Diagnosis, moment: Moment) -> str:
        """By what it is about and since when, not by when it was noticed: logs of many hosts come in any order."""
        subject = f"{moment.attempt} {diagnosis.subject} {diagnosis.onset}"
        count = self._openings[subject] = self._openings.pop(subject, 0) + 1
        if len(self._openings) > OPENINGS:
            del self._openings[next(iter(self._openings))]
        return incident_id(moment.run, moment.attempt, f"{diagnosis.subject}\0{count}", diagnosis.onset)

    def _closed(self, incident: Incident, end: Ending, moment: Moment, outcome: str) -> Change:
        after = replace(closed(incident, end, moment), outcome=outcome)
        self._lately.append(after)
        return Change(incident, after)

    # ------------------------------------------------------------------------------------------------ state
    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `from_state`."""
        return {
            "open": [incident_state(incident) for incident in self._open.values()],
            "lately": [incident_state(incident) for incident in self._lately],
            "accepted": self._accepted,
            "openings": self._openings,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], policy: Policy | None = None) -> Conditions:
        """The inverse of `state`."""
        self = cls(policy)
        self._open = {one.diagnoses[0].subject: one for one in map(incident_from, state["open"])}
        self._lately = [incident_from(data) for data in state["lately"]]
        self._accepted, self._openings = dict(state["accepted"]), dict(state["openings"])
        return self


def _grown(incident: Incident, diagnosis: Diagnosis) -> Incident:
    """The incident as it stands now; it does not become less severe, nor younger, while it lasts."""
    before = incident.diagnoses[0]
    if before.rule == diagnosis.rule:
        diagnosis = replace(diagnosis, onset=min(before.onset, diagnosis.onset))
    return replace(incident, diagnoses=(diagnosis,), severity=worst((incident.severity, diagnosis.severity)))
