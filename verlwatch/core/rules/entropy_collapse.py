"""The policy has stopped to explore: its entropy has fallen much faster than training makes it fall.

Statistic: entropy against its own course (`core._courses`), which may fall by 1.5 % a step.  Told is a level or a drift
to half of it or less.  An entropy that slides to nothing over several hundred steps is not told.
"""

from __future__ import annotations

from verlwatch.core.rules._moved import told
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "entropy_collapse"
NEEDS = "`actor/entropy` (`actor/entropy_loss`) in the step lines, and `entropy` in `detection.health`"
TURN_ON = ""
SUBJECT = "entropy"
ADVICE = (
    "Read some responses: are they all alike?  Go back to a checkpoint before it if so.",
    "Lower actor_rollout_ref.actor.optim.lr; raise actor_rollout_ref.actor.clip_ratio_high, "
    "actor_rollout_ref.actor.entropy_coeff or actor_rollout_ref.rollout.temperature.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis while it holds."""
    return told(
        NAME,
        view,
        SUBJECT,
        title="entropy has collapsed: {what}",
        summary="the policy's entropy has fallen much faster than before, to {what}",
        advice=ADVICE,
    )
