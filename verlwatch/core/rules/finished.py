"""A run that is done: told once, with what it took."""

from __future__ import annotations

from verlwatch.core.rules._life import found
from verlwatch.core.rules._life_view import LifeView
from verlwatch.core.types import Diagnosis

NAME = "finished"
NEEDS = "the planned steps and the last of them, or verl's final validation"
TURN_ON = "`stalls.finished: off` in the configuration turns it off"


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One announcement when the run is over."""
    if not view.is_over:
        return ()
    return (
        found(
            NAME,
            view,
            f"finished: {view.last_step()}",
            severity="info",
            facts=view.ledger,
            summary=f"the run is done, {view.last_step()}",
        ),
    )
