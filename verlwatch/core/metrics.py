"""One name for what releases and forks print under several keys, phases apart (see `phases`).

Source: ``verl/trainer/ppo/metric_utils.py`` and ``verl/workers`` of 0.1 to 0.9.1: MFU stood under ``mfu/`` before
``perf/mfu/``, memory went from ``perf/`` to ``actor/perf/`` and ``critic/perf/`` in 0.8; EasyR1 kept older keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Literal, NamedTuple

from verlwatch.core import tail
from verlwatch.core.phases import PHASES, THROUGHPUT
from verlwatch.core.types import ChangePoint

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
    "critic_grad_norm": ("critic/grad_norm",),
    "kl": ("actor/kl_loss", "actor/reward_kl_penalty", "critic/kl", "actor/ppo_kl"),
    "score": ("critic/score/mean", "critic/rewards/mean"),
    "response_length": ("response_length/mean",),
    "prompt_length": ("prompt_length/mean",),
}
"""Name -> keys, the newest first."""


class Motion(NamedTuple):
    """How training itself moves a metric: what goes with it is no change (see `core._courses`).

    It is judged on the scale asinh(x / ``zero``), which is linear around 0, so that values may be negative or nothing
    at all, and a logarithm from a few times ``zero`` on; what is below ``zero`` is as good as none.  ``pace`` is how
    far on that scale training may carry it for the worse in one step.
    """

    zero: float
    pace: float


class Measure(NamedTuple):
    """A metric that may be judged beside the phases, in a unit of its own (printed value × ``scale``).

    A change counts from a share of ``least`` on, and from ``by`` in its own unit, in the direction that is ``worse``.
    ``phases`` are those that it follows from: where their own changes explain it, it is no news.
    """

    unit: str
    worse: Literal["up", "down"]
    least: float
    scale: float = 1.0
    phases: tuple[str, ...] = ()
    by: float = 0.0
    motion: Motion | None = None

    def counts(self, change: ChangePoint) -> bool:
        """Whether a change lasts, more than a lone step and no change of the noise, and is large enough to be told."""
        is_large = abs(change.effect - 1.0) >= self.least and abs(change.after - change.before) >= self.by
        return is_large and change.kind in {"level", "drift"}


_MEMORY = Measure("GB", "up", 0.05)
EFFICIENCY: Mapping[str, Measure] = {
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

TAIL: Mapping[str, Measure] = {
    "slowest_sample": Measure("×", "up", 0.5, motion=Motion(0.1, 0.01)),
    "preemptions": Measure("/sample", "up", 0.25, by=0.1, motion=Motion(0.1, 0.01)),
    "tool_wait": Measure("%", "up", 0.25, 100.0, by=10.0, motion=Motion(10.0, 0.01)),
    "aborted": Measure("%", "up", 0.25, 100.0, by=5.0, motion=Motion(5.0, 0.01)),
    "clipped": Measure("%", "up", 0.25, 100.0, by=15.0, motion=Motion(10.0, 0.01)),
}
"""What is judged of the samples of a step wherever the log prints it (`core.tail`)."""

_GRADIENTS = Measure("", "up", 2.0, motion=Motion(0.02, 0.01))
HEALTH: Mapping[str, Measure] = {
    "grad_norm": _GRADIENTS,
    "critic_grad_norm": _GRADIENTS,
    "entropy": Measure("nats", "down", 0.5, motion=Motion(0.005, 0.015)),
    "kl": Measure("nats", "up", 2.0, motion=Motion(0.05, 0.01)),
    "score": Measure("", "down", 0.5, motion=Motion(0.2, 0.003)),
    "response_length": Measure("tokens", "down", 0.5, motion=Motion(10.0, 0.005)),
}
"""What `detection.health` may name."""

MEASURES: Mapping[str, Measure] = {**EFFICIENCY, **TAIL, **HEALTH}
MOVING = frozenset({*TAIL, *HEALTH})
"""What training itself moves."""


def measured(values: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """The values of the measures ``names`` in their units; one that was not printed, or as no number, is absent."""
    found: dict[str, float] = {}
    for name in names:
        printed = tail.measured(name, values) if name in TAIL else _printed(name, values)
        if printed is not None and isfinite(printed):
            found[name] = MEASURES[name].scale * printed
    return found


def _printed(name: str, values: Mapping[str, float]) -> float | None:
    for key in METRICS[name]:
        if key in values:
            return values[key]
    return None


def less_is_worse(name: str) -> bool:
    """Whether less of it is worse, as of throughput."""
    return name in MEASURES and MEASURES[name].worse == "down"


def metrics(values: Mapping[str, float]) -> dict[str, float]:
    """The values that a step prints, under their one name each; one that was not printed is absent."""
    return {
        name: values[key] for name, keys in METRICS.items() if (key := next((k for k in keys if k in values), None))
    }
