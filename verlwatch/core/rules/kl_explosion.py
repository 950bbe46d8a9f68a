"""The policy runs away from its reference.

Statistic: the KL divergence that the step prints (in the loss, in the reward, or else that of the update), against its
own course (`core._courses`), on a scale that is linear below 0.05 nats and which it may climb by 0.01 a step.  Told is
a level or a drift to three times the course or more on that scale: from 0.01 to 0.1, from 0.1 to 0.35, from 1 to 3.
"""

from __future__ import annotations

from verlwatch.core.rules._moved import told
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "kl_explosion"
NEEDS = "`actor/kl_loss`, `actor/reward_kl_penalty`, `critic/kl` or `actor/ppo_kl`, and `kl` in `detection.health`"
TURN_ON = "`actor_rollout_ref.actor.use_kl_loss=True` or `algorithm.use_kl_in_reward=True`"
SUBJECT = "kl"
ADVICE = (
    "Go back to a checkpoint before it, with a lower actor_rollout_ref.actor.optim.lr or a higher "
    "actor_rollout_ref.actor.kl_loss_coef (algorithm.kl_ctrl.kl_coef).",
    "Look at the lengths and the rewards of that step: a reward that can be hacked is run after.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis while it holds."""
    return told(
        NAME,
        view,
        SUBJECT,
        title="KL to the reference explodes: {what}",
        summary="the policy has left its reference much faster than before: KL is {what}",
        advice=ADVICE,
    )
