"""Incidents as the status shows them."""

from __future__ import annotations

from verlwatch.core.types import Incident, Transition
from verlwatch.status import IncidentStatus


def open_incident(incident: Incident) -> IncidentStatus:
    """One that is open."""
    lead = incident.diagnoses[0]
    return IncidentStatus(
        id=incident.id,
        run=incident.run,
        rule=lead.rule,
        phase=lead.subject,
        state=incident.state,
        severity=incident.severity,
        opened_step=incident.opened_step,
        onset_step=lead.onset,
        ratio=None if lead.title else lead.ratio,
        before=None if lead.title else lead.before,
        after=None if lead.title else lead.after,
        summary=lead.title or lead.summary,
        opened_at=incident.opened_at,
        held=incident.held,
    )


def closed_incident(t: Transition, at: float) -> IncidentStatus:
    """One that has ended, by its last transition; ``at`` is when it was opened."""
    return IncidentStatus(
        id=t.incident,
        run=t.run,
        rule=t.rule,
        phase=t.phase,
        state="closed",
        severity=t.severity,
        opened_step=t.opened_step,
        onset_step=t.onset_step,
        ratio=None if t.title else t.ratio,
        before=None if t.title else t.before,
        after=None if t.title else t.after,
        summary=t.title or t.summary,
        opened_at=at,
        closed_as=t.closed_as,
        closed_step=t.step,
    )
