"""A host without memory: Ray or the kernel killed a process, often a bystander of the one that took the memory."""

from __future__ import annotations

from collections.abc import Iterator

from verlwatch.core.rules._life import death, gb, of
from verlwatch.core.rules._life_view import Attributes, LifeView
from verlwatch.core.types import Diagnosis

NAME = "host_oom"
NEEDS = "Ray's words about memory pressure, Slurm's about `oom_kill`, or the training process on this host"
TURN_ON = "verlwatch on the host itself sees the kernel's OOM counter of the process"
ADVICE = (
    "The victim is seldom the culprit: look at the largest consumer, and at what grew (`perf/cpu_memory_used_gb`).",
    "Take less per host: fewer data loader and reward workers, no parameter offload, a smaller replay buffer, or give "
    "the job more memory. Ray kills at 95 % (RAY_memory_usage_threshold).",
)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis where a process was killed for want of memory."""
    faults = (*of(view, "host_oom"), *(f for f in of(view, "slurm") if f.said.get("what") == "oom"))
    killed = view.gone is not None and view.gone.get("oom_kills")
    if not (faults or killed or view.job.get("state") == "OUT_OF_MEMORY"):
        return ()
    said = _together(fault.said for fault in faults)
    victim = said.get("victim")
    title = "host out of memory" + (f": {victim} was killed" if victim else "")
    return (death(NAME, view, title, faults=faults, facts=_facts(said), advice=ADVICE),)


def _together(all_said: Iterator[Attributes]) -> dict[str, str | int | float]:
    """What several lines say, the first that says it."""
    found: dict[str, str | int | float] = {}
    for said in all_said:
        found = {**said, **found}
    return found


def _facts(said: Attributes) -> Iterator[tuple[str, str]]:
    yield "Host", str(said.get("ip", ""))
    used, total = gb(said, "used_gb"), gb(said, "total_gb")
    yield "Memory", f"{used} of {total}" if used and total else used
    yield "Victim", _process(said, "victim")
    yield "Largest consumer", _process(said, "largest")


def _process(said: Attributes, who: str) -> str:
    name = said.get(f"{who}_name") or said.get(f"{who}_command") or said.get(who)
    parts = [
        str(name) if name else "",
        f"pid {said[f'{who}_pid']}" if f"{who}_pid" in said else "",
        gb(said, f"{who}_gb"),
    ]
    return ", ".join(part for part in parts if part)
