"""The common body of the rules about memory that fills up."""

from __future__ import annotations

from verlwatch.core.rules._ahead import Filling, gb, lead, severity
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis, Severity


def diagnosis(
    rule: str,
    view: View,
    filling: Filling,
    names: tuple[str, str],
    advice: tuple[str, ...],
    *,
    remarks: tuple[str, ...] = (),
) -> Diagnosis:
    """How much, how fast, until when, and by which limit; ``names`` are those of the subject, and of what fills up."""
    subject, what = names
    steps, slope = filling.steps, filling.slope
    growth = f"{slope.mid:.3g} GB a step ({slope.low:.3g} to {slope.high:.3g})"
    is_full = filling.level >= filling.limit
    until = "now" if is_full else lead(steps, filling.step_s)
    now = f"{gb(filling.level)} of {gb(filling.limit)}"
    if is_full:
        title = f"{what} is at its limit: {now}"
    else:
        title = f"{what} will be full in {until}: {now}, {slope.mid:.3g} GB more each step"
    said: Severity = severity(steps.mid, filling.step_s)
    return Diagnosis(
        rule=rule,
        run=view.run,
        subject=subject,
        severity=said,
        onset=filling.since,
        step=view.step,
        ratio=filling.level / filling.before if filling.before > 0.0 else 1.0,
        before=filling.before,
        after=filling.level,
        cost_s=0.0,
        summary=f"{what} has grown by {growth} since step {filling.since} and "
        + ("is at its limit" if is_full else f"will be full in {until}"),
        evidence=(
            f"step {view.step}: {now}; {gb(filling.before)} at step {filling.since}",
            f"growth of the last {filling.seen} steps: {growth}, nine times of ten",
            f"limit: {filling.limit_from}",
            *remarks,
        ),
        advice=advice,
        scope=filling.scope,
        title=title,
        facts=(
            ("Now", now),
            ("Growth", growth),
            ("Full in", until),
            ("Limit", filling.limit_from),
            ("Since step", str(filling.since)),
        ),
    )
