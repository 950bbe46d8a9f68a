"""A run that makes no progress for longer than its own steps explain, though something still prints.

Progress is a step, a validation that ends, a start that goes on.  Activity is none: access logs, engine counters and
monitor loops go on printing in a run that hangs.  The time allowed is FACTOR times the 95th percentile of the run's own
steps, with what its validations and checkpoints took where one is due or has begun (see `core.life._allowed`).
"""

from __future__ import annotations

from collections.abc import Iterator

from verlwatch.core.rules._life import found
from verlwatch.core.rules._life_view import LifeView
from verlwatch.core.types import Diagnosis
from verlwatch.core.words import duration

NAME = "stalled"
NEEDS = "step lines that arrive while they are printed; where it hangs is told by bars, validation and debug lines"
TURN_ON = "`VERL_LOGGING_LEVEL=DEBUG` and `rollout.disable_log_stats=False` tell in which phase it hangs"
CRITICAL = 3.0
"""So many times the allowance, and it is critical."""
SILENT, SILENT_S = 0.5, 15.0
"""A run of which no line came for more than this share of the wait is silent, not stalled.

Nor for less than so many seconds: lines that say nothing of interest are told every 10 s (``core.lines.ACTIVITY_S``).
"""


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis while the run is late and something of it is still heard."""
    if view.waited_s is None or view.waited_s < view.allowed.seconds or is_silent(view):
        return ()
    doing = f" in {view.stage.name}" if view.stage.name in NAMED else ""
    return (
        found(
            NAME,
            view,
            f"stuck{doing}: no progress for {duration(view.waited_s)} {view.since()}",
            severity="critical" if view.waited_s >= CRITICAL * view.allowed.seconds else "warning",
            facts=(*lateness(view), ("Still printing", "; ".join(_printing(view)))),
            evidence=(PRINTS if view.heard_s < SILENT * view.waited_s else NO_SIGN,),
            advice=tuple(_advice(view)),
            summary=f"no progress for {duration(view.waited_s)}, where {duration(view.allowed.seconds)} are allowed",
        ),
    )


NAMED = frozenset({
    "gen", "reward", "old_log_prob", "ref", "values", "update_actor", "update_critic", "update_weights", "validation",
    "checkpoint", "start", "first step", "loading",
})  # fmt: skip
"""Stages that name where it hangs; the others only say after what."""


PRINTS = "lines still arrive, and none of them tells of progress"
NO_SIGN = "no line that tells of progress has come since"


def is_silent(view: LifeView) -> bool:
    """Whether nothing at all has been heard for most of the wait."""
    return view.waited_s is not None and view.heard_s >= max(SILENT * view.waited_s, SILENT_S)


def lateness(view: LifeView) -> Iterator[tuple[str, str]]:
    """How late it is, and what it is doing as far as the log tells."""
    yield "Last step", view.last_step()
    yield "Without progress", duration(view.waited_s or 0.0)
    yield "Allowed", f"{duration(view.allowed.seconds)} ({view.allowed.why})"
    yield "Doing", view.stage.words


def _printing(view: LifeView) -> Iterator[str]:
    since = view.now - (view.waited_s or 0.0)
    for one in [one for one in view.printing if one.at > since][:3]:
        ago = duration(max(0.0, view.now - one.at))
        yield f"{one.writer or 'the driver'}, {ago} ago: {one.last[:100]}"


def _advice(view: LifeView) -> Iterator[str]:
    at = view.trainer or "the trainer's process"
    yield f"See where it stands: `py-spy dump --pid PID` for {at} and for a worker of each node."
    match view.stage.name:
        case "reward":
            yield "Look at the reward service or sandbox: a request without a time limit holds up the whole step."
        case "gen" | "validation":
            yield "Look at the longest request of the engines and at tool calls: one sample may hold up all others."
        case "checkpoint":
            yield "Look at the storage of the checkpoints: a file system that does not answer, a full disk."
        case "start" | "loading" | "first step":
            yield "Look at the network between the nodes (the first collective) and at what the model is loaded from."
        case _:
            yield "If a collective hangs, its watchdog ends the run after its own limit, often 10 to 30 minutes later."
