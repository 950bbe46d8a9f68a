"""A noisier series: steps that lie further from the baseline than this series' own steps do, on both sides.

Idea.  A phase whose seconds begin to swing may keep its level, and each of its steps may be one that happens now and
then; ten of them in a row do not.  Every step votes for "three times the noise" or for "as ever", by how much more
often a step so far out occurs in the one than in the other.  How often it occurs as ever is what this series has shown:
where the tail is heavy, far steps count for little.  More noise goes both ways, a shift, a slide or a straggler only
one.  So each side must bring a quarter of the evidence, and the latest of it must not all be on one side: then a level
may be moving, and that is for the level channel to say.

Formulas.
    j          class of the size of a score by EDGES; q_j its chance under three times the noise, p_j the share of such
               steps among those learned, with PRIOR worth 200 of them
    CUSUM      W = max(0, W + min(log(q_j / p_j), 3));  P and N sum up its rises with scores above and below zero
    evidence   E = min(W, 4 P, 4 N), alarm when E >= h min(2.5, max(1, M / 0.06)), h = H + SLOPE ln(1e-4 / rate),
               M the mean of E in this series, for what the classes do not know: noise that comes in clusters.
    Onset: where W left zero.  Size: the root mean square of the scores since then.

Trade-off.  A step is worth 3 at most, so that it takes three or more; eight are usual.  The alarm waits while the last
far steps are on one side, which costs about one step and keeps a shift from being called noise.

Measured on generated series (docs/DETECTION.md): for one false alarm per 10,000 steps asked of a series this channel
raises 0.4, and 0.4 to 0.9 under strong autocorrelation and heavy tails.  Noise three times as large is told after 8 to
10 steps.

References: Page, Continuous Inspection Schemes, Biometrika 41 (1954); Lorden, Procedures for Reacting to a Change in
Distribution, Annals of Mathematical Statistics 42 (1971).
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._channel import Alarm, Kind, Seen, caution
from verlwatch.core.series._state import fields_of

EDGES = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)  # sigma
PRIOR, PRIOR_STEPS = (0.7197, 0.155, 0.072, 0.030, 0.013, 0.0075, 0.002, 0.0008), 200.0
NOISY = (0.30, 0.12, 0.11, 0.105, 0.075, 0.12, 0.085, 0.085)
H, SLOPE = 6.2, 1.0
CAP, CEILING = 3.0, 30.0  # of one vote, and of W
SIDES, ONE_SIDED = 4.0, 5.0
MEAN, USUAL_MEAN, MEAN_TOP, MOST = 0.07, 0.06, 3.0, 2.5
YOUNG, FULL, KEPT = 150, 1500, 1400.0  # steps that M begins with, and the most that it and the counts stand on
EARLY = 40.0
SUSPECT, THAW = 4.0, 150  # evidence at which learning stops, for at most so many steps
REFRESH = 16
FARTHEST = 36.0  # a squared score counts for no more in the size


@dataclass(slots=True)
class Dispersion:
    """Detector of noise that has become larger.

    ``counts`` are the steps learned by class, ``votes`` the worth of each class as of the last refresh, ``mean`` is M.
    ``total`` is W, ``above`` P and ``below`` N, ``run`` the evidence since it last changed sides, with its sign;
    ``onset``, ``steps`` and ``squares`` belong to the stretch since W was zero.
    """

    KIND: ClassVar[Kind] = "dispersion"
    FALSE_ALARMS: ClassVar[float] = 1.0
    DELAY: ClassVar[tuple[float, int]] = (3.0, 30)

    rate: float
    counts: list[float] = field(default_factory=lambda: [PRIOR_STEPS * p for p in PRIOR])
    votes: list[float] = field(default_factory=lambda: _votes(PRIOR))
    learned: int = 0
    mean: float = MEAN
    total: float = 0.0
    above: float = 0.0
    below: float = 0.0
    run: float = 0.0
    onset: int = 0
    steps: int = 0
    squares: float = 0.0

    @property
    def suspects(self) -> bool:
        """Whether the latest steps look noisier."""
        return self.total >= SUSPECT and self.steps <= THAW and self.evidence >= SUSPECT

    def update(self, seen: Seen, baseline: Baseline) -> Alarm | None:
        """Add a step's vote."""
        del baseline
        score = seen.score
        size = score if score > 0.0 else -score
        vote = self.votes[bisect(EDGES, size)]
        if self.total <= 0.0:
            if vote <= 0.0:
                return None
            self.onset, self.steps, self.squares = seen.step, 0, 0.0
            self.above, self.below, self.run = 0.0, 0.0, 0.0
        self.total = total = min(self.total + vote, CEILING)
        self.steps += 1
        self.squares += min(size * size, FARTHEST)
        if vote <= 0.0:
            return None
        if score > 0.0:
            self.above += vote
            self.run = self.run + vote if self.run > 0.0 else vote
        else:
            self.below += vote
            self.run = self.run - vote if self.run < 0.0 else -vote
        if total < SUSPECT or abs(self.run) >= ONE_SIDED or self.evidence < self._limit():
            return None
        return Alarm("dispersion", self.onset, 0.5 * math.log(self.squares / self.steps), self.steps)

    @property
    def evidence(self) -> float:
        """E, for noise that has become larger on both sides."""
        if self.total <= 0.0:
            return 0.0
        return min(self.total, SIDES * self.above, SIDES * self.below)

    def learn(self, seen: Seen, age: int, baseline: Baseline) -> None:
        """Count a step in its class."""
        del age, baseline
        self.counts[bisect(EDGES, abs(seen.score))] += 1.0
        self.learned = learned = self.learned + 1
        evidence = 0.0 if self.total <= 0.0 else min(self.evidence, MEAN_TOP)
        self.mean += (evidence - self.mean) / (learned + YOUNG if learned < FULL else FULL)
        if not learned % REFRESH:
            self._refresh()

    def rebase(self) -> None:
        """Begin again: the scores that follow are taken from another level."""
        self.total = 0.0

    def state(self) -> dict[str, Any]:
        """Everything, exactly."""
        return fields_of(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Inverse of :meth:`state`."""
        return cls(**state)

    def _limit(self) -> float:
        h = H + SLOPE * math.log(1e-4 / self.rate)
        restless = min(MOST, max(1.0, self.mean / USUAL_MEAN))
        return h * restless * (1.0 + (EARLY / (self.learned + EARLY)) ** 2) * caution(self.rate, self.learned)

    def _refresh(self) -> None:
        """The votes, from the counts; what is long past fades."""
        counts, n = self.counts, sum(self.counts)
        if n > FULL:
            self.counts = counts = [count * KEPT / n for count in counts]
            n = KEPT
        self.votes = _votes([count / n for count in counts])


def _votes(chances: Sequence[float]) -> list[float]:
    """What a step of each class is worth."""
    return [min(CAP, math.log(q / p)) for q, p in zip(NOISY, chances, strict=True)]
