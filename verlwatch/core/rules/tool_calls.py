"""Samples wait for their tools for a larger part of their time.

Statistic: mean seconds of tool calls ÷ mean seconds of a sample (generation and tool calls), against its own course
(`core._courses`).  Told is a level or a drift of ten points or more above it, and of a quarter or more on its scale.
"""

from __future__ import annotations

from verlwatch.core.rules._moved import beside_gen, told
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "tool_calls"
NEEDS = "`timing_s/agent_loop/tool_calls/mean` in the step lines, above zero"
TURN_ON = "`actor_rollout_ref.rollout.mode=async` and tools (`actor_rollout_ref.rollout.multi_turn`), verl 0.5 to 0.9"
SUBJECT = "tool_wait"
ADVICE = (
    "Look at the tool servers or the sandbox: load, time-outs, retries, limits of requests.",
    "Set time-outs in the file of actor_rollout_ref.rollout.multi_turn.tool_config_path, and limit turns and answers: "
    "actor_rollout_ref.rollout.multi_turn.max_assistant_turns, "
    "actor_rollout_ref.rollout.multi_turn.max_tool_response_length.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis while it holds."""
    return told(
        NAME,
        view,
        SUBJECT,
        title="samples wait for their tools for more of their time: {what}",
        summary="the share of a sample's time that tool calls take is {what}",
        advice=ADVICE,
        severity=beside_gen(view),
    )
