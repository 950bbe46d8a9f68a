"""Logs of a run that cannot be read: what it does is not known, and it is told neither as slow nor as stuck."""

from __future__ import annotations

from verlwatch.core.rules._life import found
from verlwatch.core.rules._life_view import LifeView
from verlwatch.core.types import Diagnosis
from verlwatch.core.words import duration

NAME = "blind"
NEEDS = "nothing in the log: the reader tells it"
TURN_ON = ""
SUBJECT = "logs"
BLIND_S = 60.0
"""Shorter than this a file may be away: rotated, on a file system that pauses."""
ADVICE = (
    "See why with `verlwatch status`: permissions, a file system that does not answer, a host that is gone.",
    "Until it is mended nothing is known of the run: not that it is stuck, and not that it is well.",
)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis while a log of a run that is not over cannot be read."""
    if view.is_over or not view.unseen or view.unseen_s < BLIND_S:
        return ()
    count = len(view.unseen)
    return (
        found(
            NAME,
            view,
            f"blind: {count} of its logs cannot be read" if count > 1 else "blind: its log cannot be read",
            severity="warning",
            subject=SUBJECT,
            facts=(("For", duration(view.unseen_s)), ("Last known", view.last_step())),
            evidence=view.unseen,
            advice=ADVICE,
        ),
    )
