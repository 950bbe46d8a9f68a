"""A job that its scheduler ended: a time limit, a cancellation, a preemption."""

from __future__ import annotations

from collections.abc import Iterator

from verlwatch.core.rules._life import death, of
from verlwatch.core.rules._life_view import Fault, LifeView
from verlwatch.core.types import Diagnosis

NAME = "job_ended"
NEEDS = "Slurm's words in the log (`slurmstepd: error: *** JOB ...`), or the state of the job"
TURN_ON = "`verlwatch attach JOBID`, or `runs[].slurm_job` in the configuration"
STATES = frozenset({"TIMEOUT", "CANCELLED", "PREEMPTED", "DEADLINE", "BOOT_FAIL", "REVOKED"})
LIMIT = "It ran into its time limit: resume it from the last checkpoint, or ask for more time."
OTHERWISE = "See who ended it: `sacct -j JOBID --format=JobID,State,ExitCode,DerivedExitCode,Comment`."


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis where the scheduler ended the job."""
    faults = tuple(f for f in of(view, "slurm") if f.said.get("what") == "cancelled")
    state = str(view.job.get("state", ""))
    if not faults and state not in STATES:
        return ()
    reason = next((str(f.said["reason"]) for f in faults if f.said.get("reason")), "") or state.lower() or "cancelled"
    job = view.job.get("job") or next((f.said["job"] for f in faults if "job" in f.said), "")
    title = " ".join(f"job {job} ended by the scheduler: {reason}".split())
    advice = LIMIT if "time" in reason else OTHERWISE
    return (death(NAME, view, title, faults=faults, facts=_facts(view, faults), advice=(advice,)),)


def _facts(view: LifeView, faults: tuple[Fault, ...]) -> Iterator[tuple[str, str]]:
    yield "Exit", str(view.job.get("exit", ""))
    yield "Host", next((str(f.said["host"]) for f in faults if "host" in f.said), "")
