"""More responses are cut at the longest length that is allowed.

Statistic: share of the responses as long as allowed (verl's clip ratio), against its own course (`core._courses`),
which may rise by 0.1 points a step near zero as responses grow.  Told is a level or a drift of 15 points or more
above it, and of a quarter or more on its scale.
"""

from __future__ import annotations

from verlwatch.core.rules._moved import told
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "response_clipping"
NEEDS = "`response_length/clip_ratio` in the step lines"
TURN_ON = ""
SUBJECT = "clipped"
ADVICE = (
    "Read some of them: if they repeat themselves, the policy is collapsing; if they are cut in good reasoning, raise "
    "data.max_response_length and actor_rollout_ref.rollout.max_model_len.",
    "A cut response has no answer, and gets no reward: consider reward_model.overlong_buffer or "
    "algorithm.filter_groups.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis while it holds."""
    return told(
        NAME,
        view,
        SUBJECT,
        title="more responses are cut at the longest length: {what}",
        summary="the share of responses that end only because they are as long as allowed is {what}",
        advice=ADVICE,
    )
