"""A program that ended by an error of Python or of native code that nobody caught."""

from __future__ import annotations

from collections.abc import Iterator

from verlwatch.core.rules._life import death, of
from verlwatch.core.rules._life_view import Fault, LifeView
from verlwatch.core.types import Diagnosis

NAME = "crashed"
NEEDS = "the traceback of the driver or of a task, native code's last words, or torchrun's report of a child"
TURN_ON = ""
ADVICE = ("The innermost exception and its place are named above; what follows it in the log are its callers.",)
THREADS = ("Threads have run out: raise `ulimit -u` or lower OMP_NUM_THREADS and the number of workers on the host.",)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis of the first fault that names what went wrong; the driver's own end adds nothing to that."""
    faults = tuple(f for f in of(view, "exception", "crash", "child_failed") if f.severity == "critical")
    if not faults:
        return ()
    named = next((f for f in faults if "rank" in f.said), faults[0])
    lead = next((f for f in faults if "exception" in f.said or f.kind == "crash"), named)
    others = tuple(f for f in faults if f is not lead)
    advice = THREADS if lead.said.get("cause") == "thread limit" else ADVICE
    return (death(NAME, view, _title(lead), faults=(lead, *others), facts=_facts(lead), advice=advice),)


def _title(lead: Fault) -> str:
    said = lead.said
    if signal := said.get("signal"):
        return f"crashed by {signal}" + (f" on rank {said['rank']}" if "rank" in said else "")
    if exception := said.get("exception"):
        text = str(said.get("text", ""))
        return f"crashed: {exception}" + (f": {text[:80]}" if text else "")
    if "exit_code" in said:
        rank = f"rank {said['rank']}" if "rank" in said else "a child"
        return f"crashed: {rank} ended with code {said['exit_code']}"
    return f"crashed: {said['text']}" if "text" in said else "crashed"


def _facts(lead: Fault) -> Iterator[tuple[str, str]]:
    said = lead.said
    yield "In", str(said.get("task", ""))
    yield "Phase", str(said.get("phase", ""))
    yield "Rank", str(said.get("rank", ""))
    yield "Process", lead.writer
