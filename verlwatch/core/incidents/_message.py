"""An incident in words, before any channel shapes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verlwatch.core.incidents._facts import NOISE, Context, facts, last_step, shown
from verlwatch.core.incidents._grouping import ALL_SLOW
from verlwatch.core.incidents._words import duration, sparkline
from verlwatch.core.types import Diagnosis, Incident, Message, Reason

SPARKLINE_STEPS = 24
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=-]+")


def compose(incident: Incident, reason: Reason, *, step: int, now: float, context: Context) -> Message:
    """What to tell of ``incident``."""
    lead = incident.diagnoses[0]
    title = _title(incident, lead, reason, step)
    recent = context.recent[-SPARKLINE_STEPS:]
    return Message(
        incident=incident.id,
        reason=reason,
        run=incident.run,
        rule=lead.rule,
        phase=lead.subject,
        severity=incident.severity,
        title=f"{incident.run}: {title}",
        summary=_summary(incident, lead, reason),
        onset_step=lead.onset,
        step=step,
        ratio=lead.ratio,
        before=lead.before,
        after=lead.after,
        facts=facts(incident, step, now, context),
        evidence=lead.evidence,
        advice=tuple(_advice(incident, lead)),
        sparkline=sparkline(recent),
        closed_as=incident.closed_as,
        opened_at=incident.opened_at,
        at=now,
        link=context.link,
        recent=recent,
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
        return f"{lead.summary}. {reason.capitalize()} after {_span(incident)}; it cost {duration(incident.lost_s)}."
    others = [f"{d.subject} ×{d.ratio:.2f}" for d in incident.diagnoses[1:]]
    return f"{lead.summary}{'; with it ' + ', '.join(others) if others else ''}."


def _advice(incident: Incident, lead: Diagnosis) -> Iterator[str]:
    """What to try, and how to hear no more of it."""
    if incident.state != "firing":
        return
    yield from lead.advice
    run = _quoted(incident.run)
    which = f"--phase {lead.subject}" if lead.rule != ALL_SLOW else f"--rule {lead.rule}"
    yield f"Known? verlwatch silence add --run {run} {which} --for 2h, or for good: verlwatch accept {incident.id}"


def _quoted(word: str) -> str:
    """``word`` as one word of a shell's command line."""
    return word if _PLAIN.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"


def _span(incident: Incident) -> str:
    """How many steps it lasted, in words."""
    steps = max(1, last_step(incident) - incident.diagnoses[0].onset + 1)
    return "1 step" if steps == 1 else f"{steps} steps"
