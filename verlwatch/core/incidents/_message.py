"""An incident in words, before any channel shapes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verlwatch.core.incidents import _titled
from verlwatch.core.incidents._facts import ADDS_TO_THE_STEP, METRIC, NOISE, Context, cost, facts, last_step, shown
from verlwatch.core.incidents._grouping import ALL_SLOW
from verlwatch.core.incidents._reason import MOVED
from verlwatch.core.incidents._words import sparkline
from verlwatch.core.types import Diagnosis, Incident, Message, Reason

SPARKLINE_STEPS = 24
ADDS = "adds "
"""How the evidence begins that says what the fact ADDS_TO_THE_STEP does."""
_SAFE = re.compile(r"[A-Za-z0-9_.@%+=:,/][A-Za-z0-9_.@%+=:,/-]*")
"""Names that mean themselves in every shell, whatever a channel makes of quotes."""


def compose(incident: Incident, reason: Reason, *, step: int, now: float, context: Context) -> Message:
    """What to tell of ``incident``."""
    lead = incident.diagnoses[0]
    title = _titled.title(incident, reason) if lead.title else _title(incident, lead, reason, step)
    recent = context.recent[-SPARKLINE_STEPS:]
    known = tuple(_titled.facts(incident, now)) if lead.title else facts(incident, step, now, context)
    return Message(
        incident=incident.id,
        reason=reason,
        run=incident.run,
        rule=lead.rule,
        phase=lead.subject,
        severity=incident.severity,
        title=f"{incident.run}: {title}",
        summary=_titled.summary(incident, now) if lead.title else _summary(incident, lead, reason),
        onset_step=lead.onset,
        step=step,
        ratio=lead.ratio,
        before=lead.before,
        after=lead.after,
        facts=known,
        evidence=tuple(_evidence(lead, known)),
        advice=tuple(_advice(incident, lead)),
        sparkline=sparkline(recent),
        closed_as=incident.closed_as,
        opened_at=incident.opened_at,
        at=now,
        link=context.link,
        recent=recent,
        scope=lead.scope,
    )


def _title(incident: Incident, lead: Diagnosis, reason: Reason, step: int) -> str:
    name, others = lead.subject, len(incident.diagnoses) - 1
    also = f" (and {others} more)" if others else ""
    if lead.rule == ALL_SLOW:
        name, also = "every phase", ""
    now, before = shown(lead, lead.after), shown(lead, lead.before)
    match reason:
        case "resolved":
            worst = f"×{incident.worst_ratio:.2f} for {_span(incident)}"
            return f"{name} is back to normal since step {last_step(incident) + 1} (was {worst}, baseline {before})"
        case "accepted" if incident.by_hand:
            grows = f"not told again unless it grows by {MOVED - 1:.0%}"
            return f"{name} at {now} instead of {before}: accepted by a person; {grows}"
        case "accepted":
            return f"{name} has settled at {now}; this is the baseline now (was {before})"
        case "run ended":
            return f"run ended at step {step} with {name} still ×{lead.ratio:.2f} since step {lead.onset}"
        case "expired":
            return f"{name}: nothing heard since step {step}, incident closed"
        case "flapping":
            return f"{name} comes and goes, ×{lead.ratio:.2f} at step {step}; no more of it for an hour"
    again = {"reopened": " again", "repeated": " still"}.get(reason, "")
    if lead.rule == NOISE:
        return (
            f"{name}{also} varies{again} ×{lead.ratio:.2f} as much since step {lead.onset}: {now} instead of {before}"
        )
    if lead.rule == "limit":
        return f"{name}{also}{again} took {now} at step {step}, over its limit of {before}"
    if lead.rule in {"phase_spike", "early_slow"}:
        return f"{name}{also}{again} took ×{lead.ratio:.2f} at step {step}: {now} instead of {before}"
    return f"{name}{also} is{again} ×{lead.ratio:.2f} since step {lead.onset}: {now} instead of {before}"


def _summary(incident: Incident, lead: Diagnosis, reason: Reason) -> str:
    if incident.state == "closed":
        how = f"{reason.capitalize()}{' by a person' if incident.by_hand else ''}"
        costs = "" if lead.rule == METRIC and incident.lost_s <= 0 else f"; it cost {cost(incident)}"
        return f"{lead.summary}. {how} after {_span(incident)}{costs}."
    others = [f"{d.subject} ×{d.ratio:.2f}" for d in incident.diagnoses[1:]]
    return f"{lead.summary}{'; with it ' + ', '.join(others) if others else ''}."


def _advice(incident: Incident, lead: Diagnosis) -> Iterator[str]:
    """What to try, and how to hear no more of it."""
    if incident.state != "firing":
        return
    yield from lead.advice
    if lead.title:
        return
    accept = f"until it grows: verlwatch accept {incident.id}"
    name, pattern = ("rule", lead.rule) if lead.rule == ALL_SLOW else ("phase", lead.subject)
    if _SAFE.fullmatch(incident.run) and _SAFE.fullmatch(pattern):
        yield f"Known? verlwatch silence add --run={incident.run} --{name}={pattern} --for=2h, or {accept}"
    else:  # quotes would not do: channels replace some of them
        yield f"Known? To hear no more of it {accept}"


def _evidence(lead: Diagnosis, known: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """What was seen and no fact says."""
    is_said = any(label == ADDS_TO_THE_STEP for label, _ in known)
    return (line for line in lead.evidence if not (is_said and line.startswith(ADDS)))


def _span(incident: Incident) -> str:
    """How many steps it lasted, in words."""
    steps = max(1, last_step(incident) - incident.diagnoses[0].onset + 1)
    return "1 step" if steps == 1 else f"{steps} steps"
