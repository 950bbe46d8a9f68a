"""A phase whose seconds swing more than they did, about the same level."""

from __future__ import annotations

from verlwatch.core.rules._phase_change import PHASE_NAMES, step_s
from verlwatch.core.rules._view import View
from verlwatch.core.types import ChangePoint, Diagnosis

NAME = "phase_noise"
NEEDS = "`timing_s/<phase>` in the step lines; token counts (`perf/total_num_tokens`) make it precise"
TURN_ON = ""
ADVICE = ("Look for something that comes and goes on the hosts: other jobs, clocks, shared storage or network.",)
WARN_SHARE = 0.1
"""Swings that have grown by a tenth of a step are a warning, smaller ones an information."""


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each phase that has become noisier by enough of a step."""
    return tuple(
        _diagnosis(view, point)
        for name in PHASE_NAMES
        if (point := view.changes.get(name)) and point.kind == "dispersion" and _is_material(view, point)
    )


def _is_material(view: View, point: ChangePoint) -> bool:
    grown = point.after - point.before
    return grown >= view.min_step_share * step_s(view) or point.series.metric in view.told


def _diagnosis(view: View, point: ChangePoint) -> Diagnosis:
    metric, grown = point.series.metric, point.after - point.before
    return Diagnosis(
        rule=NAME,
        run=view.run,
        subject=metric,
        severity="warning" if grown >= WARN_SHARE * step_s(view) > 0.0 else "info",
        onset=point.onset,
        step=point.step,
        ratio=point.effect,
        before=point.before,
        after=point.after,
        cost_s=0.0,
        summary=f"{metric} varies {point.effect:.1f}× as much as it did at equal work since step {point.onset}",
        evidence=(f"±{point.after:.3g} s around what its work explains, not ±{point.before:.3g} s",),
        advice=ADVICE,
    )
