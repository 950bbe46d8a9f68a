"""One name for what releases and forks print under several keys, phases apart (see `phases`).

Source: ``verl/trainer/ppo/metric_utils.py`` and ``verl/workers`` of 0.1 to 0.9.1: MFU stood under ``mfu/`` before
``perf/mfu/``, memory went from ``perf/`` to ``actor/perf/`` and ``critic/perf/`` in 0.8; EasyR1 kept older keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from verlwatch.core.phases import PHASES, THROUGHPUT

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


class Measure(NamedTuple):
    """A metric that may be judged beside the phases, in a unit of its own (printed value × ``scale``).

    A change counts from a share of ``least`` on, in the direction that is ``worse``.  ``phases`` are those that it
    follows from: where their own changes explain it, it is no news.
    """

    unit: str
    worse: Literal["up", "down"]
    least: float
    scale: float = 1.0
    phases: tuple[str, ...] = ()


_MEMORY = Measure("GB", "up", 0.05)
MEASURES: Mapping[str, Measure] = {
    THROUGHPUT: Measure("tokens/s/GPU", "down", 0.1, phases=tuple(phase.name for phase in PHASES if not phase.apart)),
    "mfu_actor": Measure("%", "down", 0.1, 100.0, ("update_actor",)),
    "mfu_critic": Measure("%", "down", 0.1, 100.0, ("update_critic",)),
    "mfu_actor_infer": Measure("%", "down", 0.1, 100.0, ("old_log_prob",)),
    "cpu_memory_used_gb": _MEMORY,
    "max_memory_allocated_gb": _MEMORY,
    "max_memory_reserved_gb": _MEMORY,
    "critic_max_memory_allocated_gb": _MEMORY,
    "critic_max_memory_reserved_gb": _MEMORY,
}
"""What `detection.metrics` may name.  verl prints MFU as a share of the promised FLOPS, here it is in percent."""
DEFAULT_MEASURES = ("mfu_actor", "cpu_memory_used_gb")
"""Device memory is not among them: its printed peak only rises, so that longer responses look like growth."""


def measured(values: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """The values of the measures ``names`` in their units; one that was not printed is absent."""
    found: dict[str, float] = {}
    for name in names:
        for key in METRICS[name]:
            if key in values:
                found[name] = MEASURES[name].scale * values[key]
                break
    return found


def less_is_worse(name: str) -> bool:
    """Whether less of it is worse, as of throughput."""
    return name in MEASURES and MEASURES[name].worse == "down"


def metrics(values: Mapping[str, float]) -> dict[str, float]:
    """The values that a step prints, under their one name each; one that was not printed is absent."""
    return {
        name: values[key] for name, keys in METRICS.items() if (key := next((k for k in keys if k in values), None))
    }
