"""Cards that compute less than half of the time, while neither validation nor a checkpoint explains it."""

from __future__ import annotations

from verlwatch.core.rules._memory_view import Idle, MemoryView, of_card, span
from verlwatch.core.types import Diagnosis

NAME = "gpu_idle"
NEEDS = "utilisation of the cards, and the seconds of the phases (`timing_s/<phase>`) in the step lines"
TURN_ON = "Sample the GPUs (`gpu:` in the configuration; extra `nvml`, or nvidia-smi)"
ALL = (
    "Look at the phase in which cards wait: rewards computed on CPUs, a long tail of one generation, data loading, "
    "offload to host memory.",
)
ONE = ("Look at that card's host: a rank that waits for its peers, or whose process does nothing (py-spy dump).",)
BUSY = 50.0
SHOWN = 3


def diagnose(view: MemoryView) -> tuple[Diagnosis, ...]:
    """One diagnosis for a group that is idle, or for each card that is while its peers are busy."""
    return tuple(_diagnosis(view, idle) for idle in view.idle)


def _diagnosis(view: MemoryView, idle: Idle) -> Diagnosis:
    over = f"over the last {span(idle.over_s)} of training"
    if idle.subject:
        name = idle.subject.removeprefix("idle ")
        title = f"{name} is busy {idle.utilization:.0f} % of the time {over}, its peers {idle.peers or 0.0:.0f} %"
    else:
        title = f"the GPUs are busy {idle.utilization:.0f} % of the time {over}"
    worst = [(name, busy, share) for name, busy, share in idle.phases if busy < BUSY][:SHOWN]
    if worst:
        title += f", least in {worst[0][0]} ({worst[0][1]:.0f} %)"
    return of_card(
        NAME,
        view,
        idle.subject or _group(idle),
        idle.scope,
        "warning",
        idle.onset,
        title,
        before=BUSY,
        after=idle.utilization,
        evidence=tuple(f"{name}: busy {busy:.0f} %, {share:.0%} of the time" for name, busy, share in worst)
        or ("no phase stands out",),
        advice=ONE if idle.subject else ALL,
        facts=(
            ("Since step", str(idle.onset)),
            ("At step", str(view.step)),
            ("Busy", f"{idle.utilization:.0f} %"),
            *((("Peers busy", f"{idle.peers:.0f} %"),) if idle.peers is not None else ()),
            *((("Idle in", ", ".join(name for name, _, _ in worst)),) if worst else ()),
        ),
    )


def _group(idle: Idle) -> str:
    hosts = [value for label, value in idle.scope if label == "host"]
    return f"gpu idle {hosts[0]}" if len(hosts) == 1 else "gpu idle"
