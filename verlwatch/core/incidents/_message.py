"""An incident in words, before any channel shapes it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from verlwatch.core.phases import THROUGHPUT
from verlwatch.core.types import Diagnosis, Incident, Message, Reason

_BARS = "▁▂▃▄▅▆▇█"
SPARKLINE_STEPS = 24


def compose(
    incident: Incident, reason: Reason, *, step: int, now: float, recent: Sequence[float], link: str
) -> Message:
    """What to tell of ``incident``.  ``recent`` holds the last values of its leading metric, oldest first."""
    lead = incident.diagnoses[0]
    title = _title(incident, lead, reason, step)
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
        facts=_facts(incident, lead, step),
        evidence=lead.evidence,
        advice=lead.advice if incident.state == "firing" else (),
        sparkline=sparkline(recent[-SPARKLINE_STEPS:]),
        closed_as=incident.closed_as,
        opened_at=incident.opened_at,
        at=now,
        link=link,
        recent=tuple(recent[-SPARKLINE_STEPS:]),
    )


def sparkline(values: Sequence[float]) -> str:
    """One bar a value, the smallest lowest; empty for fewer than two values."""
    largest = max((abs(value) for value in values if isfinite(value)), default=0.0) or 1.0
    values = [value / largest for value in values if isfinite(value)]  # so that no difference overflows
    if len(values) < 2:  # noqa: PLR2004 - a line needs two points
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[min(7, int(8 * (value - low) / span))] for value in values)


def quantity(metric: str, value: float) -> str:
    """A value of ``metric`` with its unit, in three significant digits."""
    return f"{value:.3g} tokens/s/GPU" if metric == THROUGHPUT else duration(value)


def duration(seconds: float) -> str:
    """Seconds as a person says them: 0.31 s, 41.2 s, 12 min, 3.4 h."""
    if seconds < 100:  # noqa: PLR2004 - up to here seconds are what people think in
        return f"{seconds:.3g} s"
    if seconds < 600:  # noqa: PLR2004 - the same
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"  # noqa: PLR2004 - two hours


def _title(incident: Incident, lead: Diagnosis, reason: Reason, step: int) -> str:
    name, others = lead.subject, len(incident.diagnoses) - 1
    also = f" (and {others} more)" if others else ""
    now, before = quantity(name, lead.after), quantity(name, lead.before)
    match reason:
        case "resolved":
            worst = f"×{incident.worst_ratio:.2f} for {_span(incident)}"
            return f"{name} is back to normal since step {_last(incident) + 1} (was {worst}, baseline {before})"
        case "accepted":
            return f"{name} has settled at {now}; this is the baseline now (was {before})"
        case "run ended":
            return f"run ended at step {step} with {name} still ×{lead.ratio:.2f} since step {lead.onset}"
        case "expired":
            return f"{name}: nothing heard since step {step}, incident closed"
    if lead.rule == "limit":
        return f"{name}{also} took {now} at step {step}, over its limit of {before}"
    if lead.rule in {"phase_spike", "early_slow"}:
        return f"{name}{also} took ×{lead.ratio:.2f} at step {step}: {now} instead of {before}"
    return f"{name}{also} is ×{lead.ratio:.2f} since step {lead.onset}: {now} instead of {before}"


def _summary(incident: Incident, lead: Diagnosis, reason: Reason) -> str:
    if incident.state == "closed":
        return f"{lead.summary}. {reason.capitalize()} after {_span(incident)}; it cost {duration(incident.lost_s)}."
    others = [f"{d.subject} ×{d.ratio:.2f}" for d in incident.diagnoses[1:]]
    return f"{lead.summary}{'; with it ' + ', '.join(others) if others else ''}."


def _facts(incident: Incident, lead: Diagnosis, step: int) -> tuple[tuple[str, str], ...]:
    name = lead.subject
    lost = duration(incident.lost_s)
    if incident.state == "closed":
        return (
            ("Steps", f"{lead.onset} to {_last(incident)}"),
            ("Told at step", str(step)),
            ("Worst ratio", f"×{incident.worst_ratio:.2f}"),
            ("Baseline", quantity(name, lead.before)),
            ("Slow", quantity(name, lead.after)),
            ("Cost", lost),
        )
    return (
        ("Since step", str(lead.onset)),
        ("At step", str(step)),
        ("Ratio at equal work", f"×{lead.ratio:.2f}"),
        ("Baseline", quantity(name, lead.before)),
        ("Took" if lead.rule == "phase_spike" else "New level", quantity(name, lead.after)),
        ("Lost so far", lost),
    )


def _last(incident: Incident) -> int:
    """Last step that the incident slowed."""
    return incident.last_step if incident.last_step is not None else incident.opened_step


def _span(incident: Incident) -> str:
    """How many steps it lasted, in words."""
    steps = max(1, _last(incident) - incident.diagnoses[0].onset + 1)
    return "1 step" if steps == 1 else f"{steps} steps"
