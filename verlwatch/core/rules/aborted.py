"""More of a step's samples are aborted: they bring no response to learn from.

Statistic: share of the samples without a response (verl's aborted ratio), against its own course (`core._courses`).
Told is a level or a drift of five points or more above it, and of a quarter or more on its scale.
"""

from __future__ import annotations

from verlwatch.core.rules._moved import told
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "aborted"
NEEDS = "`response/aborted_ratio` in the step lines"
TURN_ON = ""
SUBJECT = "aborted"
ADVICE = (
    "Look in the log of the rollout workers for what aborts them: time-outs, prompts over data.max_prompt_length, "
    "errors of tools or of the engine.",
    "Compare actor_rollout_ref.rollout.max_model_len with data.max_prompt_length + data.max_response_length.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis while it holds."""
    return told(
        NAME,
        view,
        SUBJECT,
        title="more samples are aborted: {what}",
        summary="the share of samples without a response is {what}: fewer are learned from",
        advice=ADVICE,
    )
