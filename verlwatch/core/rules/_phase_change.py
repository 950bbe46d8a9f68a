"""The common body of the rules about a changed phase time: what it adds to a step, and how to say it."""

from __future__ import annotations

from verlwatch.core.phases import PHASES, STEP, THROUGHPUT
from verlwatch.core.rules._moved import of_samples
from verlwatch.core.rules._view import View
from verlwatch.core.types import ChangePoint, Diagnosis, Severity

PHASE_NAMES = tuple(phase.name for phase in PHASES)
IN_STEP = tuple(phase.name for phase in PHASES if not phase.apart)
CRITICAL_SHARE = 0.5
"""A lasting change is critical when it adds half a step to every step."""


def cost_s(point: ChangePoint) -> float:
    """Seconds that the change adds to one step; swings go both ways."""
    return 0.0 if point.kind == "dispersion" else point.after - point.before


def step_share(view: View, point: ChangePoint) -> float | None:
    """``cost_s`` as a share of the step as it was before; None while the step has no baseline."""
    step = step_s(view)
    return cost_s(point) / step if step else None


def step_s(view: View) -> float:
    """Seconds of a step as it was before: its own baseline, or its phases' where verl 0.1 prints no step; 0 unknown."""
    return view.expected.get(STEP) or sum(view.expected.get(name, 0.0) for name in IN_STEP)


def is_material(view: View, point: ChangePoint) -> bool:
    """Whether the change adds enough of a step to be told, or to go on being told."""
    share = step_share(view, point)
    return share is None or share >= view.min_step_share or point.series.metric in view.told


def adds_enough(view: View, point: ChangePoint) -> bool:
    """The same where neither the step nor its phases have a baseline: against this very step."""
    step = view.now.get(STEP) or sum(view.now.get(name, 0.0) for name in IN_STEP)
    return cost_s(point) >= view.min_step_share * step or point.series.metric in view.told


def explained_s(view: View) -> float:
    """Seconds a step that the open changes of its phases account for."""
    return sum(cost_s(view.changes[name]) for name in IN_STEP if name in view.changes)


def severity(view: View, point: ChangePoint) -> Severity:
    """Critical for a lasting change that adds half a step or more, else warning."""
    share = step_share(view, point)
    return "critical" if point.kind == "level" and share is not None and share >= CRITICAL_SHARE else "warning"


def diagnosis(rule: str, view: View, point: ChangePoint, summary: str, advice: tuple[str, ...]) -> Diagnosis:
    """A diagnosis about ``point`` with the evidence that every such rule has."""
    metric = point.series.metric
    unit = "tokens/s/GPU" if metric == THROUGHPUT else "s"
    now, expected = view.now.get(metric), view.expected.get(metric)
    evidence = [f"since step {point.onset}: {point.after:.4g} {unit} instead of {point.before:.4g} {unit}"]
    cost = 0.0
    if now is not None and expected is not None:
        evidence = [f"step {view.step}: {metric} {now:.4g} {unit}, expected {expected:.4g} {unit} for its work"]
        cost = now - expected if metric != THROUGHPUT else 0.0
        if (ms := view.per_token.get(metric)) and now > 0.0 and not (metric == "gen" and view.is_async):
            evidence.append(f"{ms:.3g} ms per token, expected {ms * expected / now:.3g} ms")
    if metric == "gen" and not view.is_async:
        evidence += of_samples(view)
    if metric == "gen" and view.is_async:
        evidence.append("this trainer is asynchronous: gen is the time it waits for samples")
    if (step := step_s(view)) and cost >= view.min_step_share * step:
        evidence.append(f"adds {cost:.3g} s to a step of {step:.4g} s ({cost / step:+.0%})")
    return Diagnosis(
        rule=rule,
        run=view.run,
        subject=metric,
        severity=severity(view, point),
        onset=point.onset,
        step=point.step,
        ratio=point.effect,
        before=point.before,
        after=point.after,
        cost_s=cost,
        summary=summary,
        evidence=tuple(evidence),
        advice=advice,
    )
