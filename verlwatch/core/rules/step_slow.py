"""Steps got slower (or throughput lower) and no phase's change accounts for it."""

from __future__ import annotations

from verlwatch.core.phases import STEP, THROUGHPUT
from verlwatch.core.rules._phase_change import cost_s, diagnosis, explained_s, is_material, step_s
from verlwatch.core.rules._view import View
from verlwatch.core.types import ChangePoint, Diagnosis

NAME = "step_slow"
NEEDS = "`timing_s/step` (verl ≥ 0.2) or `perf/throughput` (verl ≥ 0.3) in the step lines"
TURN_ON = ""
ADVICE = ("The time lies outside the timed phases: data loading, logging, metrics, or a pause of the trainer's host.",)
EXPLAINED = 0.5
"""Share of the added seconds which changed phases must account for so that the step itself is not told."""


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """A diagnosis of the step, or of throughput where no step is printed, that the phases do not explain."""
    step, throughput = (_slower(view.changes.get(metric)) for metric in (STEP, THROUGHPUT))
    if THROUGHPUT in view.metrics:  # a step is printed: `metric_shift` speaks of it
        throughput = None
    if step and is_material(view, step) and (STEP in view.told or explained_s(view) < EXPLAINED * cost_s(step)):
        text = f"a step takes {step.effect:.2f}× as long since step {step.onset} and no phase accounts for it"
        return (diagnosis(NAME, view, step, text, ADVICE),)
    if throughput and (THROUGHPUT in view.told or explained_s(view) <= EXPLAINED * _lost_s(view, throughput)):
        text = f"throughput is {throughput.effect:.2f}× of before since step {throughput.onset} at equal work"
        return (diagnosis(NAME, view, throughput, text, ADVICE),)
    return ()


def _slower(point: ChangePoint | None) -> ChangePoint | None:
    """The change, unless it is one of the noise alone: a noisy phase makes a noisy step."""
    return None if point is None or point.kind == "dispersion" else point


def _lost_s(view: View, throughput: ChangePoint) -> float:
    """Seconds a step that a throughput change stands for: t' = t / effect.  0 where no seconds are known."""
    return step_s(view) * (1 / throughput.effect - 1)
