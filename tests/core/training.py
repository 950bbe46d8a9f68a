"""Runs made up step by step, and what was told of them."""

from __future__ import annotations

import random

from verlwatch.core.engine import Engine
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk, Outcome

SETTINGS = Settings(receivers=("team",))


class Training:
    """A run made up step by step, as verl prints it."""

    def __init__(self, pid: int = 7) -> None:
        self.pid = pid
        self.noise = random.Random(5)
        self.lines: list[str] = []

    def steps(self, first: int, last: int, **seconds: float) -> Training:
        """Steps whose phases take so long, give or take 2 %; ``other`` is the time outside all phases."""
        for step in range(first, last + 1):
            took = {
                name: s * self.noise.uniform(0.98, 1.02) for name, s in ({"gen": 40.0, "ref": 5.0} | seconds).items()
            }
            total = sum(took.values())
            took.pop("other", None)
            values = " - ".join(f"timing_s/{name}:{s!r}" for name, s in {**took, "step": total}.items())
            self.line(f"step:{step} - actor/lr:1e-06 - {values} - perf/throughput:55.5")
        return self

    def line(self, text: str) -> Training:
        self.lines.append(f"(TaskRunner pid={self.pid}) {text}\n")
        return self

    def told(self, engine: Engine | None = None) -> Outcome:
        data = "".join(self.lines).encode()
        return (engine or Engine(SETTINGS)).feed(Chunk("train.log", 1, 0, data), 0.0)


def story(outcome: Outcome) -> list[tuple[str, str, int]]:
    return [(t.event if t.closed_as is None else t.closed_as, t.phase, t.onset_step) for t in outcome.transitions]
