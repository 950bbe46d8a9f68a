"""Incidents that word themselves (`Diagnosis.title`): what a message says of them instead of ratios and baselines."""

from __future__ import annotations

from collections.abc import Iterator

from verlwatch.core.incidents._incident import told_ago
from verlwatch.core.incidents._words import duration
from verlwatch.core.types import Incident, Reason


def title(incident: Incident, reason: Reason) -> str:
    """What has happened, for ``reason``."""
    said = incident.diagnoses[0].title
    match reason:
        case "resolved" | "run ended" | "expired" if incident.outcome:
            return incident.outcome
        case "resolved":
            return f"over: {said}"
        case "accepted":
            return f"accepted by a person: {said}; not told again until it has ended"
        case "run ended":
            return f"the run ended with this open: {said}"
        case "expired":
            return f"nothing more is heard, closed: {said}"
        case "flapping":
            return f"comes and goes: {said}; no more of it for an hour"
        case "repeated":
            return f"still: {said}"
        case "reopened":
            return f"again: {said}"
    return said


def summary(incident: Incident, now: float) -> str:
    """One sentence or two; empty where it would only say the title again."""
    lead = incident.diagnoses[0]
    if incident.state != "closed" or incident.outcome == lead.title:
        return "" if lead.summary == lead.title else f"{lead.summary}."
    was = f"It was: {lead.title}"
    lasted = now - incident.opened_at
    return f"{was}; over {duration(lasted)} after it was found." if lasted > 0 else f"{was}."


def facts(incident: Incident, now: float) -> Iterator[tuple[str, str]]:
    """The diagnosis' own, and since when it is known."""
    yield from incident.diagnoses[0].facts
    if incident.state != "closed" and (ago := told_ago(incident, now)):
        yield "First told", f"{ago} ago"
