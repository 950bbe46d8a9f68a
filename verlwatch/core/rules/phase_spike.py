"""A step in which a phase took much longer than its work explains; whether it lasts is not known yet."""

from __future__ import annotations

from verlwatch.core.rules._phase_change import PHASE_NAMES, diagnosis, is_material
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "phase_spike"
NEEDS = "`timing_s/<phase>` in the step lines; token counts (`perf/total_num_tokens`) make it precise"
TURN_ON = ""
ADVICE = {
    "gen": ("One slow step is often a straggler: look at the longest response and at preemptions of that step.",),
    "reward": ("Look at the reward service or sandbox: time-outs, retries, a queue.",),
}
OTHERWISE = "If it repeats, look at the hosts: another job on the node, storage, network."


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each phase that is slow now and not known to last."""
    return tuple(
        diagnosis(
            NAME,
            view,
            point,
            f"{name} took {point.effect:.1f}× as long as its work explains",
            (*ADVICE.get(name, ()), OTHERWISE),
        )
        for name in PHASE_NAMES
        if (point := view.changes.get(name)) and point.kind == "spike" and is_material(view, point)
    )
