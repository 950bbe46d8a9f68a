"""The memory of a host that will be full before the run is over: Ray kills a worker then, and often not the culprit."""

from __future__ import annotations

from verlwatch.core.rules._filling import diagnosis
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "host_memory_forecast"
NEEDS = "`perf/cpu_memory_used_gb` (verl ≥ 0.3) in the step lines and the memory of the host, or verlwatch on that host"
TURN_ON = (
    "`runs[].host_memory` in the configuration, for example `1800GB`; or run the daemon, or an agent, on that host"
)
METRIC = "cpu_memory_used_gb"
NAMES = "host_memory", "host memory"
ADVICE = (
    "Save a checkpoint while it goes, and resume from it: a new process begins with less.",
    "Look at what accumulates on the host: data loader workers, offloaded or pinned buffers, Ray's object store, kept "
    "rollouts, other jobs. `ray memory` and `ps --sort=-rss` name who holds it.",
)
NOT_ALL = (
    "psutil's `used`, which verl prints, leaves out shared memory in most releases, as Ray's object store has it; Ray "
    "counts it, so that it may come sooner"
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each host, the next to be full first."""
    mine = sorted((f for f in view.ahead.fillings if f.subject == METRIC), key=lambda filling: filling.steps.mid)
    return tuple(diagnosis(NAME, view, one, NAMES, ADVICE, remarks=() if one.scope else (NOT_ALL,)) for one in mine)
