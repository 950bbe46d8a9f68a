"""What a step line tells of its single samples: the slowest one, preemptions, tool calls, aborted and cut ones.

Generation is over when its last sample is.  Where the slowest one takes three times the mean, the GPUs wait for it.

Source: verl ``experimental/agent_loop/agent_loop.py`` (0.5 to 0.9.1: seconds of each sample, ``num_preempted`` since
0.7, -1 where the engine does not tell; the slowest sample is the one with the largest sum of generation and tool
calls); ``workers/rollout/vllm_rollout`` of 0.6 and 0.7 (``generation_timing``, of the ranks);
``trainer/ppo/metric_utils.py`` for the ratios of aborted and cut responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

_LOOP = "timing_s/agent_loop/"
_SLOWEST, _MEAN = (f"{_LOOP}slowest/generate_sequences", f"{_LOOP}generate_sequences/mean")
_SLOWEST_TOOLS, _MEAN_TOOLS = (f"{_LOOP}slowest/tool_calls", f"{_LOOP}tool_calls/mean")
SLOWEST_RESPONSE = f"{_LOOP}slowest/response_length"
SLOWEST_PREEMPTED = f"{_LOOP}slowest/num_preempted"
_PREEMPTED = f"{_LOOP}num_preempted/mean"
_SLOWEST_RANK, _MEAN_RANK = "timing_s/generation_timing/max", "timing_s/generate_sequences"
_RATIOS = {"aborted": "response/aborted_ratio", "clipped": "response_length/clip_ratio"}


class Tail(NamedTuple):
    """Seconds of the slowest sample (or rank, where only those are printed) and of the mean one; of that tool calls."""

    slowest_s: float
    mean_s: float
    slowest_tools_s: float
    mean_tools_s: float
    of: Literal["sample", "rank"]


def read(values: Mapping[str, float]) -> Tail | None:
    """The slowest and the mean sample; None where the step does not tell."""
    if _SLOWEST in values and _MEAN in values:
        slowest, mean = values.get(_SLOWEST_TOOLS, 0.0), values.get(_MEAN_TOOLS, 0.0)
        return Tail(values[_SLOWEST] + slowest, values[_MEAN] + mean, slowest, mean, "sample")
    if _SLOWEST_RANK in values and _MEAN_RANK in values:
        return Tail(values[_SLOWEST_RANK], values[_MEAN_RANK], 0.0, 0.0, "rank")
    return None


def measured(name: str, values: Mapping[str, float]) -> float | None:
    """One of the measures `TAIL` of `core.metrics`; None where the step does not tell.

    A run without tools has no share of time for them, not a share of zero.
    """
    if name in _RATIOS:
        return values.get(_RATIOS[name])
    if name == "preemptions":
        count = values.get(_PREEMPTED, -1.0)
        return count if count >= 0.0 else None
    found = read(values)
    if found is None or not found.mean_s > 0.0:
        return None
    if name == "slowest_sample":
        return found.slowest_s / found.mean_s
    return found.mean_tools_s / found.mean_s if found.mean_tools_s > 0.0 else None
