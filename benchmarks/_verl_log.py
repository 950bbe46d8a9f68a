"""A made-up log as verl prints it: 1 % step lines of 106 keys, 2 % memory lines, the rest words of workers."""

from __future__ import annotations

import random
from pathlib import Path

PHASES = ("gen", "reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor", "step")
KEYS = (
    *(f"global_seqlen/{of}" for of in ("min", "max", "minmax_diff", "balanced_min", "balanced_max", "mean")),
    *(
        f"actor/{name}"
        for name in ("entropy", "kl_loss", "kl_coef", "pg_loss", "pg_clipfrac", "ppo_kl", "grad_norm", "lr")
    ),
    *(f"critic/{name}" for name in ("vf_loss", "vf_clipfrac", "vpred_mean", "grad_norm", "lr")),
    *(
        f"critic/{name}/{of}"
        for name in ("score", "rewards", "advantages", "returns", "values")
        for of in ("mean", "max", "min")
    ),
    *(f"{name}_length/{of}" for name in ("response", "prompt") for of in ("mean", "max", "min", "clip_ratio")),
    *(f"timing_s/{name}" for name in PHASES),
    *(f"timing_per_token_ms/{name}" for name in ("gen", "ref", "values", "adv", "update_critic", "update_actor")),
    *(f"perf/{name}" for name in ("total_num_tokens", "time_per_step", "throughput", "mfu/actor", "mfu/critic")),
    *(
        f"val-aux/data_{i}/reward/{of}"
        for i in range(11)
        for of in ("mean@4", "best@4/mean", "worst@4/mean", "maj@4/mean")
    ),
)
TEXT = (
    "the model of batch rollout to generate tokens and worker loss warning import torch vllm engine running requests "
    "cache usage response prompt answer compute value shape deprecated node memory allocated shard loading weights"
)
WORDS = TEXT.split()
DISTINCT = 16_000_000  # bytes that are made; a longer log repeats them


def step_line(rnd: random.Random, number: int) -> str:
    """A step line as the driver prints it through Ray."""
    items = " - ".join(f"{key}:{rnd.lognormvariate(1, 2)!r}" for key in KEYS)
    return f"\x1b[36m(TaskRunner pid=4242)\x1b[0m step:{number} - {items}\n"


def _line(rnd: random.Random, number: int) -> str:
    draw = rnd.random()
    if draw < 0.01:
        return step_line(rnd, number)
    prefix = f"\x1b[36m(WorkerDict pid={4243 + number % 8})\x1b[0m "
    if draw < 0.03:
        gb = rnd.uniform(20, 70)
        return (
            f"{prefix}DEBUG:2026-01-02 03:04:05,678:After rollout generation, memory allocated (GB): {gb:.2f}, memory "
            f"reserved (GB): {gb:.2f}, device memory used/total (GB): {gb:.2f}/79.11\n"
        )
    return f"{prefix}{' '.join(rnd.choices(WORDS, k=rnd.randint(4, 25)))}\n"


def write(path: Path, size: int) -> tuple[int, int]:
    """Fills a log of about ``size`` bytes; its size and number of lines."""
    rnd = random.Random(1)
    part = bytearray()
    while len(part) < min(size, DISTINCT):
        part += _line(rnd, rnd.randrange(1_000_000)).encode()
    times = max(1, size // len(part))
    with path.open("wb") as file:
        for _ in range(times):
            file.write(part)
    return len(part) * times, part.count(b"\n") * times
