"""One slow step: further out than this series' own slow steps go.

Idea.  A single step proves no lasting change, but one that takes three times as long is worth a word at once.  How far
out is far depends on the series: generation waits for its slowest sample and has a heavy tail, an optimiser step has
none.  So each series learns how often it exceeds 2.5 sigma and by how much, and a spike is an innovation beyond the
quantile of that tail.

Formulas (peaks over a threshold, generalised Pareto): with p the chance of an excess over u = 2.5 sigma, m its mean and
a shape xi of 0.2 (a little heavier than exponential; a series is too short to tell its own),
    x* = u + m (1 - xi) ((p / rate)^xi - 1) / xi,
kept between a ratio of 1.8 and one of 2.36, or eight sigma in a noisy series.  Below, three steps are awaited and told
as a level; above, it is told whatever the tail.

Trade-off.  The upper limit promises that x3 is always told, at the cost of the false-alarm budget where the tail is
heavier.  A single fast step is no event.  What alarmed becomes part of the tail, so a series that stalls time and again
soon falls silent below that limit.

Measured on generated series (docs/DETECTION.md): for one false alarm per 10,000 steps asked of a series this channel
raises 0.2, 0.7 with heavy tails and 5 % stragglers; asked for a tenth, still 0.2: what is left are real steps slower
than x2.36.  x3 is told at once.

Reference: Coles, An Introduction to Statistical Modeling of Extreme Values (2001), ch. 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._channel import Alarm, Kind, Seen
from verlwatch.core.series._state import fields_of

LEAST, MOST, MOST_SIGMA = math.log(1.8), math.log(2.36), 8.0
TAIL = 2.5  # sigma, where the tail begins
SHAPE = 0.2
SHARE = 0.4  # of the false alarms asked of the series, this channel's
MEMORY = 2000.0  # steps
LEAST_CHANCE = 1e-4


@dataclass(slots=True)
class Spike:
    """Detector of single slow steps; ``chance`` and ``excess`` are p and m, ``weight`` the steps they stand on."""

    KIND: ClassVar[Kind] = "spike"
    FALSE_ALARMS: ClassVar[float] = 1.0
    DELAY: ClassVar[tuple[float, int]] = (3.0, 1)

    rate: float
    chance: float = 0.015
    excess: float = 0.06
    weight: float = 250.0

    @property
    def suspects(self) -> bool:
        """One step is no evidence that builds up."""
        return False

    def update(self, seen: Seen, baseline: Baseline) -> Alarm | None:
        """Judge one step by itself."""
        if seen.residual < LEAST or seen.innovation < self._limit(baseline):
            return None
        self.learn(seen, 0, baseline)  # told or not, this is how slow steps come in this series
        return Alarm("spike", seen.step, seen.residual, 1)

    def learn(self, seen: Seen, age: int, baseline: Baseline) -> None:
        """Take a step into the tail, if it lies there."""
        del age
        if self.weight < MEMORY:
            self.weight += 1.0
        gain, over = 1.0 / self.weight, seen.innovation - TAIL * baseline.sigma
        if over > 0.0:
            self.excess += min(1.0, gain / self.chance) * (min(over, MOST) - self.excess)
            self.chance += gain * (1.0 - self.chance)
        elif self.chance > LEAST_CHANCE:
            self.chance -= gain * self.chance

    def rebase(self) -> None:
        """Nothing is gathered."""

    def state(self) -> dict[str, Any]:
        """Everything, exactly."""
        return fields_of(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Inverse of :meth:`state`."""
        return cls(**state)

    def _limit(self, baseline: Baseline) -> float:
        rarer = max(1.0, self.chance / (SHARE * self.rate))
        tail = TAIL * baseline.sigma + self.excess * (1.0 - SHAPE) * (math.pow(rarer, SHAPE) - 1.0) / SHAPE
        return max(LEAST, min(tail, max(MOST, MOST_SIGMA * baseline.sigma)))
