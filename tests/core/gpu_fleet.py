"""Cards of a generated run: colocated swings, jitter, leaks and shard errors, told as samples of aligned instants.

A step is `gen` (the engine holds its pool on the card) and then `train`.  Every card changes phase by its own jitter
after the step does, drawn anew for each change, so at one instant some are tens of GB away from the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from verlwatch.core.cards import Cards
from verlwatch.core.types import NOBODY, Diagnosis, Event, Origin

PERIOD_S = 10.0
SAMPLE = Origin("gpu", 0, 0, NOBODY, "gpu")
Extra = Callable[[int, float, int], float]
"""GB that a card (its number) holds besides what its peers do, at a time and in a step."""


def sample(host: str, gpu: int | str, at: float, used: float | None, **said: str | float) -> Event:
    """A ``gpu_sample`` as a source tells it."""
    memory = {} if used is None else {"used_gb": used}
    return Event(
        SAMPLE,
        "gpu_sample",
        {"uuid": f"GPU-{host}-{gpu}", "total_gb": 80.0, **memory, **said},
        scope=(("host", host), ("gpu", str(gpu))),
        at=at,
    )


@dataclass
class Fleet:
    """``hosts`` × ``gpus`` cards.  ``step_s`` and ``gen_share`` vary by ``spread`` from step to step.

    ``jitter_s`` is how late a card changes phase at most; ``steady`` draws it once for each card.  ``lost`` is the
    share of samples that never come, ``skew_s`` how far hosts' clocks are apart, ``noise_gb`` a sample's own noise.
    """

    hosts: int = 1
    gpus: int = 8
    step_s: float = 60.0
    gen_share: float = 0.5
    spread: float = 0.05
    low_gb: float = 28.0
    swing_gb: float = 40.0
    jitter_s: float = 5.0
    steady: bool = False
    noise_gb: float = 0.1
    varying_gb: float = 0.0
    lost: float = 0.0
    skew_s: float = 0.0
    period_s: float = PERIOD_S
    seed: int = 35
    ranks: bool = True
    more: Extra = lambda card, at, step: 0.0
    said: Callable[[int], dict[str, str | float]] = lambda card: {}
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        count = self.hosts * self.gpus
        self.own = [self.random.gauss(0.0, 0.15) for _ in range(count)]
        self.late = [self.random.uniform(0.0, self.jitter_s) for _ in range(count)]
        self.skews = [self.random.uniform(-self.skew_s, self.skew_s) for _ in range(self.hosts)]
        self.at = 1_000_000.0

    def steps(self, count: int, first: int = 1) -> Iterator[tuple[int, float, list[Event]]]:
        """Step, when it ended, and the samples told in it."""
        draw = self.random
        held: list[float] = []
        for step in range(first, first + count):
            long_s = self.step_s * max(0.5, draw.gauss(1.0, self.spread))
            gen_s = long_s * min(0.95, max(0.05, draw.gauss(self.gen_share, self.spread / 4)))
            begin, change, end = self.at, self.at + gen_s, self.at + long_s
            cards = range(self.hosts * self.gpus)
            entered = [begin + self._jitter(card) for card in cards]
            left = [change + self._jitter(card) for card in cards]
            level = self.low_gb + draw.gauss(0.0, self.varying_gb)
            events = []
            instant = self.period_s * (begin // self.period_s + 1)
            while instant <= end:
                for card in cards:
                    if self.lost and draw.random() < self.lost:
                        continue
                    is_high = entered[card] <= instant < left[card]
                    if instant < entered[card] and held:
                        used = held[card]
                    else:
                        used = level + (self.swing_gb if is_high else 0.0)
                    events.append(self._sample(card, instant, used, step))
                instant += self.period_s
            held = [level] * len(cards)
            self.at = end
            yield step, end, events

    def _jitter(self, card: int) -> float:
        return self.late[card] if self.steady else self.random.uniform(0.0, self.jitter_s)

    def _sample(self, card: int, at: float, used: float, step: int) -> Event:
        host, gpu = divmod(card, self.gpus)
        used += self.own[card] + self.random.gauss(0.0, self.noise_gb) + self.more(card, at, step)
        rank: dict[str, str | float] = {"ranks": f"{100 + card}:{card}"} if self.ranks else {}
        return sample(f"node-{host}", gpu, at + self.skews[host], used, **rank, **self.said(card))

    def seconds(self) -> dict[str, float]:
        """Phases of a step as it is printed."""
        return {"gen": self.gen_share * self.step_s, "update_actor": (1 - self.gen_share) * self.step_s}


def watch(fleet: Fleet, count: int, cards: Cards | None = None) -> Iterator[tuple[int, Cards, tuple[Diagnosis, ...]]]:
    """Lets ``count`` steps go by: each step with what holds at its end."""
    cards = cards or Cards("run")
    last = -1
    for step, end, events in fleet.steps(count):
        for event in events:
            assert cards.hear(event, last, event.at or 0.0)
        cards.stepped(step, end, fleet.seconds())
        last = step
        yield step, cards, cards.diagnose(step, end)


def alarms(found: tuple[Diagnosis, ...]) -> list[Diagnosis]:
    """What people would be told of."""
    return [diagnosis for diagnosis in found if diagnosis.severity != "info"]
