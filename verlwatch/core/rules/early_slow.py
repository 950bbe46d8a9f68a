"""A phase that takes at least twice as long as in the few steps before it, while there is no baseline yet."""

from __future__ import annotations

from verlwatch.core.phases import STEP
from verlwatch.core.rules._phase_change import PHASE_NAMES, adds_enough, diagnosis
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "early_slow"
NEEDS = "`timing_s/<phase>` in the step lines, three earlier steps"
TURN_ON = ""
ADVICE = ("A judgement from few steps: wait for a few more before acting on it, unless the step stays as slow.",)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each phase that stands out of its few earlier steps; of the step where no phase does."""
    phases = [point for name in PHASE_NAMES if (point := view.early.get(name)) and adds_enough(view, point)]
    step = view.early.get(STEP)
    return tuple(
        diagnosis(
            NAME,
            view,
            point,
            f"{point.series.metric} took {point.effect:.1f}× the median of the few steps before it (no baseline yet)",
            ADVICE,
        )
        for point in phases or ([step] if step else [])
    )
