"""A process that was ended from outside, or is gone without a word."""

from __future__ import annotations

from collections.abc import Iterator

from verlwatch.core.rules._life import death, of
from verlwatch.core.rules._life_view import Fault, LifeView
from verlwatch.core.types import Diagnosis
from verlwatch.core.words import duration

NAME = "killed"
NEEDS = "the shell's or Slurm's words about it, or the training process on this host"
TURN_ON = (
    "`verlwatch run --pid PID`, `runs[].pid`, or verlwatch on the host of the trainer: its process is then watched"
)
KILL = "SIGKILL is what the kernel sends when memory has run out, and what people send: `dmesg -T | tail` says which."
OTHERWISE = "See who ended it: the scheduler, a colleague, a clean-up job; the kernel's log tells of memory."
CLEAN = "code 0"


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis where the trainer was killed, has failed or has disappeared."""
    faults = tuple(
        f for f in of(view, "killed", "slurm") if f.severity == "critical" and f.said.get("what") in {None, "task"}
    )
    is_gone = view.gone is not None and view.gone.get("exit") != CLEAN
    if not (faults or is_gone or view.job.get("state") == "FAILED"):
        return ()
    title = _title(view, faults)
    advice = KILL if any(word in title for word in ("SIGKILL", "signal 9", "disappeared")) else OTHERWISE
    return (death(NAME, view, title, faults=faults, facts=_facts(view), advice=(advice,)),)


def _title(view: LifeView, faults: tuple[Fault, ...]) -> str:
    if signal := next((str(f.said["signal"]) for f in faults if "signal" in f.said), ""):
        return f"killed by {signal}"
    if view.gone is None:
        how = view.job.get("exit") or next((str(f.said["text"]) for f in faults if "text" in f.said), "")
        return f"failed ({how})" if how else "failed"
    how = str(view.gone.get("exit", ""))
    name = f"{view.gone.get('name', 'the process')} (pid {view.gone.get('pid', '?')})"
    return f"{name} ended with {how}" if how else f"{name} has disappeared"


def _facts(view: LifeView) -> Iterator[tuple[str, str]]:
    if view.gone is None:
        return
    yield "Process", f"{view.gone.get('name', '')} pid {view.gone.get('pid', '')}".strip()
    yield "Exit", str(view.gone.get("exit") or "unknown: only its parent is told")
    lasted = view.gone.get("lasted_s")
    yield "Process lived", duration(float(lasted)) if isinstance(lasted, int | float) else ""
