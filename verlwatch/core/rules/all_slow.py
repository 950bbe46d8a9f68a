"""Every phase slower at once: the host or the network, and not what one phase does."""

from __future__ import annotations

from statistics import median

from verlwatch.core.phases import STEP
from verlwatch.core.rules._phase_change import CRITICAL_SHARE, IN_STEP, cost_s
from verlwatch.core.rules._view import View
from verlwatch.core.types import ChangePoint, Diagnosis, Severity

NAME = "all_slow"
NEEDS = "`timing_s/<phase>` of three phases or more in the step lines"
TURN_ON = ""
SUBJECT = "all_phases"
ADVICE = (
    "Look at the hosts and not at one phase: clocks and throttling (nvidia-smi -q -d PERFORMANCE), other jobs, "
    "network, storage.",
    "Find the slow node: the slowest one holds up all the others.",
)
LEAST_PHASES = 3
TOGETHER = 3
"""Steps within which the phases must have begun to be slow."""
COVERED = 0.8
"""Share of the phases' time that must belong to slower ones."""


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis of all phases, beside theirs, where those that became slower together are nearly the whole step."""
    slower = _together([view.changes[name] for name in IN_STEP if name in view.changes])
    expected = sum(view.expected.get(name, 0.0) for name in IN_STEP)
    before = sum(point.before for point in slower)
    covered = sum(view.expected.get(point.series.metric, 0.0) for point in slower)
    if len(slower) < LEAST_PHASES or before <= 0.0 or covered < COVERED * expected:
        return ()
    ratio = sum(point.after for point in slower) / before
    onset = min(point.onset for point in slower)
    names = ", ".join(f"{point.series.metric} ×{point.effect:.2f}" for point in slower)
    return (
        Diagnosis(
            rule=NAME,
            run=view.run,
            subject=SUBJECT,
            severity=_severity(slower, ratio),
            onset=onset,
            step=max(point.step for point in slower),
            ratio=ratio,
            before=expected,
            after=expected + sum(cost_s(point) for point in slower),
            cost_s=_cost_s(view, slower),
            summary=f"every phase has become slower at once since step {onset}, {ratio:.2f}× together",
            evidence=(names, *_step(view)),
            advice=ADVICE,
        ),
    )


def _together(changes: list[ChangePoint]) -> list[ChangePoint]:
    """Those that are slower and began at about the same step as most."""
    slower = [point for point in changes if point.effect > 1.0 and point.kind != "dispersion"]
    middle = median([point.onset for point in slower]) if slower else 0
    return [point for point in slower if abs(point.onset - middle) <= TOGETHER]


def _cost_s(view: View, slower: list[ChangePoint]) -> float:
    """Seconds that they added to this step."""
    names = [point.series.metric for point in slower]
    return sum(view.now[name] - view.expected[name] for name in names if name in view.now and name in view.expected)


def _severity(slower: list[ChangePoint], ratio: float) -> Severity:
    lasts = all(point.kind == "level" for point in slower)
    return "critical" if lasts and ratio >= 1 + CRITICAL_SHARE else "warning"


def _step(view: View) -> tuple[str, ...]:
    now, expected = view.now.get(STEP), view.expected.get(STEP)
    if now is None or expected is None:
        return ()
    return (f"step {view.step}: {now:.4g} s, expected {expected:.4g} s for its work",)
