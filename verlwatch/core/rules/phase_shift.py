"""A phase that has become lastingly slower at equal work."""

from __future__ import annotations

from verlwatch.core.rules._phase_change import PHASE_NAMES, diagnosis, is_material
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "phase_shift"
NEEDS = "`timing_s/<phase>` in the step lines; token counts (`perf/total_num_tokens`) make it precise"
TURN_ON = ""
ADVICE = {
    "gen": (
        "Compare rollout.tensor_model_parallel_size, rollout.gpu_memory_utilization and rollout.max_num_seqs with the "
        "last good run.",
        "Look for a full KV cache (preemptions) and for one GPU holding more memory than the others.",
    ),
    "old_log_prob": (
        "Look at communication and memory bandwidth: parameter offload together with sequence parallelism, "
        "log_prob_micro_batch_size_per_gpu.",
    ),
    "update_actor": ("Look at the network (NCCL interface, InfiniBand), offload and ppo_micro_batch_size_per_gpu.",),
}
OTHERWISE = ("Look at what changed on the hosts at that step: other jobs, clocks, storage, network.",)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each phase whose level has changed for the worse."""
    return tuple(
        diagnosis(
            NAME,
            view,
            point,
            f"{name} has been {point.effect:.2f}× slower at equal work since step {point.onset}",
            ADVICE.get(name, OTHERWISE),
        )
        for name in PHASE_NAMES
        if (point := view.changes.get(name)) and point.kind == "level" and is_material(view, point)
    )
