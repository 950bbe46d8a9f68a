"""A phase that becomes slower bit by bit at equal work."""

from __future__ import annotations

from verlwatch.core.rules._phase_change import PHASE_NAMES, diagnosis, is_material
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "phase_drift"
NEEDS = "`timing_s/<phase>` in the step lines; token counts (`perf/total_num_tokens`) make it precise"
TURN_ON = ""
ADVICE = (
    "Look for what fills up or heats up: memory fragmentation, caches, host memory, disks, clocks under heat.",
    "If a restart brings the old speed back, something accumulates in the process.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each phase that slides for the worse."""
    return tuple(
        diagnosis(
            NAME,
            view,
            point,
            f"{name} has been getting slower at equal work since about step {point.onset}, {point.effect:.2f}× by now",
            ADVICE,
        )
        for name in PHASE_NAMES
        if (point := view.changes.get(name)) and point.kind == "drift" and is_material(view, point)
    )
