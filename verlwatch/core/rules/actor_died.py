"""A process of Ray that is gone, for a reason that it did not tell itself."""

from __future__ import annotations

from collections.abc import Iterator

from verlwatch.core.rules._life import death, of
from verlwatch.core.rules._life_view import Fault, LifeView
from verlwatch.core.types import Diagnosis

NAME = "actor_died"
NEEDS = "Ray's `ActorDiedError`, or raylet's words about a worker"
TURN_ON = ""
ADVICE = (
    "Ray's list of possible reasons is a guess: the last lines of the process itself say more "
    "(`/tmp/ray/session_latest/logs/worker-*-PID.err` on its host), and the kernel's log whether it was killed.",
)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis where an actor or a worker is gone."""
    faults = tuple(f for f in of(view, "actor_died") if not f.said.get("unavailable")) or of(view, "worker_died")
    if not faults:
        return ()
    said = faults[0].said
    who = str(said.get("actor_class") or said.get("name") or "a worker of Ray")
    title = f"{who} died (pid {said['pid']})" if "pid" in said else f"{who} died"
    return (death(NAME, view, title, faults=faults, facts=_facts(faults[0]), advice=ADVICE),)


def _facts(fault: Fault) -> Iterator[tuple[str, str]]:
    said = fault.said
    yield "Actor", str(said.get("name", ""))
    yield "Host", str(said.get("ip", ""))
    yield "Exit type", str(said.get("exit_type", ""))
