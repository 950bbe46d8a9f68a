"""A run in good health, made up step by step with the noise and the trends of real ones, and with faults on demand.

Entropy falls and KL grows over the whole run, rewards rise, responses grow and with them the share of cut ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import exp, sqrt

from verlwatch.core.engine import Engine
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk, Outcome

ALL = ("grad_norm", "critic_grad_norm", "entropy", "kl", "score", "response_length")
FAULT = 110
"""The first step of a fault."""
LOOP = "timing_s/agent_loop/"
ENTROPY, KL, SCORE, GRADIENTS = "actor/entropy", "actor/kl_loss", "critic/score/mean", "actor/grad_norm"
LENGTH, CLIPPED, ABORTED = "response_length/mean", "response_length/clip_ratio", "response/aborted_ratio"
SLOWEST, MEAN, PREEMPTED = (
    f"{LOOP}slowest/generate_sequences",
    f"{LOOP}generate_sequences/mean",
    f"{LOOP}num_preempted/mean",
)
SLOWEST_TOOLS, MEAN_TOOLS = f"{LOOP}slowest/tool_calls", f"{LOOP}tool_calls/mean"
Values = dict[str, float]
Fault = Callable[[Values, float], None]
"""Changes the values of a step, given how far the fault has come (0 to 1)."""


class _Noise:
    """Noise that carries over from one step to the next, as a factor."""

    def __init__(self, random_: random.Random, sd: float, phi: float = 0.5) -> None:
        self._random, self._sd, self._phi, self._at = random_, sd, phi, 0.0

    def __call__(self) -> float:
        self._at = self._phi * self._at + sqrt(1 - self._phi**2) * self._random.gauss(0.0, self._sd)
        return exp(self._at)


class HealthyRun:
    """Lines of steps; ``over`` says how many steps a fault takes to come."""

    def __init__(self, seed: int = 1, planned: int = 400, fault: Fault | None = None, over: int = 1) -> None:
        self.random = random.Random(seed)
        self.planned, self.fault, self.over = planned, fault, over
        sds = {"entropy": 0.05, "kl": 0.12, "gradients": 0.2, "length": 0.04, "tail": 0.1, "tools": 0.08}
        self.noise = {name: _Noise(self.random, sd) for name, sd in sds.items()}

    def values(self, step: int) -> Values:
        part, random_, noise = step / self.planned, self.random, self.noise
        length = 600 * exp(0.8 * part) * noise["length"]()
        rewarded = 0.15 + 0.5 * (1 - exp(-step / 80))
        mean, ratio = length / 20, 1 + 1.2 * noise["tail"]()
        tools = 0.2 * noise["tools"]()
        return {
            ENTROPY: (0.08 + 0.5 * exp(-step / 150)) * noise["entropy"](),
            KL: 0.2 * part * noise["kl"](),
            GRADIENTS: 0.4 * noise["gradients"]() * (5 if random_.random() < 0.01 else 1),
            SCORE: self._share(rewarded),
            LENGTH: length,
            "response_length/max": 2048.0,
            CLIPPED: self._share(0.25 * max(0.0, length / 2048 - 0.3)),
            ABORTED: self._share(0.004),
            PREEMPTED: max(0.0, random_.gauss(0.02 * part, 0.01)),
            SLOWEST: mean * ratio * (1 - tools),
            SLOWEST_TOOLS: mean * ratio * tools,
            MEAN: mean * (1 - tools),
            MEAN_TOOLS: mean * tools,
        }

    def _share(self, chance: float, of: int = 256) -> float:
        return sum(self.random.random() < chance for _ in range(of)) / of

    def line(self, step: int) -> str:
        values = self.values(step)
        if self.fault is not None and step >= FAULT:
            self.fault(values, min(1.0, (step - FAULT + 1) / self.over))
        gen = values[SLOWEST] + values[SLOWEST_TOOLS] + 0.5
        values |= {
            "timing_s/gen": gen,
            "timing_s/update_actor": 0.03 * values[LENGTH] * self.random.uniform(0.98, 1.02),
        }
        values |= {
            "timing_s/step": gen + values["timing_s/update_actor"],
            "perf/total_num_tokens": 256 * values[LENGTH],
        }
        return f"step:{step} - " + " - ".join(f"{key}:{value!r}" for key, value in values.items()) + "\n"

    def told(self, last: int, *, health: tuple[str, ...] = ALL, engine: Engine | None = None) -> Outcome:
        data = "".join(self.line(step) for step in range(1, last + 1)).encode()
        engine = engine or Engine(Settings(receivers=("team",), health=health))
        return engine.feed(Chunk("train.log", 1, 0, data), 0.0)


def opened(outcome: Outcome) -> list[tuple[str, int]]:
    """Rules that told something, and when."""
    return [(t.rule, t.step) for t in outcome.transitions if t.event == "opened"]
