"""Diagnoses -> incidents -> messages: what belongs together, what is worth telling, in which words."""

from __future__ import annotations

from verlwatch.core.incidents._calendar import Maintenance, Window, Zone, any_holds
from verlwatch.core.incidents._conditions import Conditions
from verlwatch.core.incidents._facts import CAUSES, KEYS, Context
from verlwatch.core.incidents._incident import (
    Change,
    Ending,
    Moment,
    incident_from,
    incident_id,
    incident_state,
)
from verlwatch.core.incidents._lifecycle import OpenIncidents
from verlwatch.core.incidents._message import compose
from verlwatch.core.incidents._policy import Policy, Route, receivers, route
from verlwatch.core.incidents._reason import ENDS, MOVED, MUTE_S, NO_NEWS, Calm, Held, Mute, Verdict, news, reason
from verlwatch.core.incidents._silence import Silence, Silences, silence_from, silence_id, silence_state
from verlwatch.core.incidents._words import duration, quantity, sparkline

__all__ = [
    "CAUSES",
    "ENDS",
    "KEYS",
    "MOVED",
    "MUTE_S",
    "NO_NEWS",
    "Calm",
    "Change",
    "Conditions",
    "Context",
    "Ending",
    "Held",
    "Maintenance",
    "Moment",
    "Mute",
    "OpenIncidents",
    "Policy",
    "Route",
    "Silence",
    "Silences",
    "Verdict",
    "Window",
    "Zone",
    "any_holds",
    "compose",
    "duration",
    "incident_from",
    "incident_id",
    "incident_state",
    "news",
    "quantity",
    "reason",
    "receivers",
    "route",
    "silence_from",
    "silence_id",
    "silence_state",
    "sparkline",
]
