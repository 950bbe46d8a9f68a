"""The rewards have fallen.

Statistic: the mean score of a step against its own course (`core._courses`), on a scale that is linear below 0.2 and
which it may descend by 0.003 a step.  Told is a level or a drift to half of the course or less on that scale: from 0.6
to 0.28, from 0.3 to 0.1, from 5 to 2.5.  Rising rewards, however fast, are followed.
"""

from __future__ import annotations

from verlwatch.core.rules._moved import told
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "reward_collapse"
NEEDS = "`critic/score/mean` (`critic/rewards/mean`) in the step lines, and `score` in `detection.health`"
TURN_ON = ""
SUBJECT = "score"
ADVICE = (
    "Is it the reward or the policy?  Look at the reward service or sandbox (time-outs count as zero), and at data "
    "that began with that step.",
    "If responses changed with it, go back to a checkpoint before it, with a lower actor_rollout_ref.actor.optim.lr.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis while it holds."""
    return told(
        NAME,
        view,
        SUBJECT,
        title="rewards have collapsed: {what}",
        summary="the mean score has fallen to {what}",
        advice=ADVICE,
    )
