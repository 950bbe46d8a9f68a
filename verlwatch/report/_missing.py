"""Questions that a log leaves open, and how the next one would answer them."""

from __future__ import annotations

from collections.abc import Iterator

from verlwatch.core.verl_keys import ROLLOUT
from verlwatch.report._model import Missing
from verlwatch.report._reading import Reading
from verlwatch.report._series import TOKENS, present
from verlwatch.report._steps import Steps
from verlwatch.report._words import Words

_NO_STEPS = (
    "where the time of a step goes",
    "verl prints it with trainer.logger=['console'] (or 'file' for JSONL); `verlwatch parse LOG` shows what was read",
)
_TOKENS = (
    "whether slower steps only had more to do",
    "the step lines of this log name no tokens: verl prints perf/total_num_tokens since 0.2",
)
_CONFIG = (
    "what is configured, and so what to turn",
    "keep the beginning of the log, where verl prints its configuration, or give .hydra/config.yaml with the log",
)
_MEMORY = (
    "whether all cards hold the same",
    "`nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total,utilization.gpu --format=csv -l 10` beside the "
    "log, or VERL_LOGGING_LEVEL=DEBUG with RAY_DEDUP_LOGS=0; verl's step line tells of one rank",
)
_ENGINE = (
    "whether the engine's KV cache is full",
    "{key}=False and VLLM_LOGGING_LEVEL=INFO; SGLang: log_level info",
)
_MESH = (
    "whether tensor parallelism is taken up",
    "verl prints no mesh; print rollout_device_mesh once, or look at the memory of the cards after the engine is built",
)
_NETWORK = (
    "whether the network is as fast as it should be",
    "paste the table of nccl-tests (all_reduce_perf -b 16M -e 1G -f 2 -g N) into a log; NCCL_* variables are known "
    "only where a log shows them",
)
_SUPPLY = (
    "how long a step waits for its data",
    "verl does not time it; what is in no timed phase holds it, together with logging and balancing",
)
_USE = (
    "how busy the GPUs are",
    "nvidia-smi beside the log, or `verlwatch run` on the hosts",
)


def missing(reading: Reading, steps: Steps, words: Words) -> tuple[Missing, ...]:
    """What this log does not answer, the most important first."""
    return tuple(
        Missing(words(what), words(how, key=f"{ROLLOUT}.disable_log_stats") if "{key}" in how else words(how))
        for what, how in _missing(reading, steps)
    )


def _missing(reading: Reading, steps: Steps) -> Iterator[tuple[str, str]]:
    if not len(steps):
        yield _NO_STEPS
    elif not present(steps, TOKENS):
        yield _TOKENS
    if not reading.config:
        yield _CONFIG
    if len(list(reading.cards.known())) < 2:  # noqa: PLR2004 - one card cannot be compared
        yield _MEMORY
    if not reading.gauges["engine"]:
        yield _ENGINE
    if not reading.meshes:
        yield _MESH
    if not reading.nccl:
        yield _NETWORK
    if not reading.gauges["supply"]:
        yield _SUPPLY
    if "gpu_utilization" not in reading.gauges["utilisation"]:
        yield _USE
