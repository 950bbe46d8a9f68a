"""The common body of the rules about what training itself moves: far off its course, and to stay."""

from __future__ import annotations

from verlwatch.core.metrics import MEASURES
from verlwatch.core.rules._view import View
from verlwatch.core.types import ChangePoint, Diagnosis, Severity

OF_GEN = ("slowest_sample", "preemptions", "tool_wait")
"""What may make generation slower."""


def moved(view: View, metric: str) -> ChangePoint | None:
    """The open change of the metric for the worse, where it lasts and is large enough, or told already."""
    point = view.changes.get(metric)
    if point is None or not (metric in view.told or MEASURES[metric].counts(point)):
        return None
    if point.kind not in {"level", "drift"}:
        return None
    return point._replace(onset=max(point.onset, 0))  # a slide may reach back to before the first step


def number(metric: str, value: float) -> str:
    """A value of the metric with its unit."""
    return f"{value:.3g} {MEASURES[metric].unit}".rstrip()


def instead(metric: str, point: ChangePoint) -> str:
    """What is now and what its course would have been, with the unit once."""
    return f"{point.after:.3g} instead of {point.before:.3g} {MEASURES[metric].unit}".rstrip()


def since(point: ChangePoint) -> str:
    """From when on: of a slide it is known to within some twenty steps."""
    return f"since {'about ' if point.kind == 'drift' else ''}step {point.onset}"


def beside_gen(view: View) -> Severity:
    """How severe a cause of slow generation is: where gen is told to be slower, it is evidence of that, and no news."""
    gen = view.changes.get("gen")
    return "warning" if gen is None or gen.kind == "dispersion" or view.is_async else "info"


def of_samples(view: View) -> tuple[str, ...]:
    """What has become worse of the samples: evidence for a slower generation."""
    points = ((name, moved(view, name)) for name in OF_GEN)
    return tuple(f"{name}: {instead(name, point)} {since(point)}" for name, point in points if point)


def told(
    rule: str,
    view: View,
    metric: str,
    *,
    title: str,
    summary: str,
    advice: tuple[str, ...],
    severity: Severity = "warning",
) -> tuple[Diagnosis, ...]:
    """One diagnosis while the metric is off its course: ``{what}`` in its words stands for how far, and since when."""
    point = moved(view, metric)
    if point is None:
        return ()
    what = f"{instead(metric, point)} {since(point)}"
    title, summary = title.format(what=what), summary.format(what=what)
    return (diagnosis(rule, view, point, title=title, summary=summary, advice=advice, severity=severity),)


def diagnosis(
    rule: str,
    view: View,
    point: ChangePoint,
    *,
    title: str,
    summary: str,
    advice: tuple[str, ...],
    evidence: tuple[str, ...] = (),
    severity: Severity = "warning",
) -> Diagnosis:
    """A diagnosis in its own words; this step's value is evidence of it."""
    metric = point.series.metric
    now = view.now.get(metric)
    seen = () if now is None else (f"step {view.step}: {metric} {number(metric, now)}",)
    return Diagnosis(
        rule=rule,
        run=view.run,
        subject=metric,
        severity=severity,
        onset=point.onset,
        step=point.step,
        ratio=point.effect,
        before=point.before,
        after=point.after,
        cost_s=0.0,
        summary=summary,
        evidence=(*evidence, *seen, f"{since(point)}: {instead(metric, point)}"),
        advice=advice,
        title=title,
        facts=(
            ("Since step", str(point.onset)),
            ("At step", str(view.step)),
            ("Baseline", number(metric, point.before)),
            ("New level", number(metric, point.after)),
        ),
    )
