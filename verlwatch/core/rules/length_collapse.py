"""Responses have become much shorter within few steps.

Statistic: the mean response length against its own course (`core._courses`), which may fall by 0.5 % a step.  Told is a
level or a drift to half of it or less.  Responses that grow into their limit are told by `response_clipping`.
"""

from __future__ import annotations

from verlwatch.core.rules._moved import told
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "length_collapse"
NEEDS = "`response_length/mean` in the step lines, and `response_length` in `detection.health`"
TURN_ON = ""
SUBJECT = "response_length"
ADVICE = (
    "Read some responses: a reward that does not need reasoning, or punishes length, is answered without it.",
    "Look at the reward of that step, at reward_model.overlong_buffer and at how losses are averaged "
    "(actor_rollout_ref.actor.loss_agg_mode).",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis while it holds."""
    return told(
        NAME,
        view,
        SUBJECT,
        title="responses have become short: {what}",
        summary="the mean response has become much shorter within few steps: {what}",
        advice=ADVICE,
    )
