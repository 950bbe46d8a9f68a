"""The engine takes back samples that it had begun, because its KV cache is full, and computes them again.

Statistic: preemptions per sample (mean over the step's samples), against their own course (`core._courses`).  Told is a
level or a drift of 0.1 per sample or more above it, and of a quarter or more on its scale.
"""

from __future__ import annotations

from verlwatch.core.rules._moved import beside_gen, told
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "preemptions"
NEEDS = "`timing_s/agent_loop/num_preempted/mean` in the step lines, not -1 (the engine does not tell)"
TURN_ON = "`actor_rollout_ref.rollout.mode=async` with verl 0.7 to 0.9 and vLLM"
SUBJECT = "preemptions"
ADVICE = (
    "Give the KV cache more room: actor_rollout_ref.rollout.gpu_memory_utilization, or a larger "
    "actor_rollout_ref.rollout.tensor_model_parallel_size.",
    "Let fewer samples run at once: actor_rollout_ref.rollout.max_num_seqs; or limit their length: "
    "data.max_response_length.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis while it holds."""
    return told(
        NAME,
        view,
        SUBJECT,
        title="samples are preempted in the engine: {what}",
        summary="preemptions per sample are {what}: the KV cache is full, and their tokens are computed again",
        advice=ADVICE,
        severity=beside_gen(view),
    )
