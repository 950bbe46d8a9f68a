"""Should anybody be told?  One pure function with a closed list of answers."""

from __future__ import annotations

from verlwatch.core.types import Incident, Reason, Severity

MOVED = 1.25
"""An open incident is told again when its ratio has changed by this factor."""

RANK: dict[Severity, int] = {"info": 0, "warning": 1, "critical": 2}


def reason(before: Incident | None, after: Incident) -> Reason | None:
    """Why this change of an incident is worth a message; None when it is not.

    opened: it fires and nobody has been told · escalated: more severe, or a slow step turned out to last · updated: its
    size moved by MOVED, or another phase leads it now · resolved, accepted, run ended, expired: people know of
    it and it is closed.
    """
    if after.state == "closed":
        return after.closed_as if after.notified else None
    if after.state == "pending":
        return None
    if before is None or not after.notified:
        return "opened"
    old, new = before.diagnoses[0], after.diagnoses[0]
    if RANK[after.severity] > RANK[before.severity]:
        return "escalated"
    if old.subject != new.subject:
        return "updated"
    if old.rule != new.rule:
        return "escalated"
    factor = new.ratio / before.told_ratio if before.told_ratio > 0 else 1.0
    return "updated" if factor >= MOVED or factor <= 1 / MOVED else None
