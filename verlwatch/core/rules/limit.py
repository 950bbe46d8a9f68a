"""A phase or a step over the absolute limit that the configuration sets for it (`detection.limits`)."""

from __future__ import annotations

from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "limit"
NEEDS = "`timing_s/<phase>` in the step lines, and `detection.limits` in the configuration"
TURN_ON = "`detection.limits` in the configuration, e.g. `[gen > 300s]`"


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each limit that this step exceeds."""
    return tuple(
        Diagnosis(
            rule=NAME,
            run=view.run,
            subject=metric,
            severity="warning",
            onset=view.step,
            step=view.step,
            ratio=now / most,
            before=most,
            after=now,
            cost_s=now - most,
            summary=f"{metric} took {now:.4g} s, over its limit of {most:.4g} s",
            evidence=(f"step {view.step}: {metric} {now:.4g} s, limit {most:.4g} s (detection.limits)",),
        )
        for metric, most in view.limits.items()
        if (now := view.now.get(metric)) is not None and now > most
    )
