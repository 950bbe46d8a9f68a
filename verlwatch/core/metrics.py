"""One name for what releases and forks print under several keys, phases apart (see `phases`).

Source: ``verl/trainer/ppo/metric_utils.py`` and ``verl/workers`` of 0.1 to 0.9.1: MFU stood under ``mfu/`` before
``perf/mfu/``, memory went from ``perf/`` to ``actor/perf/`` and ``critic/perf/`` in 0.8; EasyR1 kept older keys.
"""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, tuple[str, ...]] = {
    "throughput": ("perf/throughput",),
    "mfu_actor": ("perf/mfu/actor", "mfu/actor"),
    "mfu_critic": ("perf/mfu/critic", "mfu/critic"),
    "mfu_actor_infer": ("perf/mfu/actor_infer", "mfu/actor_infer"),
    "tokens": ("perf/total_num_tokens", "perf/total_tokens"),
    "max_memory_allocated_gb": ("perf/max_memory_allocated_gb", "actor/perf/max_memory_allocated_gb"),
    "max_memory_reserved_gb": ("perf/max_memory_reserved_gb", "actor/perf/max_memory_reserved_gb"),
    "critic_max_memory_allocated_gb": ("critic/perf/max_memory_allocated_gb",),
    "critic_max_memory_reserved_gb": ("critic/perf/max_memory_reserved_gb",),
    "cpu_memory_used_gb": ("perf/cpu_memory_used_gb", "actor/perf/cpu_memory_used_gb"),
    "entropy": ("actor/entropy", "actor/entropy_loss"),
    "grad_norm": ("actor/grad_norm",),
    "response_length": ("response_length/mean",),
    "prompt_length": ("prompt_length/mean",),
}
"""Name -> keys, the newest first."""


def metrics(values: Mapping[str, float]) -> dict[str, float]:
    """The values that a step prints, under their one name each; one that was not printed is absent."""
    return {
        name: values[key] for name, keys in METRICS.items() if (key := next((k for k in keys if k in values), None))
    }
