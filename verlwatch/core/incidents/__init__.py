"""Diagnoses -> incidents -> messages: what belongs together, what is worth telling, in which words."""

from __future__ import annotations

from verlwatch.core.incidents._lifecycle import Change, Ending, Moment, OpenIncidents, incident_from, incident_id
from verlwatch.core.incidents._message import compose, duration, quantity, sparkline
from verlwatch.core.incidents._reason import reason

__all__ = [
    "Change",
    "Ending",
    "Moment",
    "OpenIncidents",
    "compose",
    "duration",
    "incident_from",
    "incident_id",
    "quantity",
    "reason",
    "sparkline",
]
