"""A run of which no line comes any more, from none of its logs."""

from __future__ import annotations

from verlwatch.core.rules._life import found
from verlwatch.core.rules._life_view import LifeView
from verlwatch.core.rules.stalled import CRITICAL, is_silent, lateness
from verlwatch.core.types import Diagnosis
from verlwatch.core.words import duration

NAME = "silent"
NEEDS = "a log that is followed while it is written"
TURN_ON = ""
ADVICE = (
    "See whether the process lives, and its host: `ps`, `ray status`, the scheduler's view of the job.",
    "If it lives and prints nothing it hangs: `py-spy dump --pid PID` says where.",
)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis while nothing is heard: for as long as a step may take, or much longer than it ever was quiet."""
    if view.waited_s is None:
        return ()
    late = view.waited_s >= view.allowed.seconds and is_silent(view)
    if not late and view.heard_s < view.quiet_s:
        return ()
    limit = min(view.allowed.seconds, view.quiet_s)
    return (
        found(
            NAME,
            view,
            f"silent: no line for {duration(view.heard_s)} {view.since()}",
            severity="critical" if view.heard_s >= CRITICAL * limit else "warning",
            facts=lateness(view),
            evidence=("no log of the run has grown since",),
            advice=ADVICE,
            summary=f"nothing has been printed for {duration(view.heard_s)}, by no process of the run",
        ),
    )
