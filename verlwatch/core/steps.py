"""One step's printed values -> what is judged: seconds of each phase, the work, the step without interruptions.

Which of validation and checkpoint a step's seconds contain depends on the release (verl's trainer moved the timer):
both up to 0.5, neither from 0.6 to 0.7.0, the checkpoint alone from 0.7.1 on.  The release is read off the keys that it
prints, and arithmetic has the last word: a part that does not fit into the whole is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

from verlwatch.core.phases import PHASES, STEP, THROUGHPUT
from verlwatch.core.types import Workload

_TIMING = (*((phase.name, phase.keys) for phase in PHASES), (STEP, ("timing_s/step", "perf/time_per_step")))
TOTAL_TOKENS = "perf/total_num_tokens"
LONGEST_S = 1e9
"""No phase takes thirty years."""
_MARKS: Mapping[str, tuple[str, ...]] = {
    "0.1": ("timing/gen", "timing/update_actor"),
    "0.2-0.3": ("timing_s/gen", "perf/throughput"),
    "0.4.x": ("training/global_step", "training/epoch"),
    "0.5": ("timing_s/start_profile", "timing_s/stop_profile"),
    "0.6-0.7.0": ("response/aborted_ratio", "timing_s/start_profile"),
    ">=0.7.1": ("timing_s/update_weights", "response/aborted_ratio"),
    ">=0.8": ("actor/perf/max_memory_allocated_gb", "timing_s/update_weights"),
}
"""What the step lines of each release show, independent of each other."""
_ASYNC = (
    *("timing_s/generate_async", "timing_s/wait_for_enough_samples", "timing_s/switch_wait"),
    *("timing_s/sync_rollout_weights", "timing_s/timing_s/param_sync", "fully_async/trainer/idle_ratio"),
)
_ASYNC_WRITERS = frozenset({"TaskRunnerV1", "FullyAsyncTrainer"})
"""Source: verl ``recipe/one_step_off_policy`` and ``experimental/fully_async_policy`` (0.7 to 0.9.1)."""
_INTERRUPTIONS = ("testing", "save_checkpoint")
_ROUNDING = 0.02  # share of the step by which printed parts may exceed the printed whole


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What a step line tells: the work, and ``seconds`` by metric name (phases, and STEP or THROUGHPUT)."""

    seconds: Mapping[str, float]
    work: Workload


def timings(values: Mapping[str, float]) -> dict[str, float]:
    """Seconds by phase name, and STEP as it was printed.

    A phase that was not printed is absent, never zero; so is one that was printed as nan, inf or an absurd number.
    """
    seconds: dict[str, float] = {}
    for name, keys in _TIMING:
        for key in keys:
            if key in values:
                if abs(values[key]) < LONGEST_S:  # false for nan
                    seconds[name] = values[key]
                break
    return seconds


def read(
    values: Mapping[str, float],
    version: str,
    seconds: dict[str, float] | None = None,
    *,
    prints_total: bool = False,
) -> StepFacts:
    """Facts of one step of a `release`, the interruptions taken out of STEP.

    ``seconds`` are the `timings`, where the caller has them already.  A run that ``prints_total`` tells its tokens in
    every step: where the number is missing it is unknown, and what stands for it elsewhere is another measure of work.
    Throughput is the step's tokens over its seconds
    and GPUs: where STEP is printed, it adds nothing at equal work.
    """
    seconds = timings(values) if seconds is None else dict(seconds)
    if STEP in seconds:
        seconds[STEP] -= _interruptions(seconds, version)
    elif abs(throughput := values.get("perf/throughput", nan)) < LONGEST_S:
        seconds[THROUGHPUT] = throughput
    return StepFacts(seconds, _work(values, prints_total=prints_total))


def per_token_ms(values: Mapping[str, float], seconds: Mapping[str, float]) -> dict[str, float]:
    """Milliseconds per token of each phase in ``seconds``, old_log_prob too, for which verl itself prints none.

    As verl's ``compute_timing_metrics`` has it: generation over the response tokens, everything else over all tokens
    of the batch.  Empty where the step does not print its tokens.
    """
    tokens = values.get(TOTAL_TOKENS, nan)
    response, prompt = values.get("response_length/mean", nan), values.get("prompt_length/mean", nan)
    responses = tokens * response / (response + prompt) if response + prompt > 0 else nan
    of_phase = {phase.name: responses if phase.longest else tokens for phase in PHASES if not phase.apart}
    return {name: 1000 * seconds[name] / of_phase[name] for name in seconds if name in of_phase and of_phase[name] > 0}


def is_async(values: Mapping[str, float], writer: str = "") -> bool:
    """Whether an asynchronous trainer prints this: generation runs beside it, and ``gen`` is the time it waits."""
    return writer in _ASYNC_WRITERS or any(mark in values for mark in _ASYNC)


def is_certain(values: Mapping[str, float], decimals: int | None) -> bool:
    """Whether more than one mark tells the same `release`; forks move keys, so one alone makes it likely at most."""
    marks = _MARKS.get(release(values, decimals), ())
    return sum(mark in values for mark in marks) + (decimals is not None) > 1


def release(values: Mapping[str, float], decimals: int | None) -> str:
    """The verl releases that print these keys in this way, as a range; empty when they do not tell."""
    if "timing/gen" in values:
        return "0.1"
    if decimals is not None:
        return "0.4.x" if "training/global_step" in values else "0.2-0.3"
    if "actor/perf/max_memory_allocated_gb" in values:
        return ">=0.8"
    if "timing_s/update_weights" in values:
        return ">=0.7.1"
    if "response/aborted_ratio" in values:
        return "0.6-0.7.0"
    if "timing_s/start_profile" in values:
        return "0.5"
    return ""


def _interruptions(seconds: Mapping[str, float], version: str) -> float:
    """Seconds of validation and checkpoint inside STEP."""
    if not any(name in seconds for name in _INTERRUPTIONS):
        return 0.0
    parts = sum(s for name, s in seconds.items() if name != STEP and name not in _INTERRUPTIONS)
    room = seconds[STEP] * (1 + _ROUNDING) - parts
    inside = 0.0
    for name in _INTERRUPTIONS:
        if name in seconds and _contains(name, version) and inside + seconds[name] <= room:
            inside += seconds[name]
    return inside


def _contains(part: str, version: str) -> bool:
    if part == "testing":
        return version in {"0.2-0.3", "0.4.x", "0.5", ""}
    return version != "0.6-0.7.0"


def _work(values: Mapping[str, float], *, prints_total: bool) -> Workload:
    tokens = values.get(TOTAL_TOKENS)
    if tokens is None and not prints_total and "response_length/mean" in values:
        tokens = values["response_length/mean"] + values.get("prompt_length/mean", 0.0)
    return Workload(tokens, values.get("response_length/max"))
