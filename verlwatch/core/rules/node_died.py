"""A node that Ray has lost, and every actor on it."""

from __future__ import annotations

from verlwatch.core.rules._life import death, of
from verlwatch.core.rules._life_view import LifeView
from verlwatch.core.types import Diagnosis

NAME = "node_died"
NEEDS = "Ray's words about a node that it has marked dead, or a raylet that was terminated"
TURN_ON = ""
ADVICE = ("See whether the host is up and reachable; if it is, why its raylet ended (`raylet.out`, the kernel's log).",)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis where a node is lost."""
    faults = of(view, "node_died")
    if not faults and view.job.get("state") != "NODE_FAIL":
        return ()
    said = faults[0].said if faults else {}
    host = said.get("host") or said.get("ip")
    title = f"node {host} is lost" if host else "a node is lost"
    return (death(NAME, view, title, faults=faults, facts=(("Host", str(host or "")),), advice=ADVICE),)
