"""A run that will not be done when its time is over: a limit of its own, or that of its job."""

from __future__ import annotations

from verlwatch.core.rules._ahead import CRITICAL_S, CRITICAL_STEPS, Arrival, between, lasting
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "deadline"
NEEDS = "the number of steps planned (`Total training steps:` or the progress bar) and ten steps, and a limit of time"
TURN_ON = "`runs[].wall_limit` or `runs[].slurm_job` in the configuration, or `verlwatch attach JOBID`"
SUBJECT = "deadline"
ADVICE = (
    "Ask for more time (`scontrol update JobId=… TimeLimit=…` where that is allowed), or save a checkpoint shortly "
    "before (trainer.save_freq).",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis while the run is not expected to be done in time."""
    arrival = view.ahead.arrival
    return () if arrival is None else (_diagnosis(view, arrival),)


def _diagnosis(view: View, arrival: Arrival) -> Diagnosis:
    planned, left_s, need_s = arrival.planned, arrival.left_s, arrival.need_s
    reach = _reached(arrival)
    late = lasting(need_s.mid - left_s)
    near = left_s <= CRITICAL_S or left_s <= CRITICAL_STEPS * arrival.step_s
    pace = f"{arrival.step_s:.3g} s a step"
    drift = f", {arrival.drift_s:+.2g} s with each" if arrival.drift_s else ""
    left = lasting(left_s) if left_s > 0.0 else "nothing"
    when = f"when its time is over in {left}" if left_s > 0.0 else "now that its time is over"
    return Diagnosis(
        rule=NAME,
        run=view.run,
        subject=SUBJECT,
        severity="critical" if near else "warning",
        onset=view.step,
        step=view.step,
        ratio=need_s.mid / max(left_s, 1.0),
        before=left_s,
        after=need_s.mid,
        cost_s=0.0,
        summary=f"{planned - view.step} steps are left and take {lasting(need_s.mid)} ({pace}{drift}); {left} is left "
        f"({arrival.limit_from}), {late} too little",
        evidence=(
            f"step {view.step} of {planned}; {pace} with its share of validation and checkpoints{drift}",
            f"needs {between(need_s.low, need_s.high)}, has {left} ({arrival.limit_from})",
        ),
        advice=ADVICE,
        title=f"{'will be' if left_s > 0.0 else 'is'} at step {reach} of {planned} {when}; {late} more are needed",
        facts=(
            ("Reaches", f"step {reach} of {planned}"),
            ("Needs", between(need_s.low, need_s.high)),
            ("Left", left),
            ("Limit", arrival.limit_from),
            ("Pace", f"{pace}{drift}"),
        ),
    )


def _reached(arrival: Arrival) -> str:
    low, high = round(arrival.reach.low), round(arrival.reach.high)
    return f"{low} to {high}" if low != high else f"{low}"
