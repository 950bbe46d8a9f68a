"""A slow slide: a tenth of a per cent a step, too little at any moment for a shift to be seen.

Idea.  An exponential mean of the scores of the last 24 steps or so is nearly the best filter there is for a slide that
goes on (against the exact one it keeps 94 to 98 % of the signal), and costs one line a step.  Two such means of the
residuals, the second of the first, tell when the slide began and how far it has come: a level that moved long ago has
moved both, one that is moving leaves the second behind.

Formulas, with l = 1 / 24.
    evidence   A += l (clip(score, +-3) - A),  E = A^2 (2 - l) / (2 l V),  V the mean of A^2 (2 - l) / l in this series,
               learned 64 steps late so that a slide does not teach it;  alarm when A > 0 and
               E >= h (1 + 60 / (n + 60)), h = H + SLOPE ln(1e-4 / rate), n steps learned
    moments    B += l clip(residual - B, +-3 sd),  C += l (B - C);  a slide of d a step that began x / l steps ago gives
               B = d (x - 1 + e^-x) / l,  C = d (x - 2 + (x + 2) e^-x) / l:  C / B tells x, then B tells d x / l.
    The slide must have come 4.5 %, and have lasted for 24 steps: before, it is a level.

Trade-off.  A slower filter would find slower slides, and all others later.  A slide below 5 % in some 100 steps is
learned.  Only slides for the worse are told.

Measured on generated series (docs/DETECTION.md): for one false alarm per 10,000 steps asked of a series this channel
raises less than 0.1, 0.2 under strong autocorrelation, up to 0.4 where the level itself wanders.  0.1 % a step is told
after 50 steps in noise of 2 %, after 80 in noise of 5 %.

References: Gan, EWMA Control Chart under Linear Drift, Journal of Statistical Computation and Simulation 38 (1991);
Brown, Smoothing, Forecasting and Prediction of Discrete Time Series (1963), on the two means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._channel import Alarm, Kind, Seen, caution
from verlwatch.core.series._state import fields_of

SPAN = 24.0
GAIN = 1.0 / SPAN
UNIT = (2.0 - GAIN) / GAIN
CLIP = 3.0  # sigma
H, SLOPE = 6.6, 1.0
GATE = 0.045  # log units: it goes on
V_PRIOR, V_LEAST, V_JUMP, V_YOUNG, V_FULL = 2.0, 1.0, 8.0, 100, 2000
EARLY = 60.0
EVERY, BEHIND = 8, 8  # steps between two squares that are learned, and how many of them wait
LEAST_AGE, MOST_AGE = 1.0, 6.0  # of a slide, in spans


@dataclass(slots=True)
class Drift:
    """Detector of slow slides for the worse.

    ``lean`` is A, ``near`` B, ``far`` C, ``variance`` V; ``past`` are the squares that wait to be learned.
    """

    KIND: ClassVar[Kind] = "drift"
    FALSE_ALARMS: ClassVar[float] = 1.0
    DELAY: ClassVar[tuple[float, int]] = (1.001, 65)

    rate: float
    lean: float = 0.0
    near: float = 0.0
    far: float = 0.0
    variance: float = V_PRIOR
    learned: int = 0
    past: list[float] = field(default_factory=list)

    @property
    def suspects(self) -> bool:
        """A slide is what learning is there for, as long as it is not told."""
        return False

    def update(self, seen: Seen, baseline: Baseline) -> Alarm | None:
        """Add a step to the means, and look whether they lean."""
        score, residual, near = seen.score, seen.residual, self.near
        lean = self.lean
        self.lean = lean = lean + GAIN * ((CLIP if score > CLIP else max(score, -CLIP)) - lean)
        move, most = residual - near, CLIP * baseline.sd
        self.near = near = near + GAIN * (most if move > most else max(move, -most))
        self.far += GAIN * (near - self.far)
        if lean <= 0.0 or near < 0.4 * GATE:
            return None
        unsure = (1.0 + EARLY / (baseline.learned + EARLY)) * caution(self.rate, baseline.learned)
        if UNIT * lean * lean < 2.0 * self.variance * unsure * (H + SLOPE * math.log(1e-4 / self.rate)):
            return None
        age, size = self._slide()
        if age < LEAST_AGE or size < GATE:
            return None
        steps = int(age * SPAN)
        return Alarm("drift", seen.step - steps, size, steps)

    def learn(self, seen: Seen, age: int, baseline: Baseline) -> None:
        """Learn how large A is in this series, from what it was before a slide could be told."""
        del seen, age, baseline
        self.learned = learned = self.learned + 1
        if learned % EVERY:
            return
        self.past.append(UNIT * self.lean * self.lean)
        if len(self.past) <= BEHIND:
            return
        square, old = self.past.pop(0), self.variance
        top = V_JUMP * old
        gain = EVERY / (min(learned, V_FULL) + V_YOUNG)
        self.variance = max(V_LEAST, old + gain * (min(top, square) - old))

    def rebase(self) -> None:
        """Begin again."""
        self.lean = self.near = self.far = 0.0
        self.past = []

    def state(self) -> dict[str, Any]:
        """Everything, exactly."""
        return fields_of(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Inverse of :meth:`state`."""
        return cls(**state)

    def _slide(self) -> tuple[float, float]:
        """When the slide began, in spans ago, and how far it has come, in log units: by bisection of C / B."""
        low, high = 0.0, MOST_AGE
        for _ in range(12):
            x = 0.5 * (low + high)
            gone = math.exp(-x)
            if (x - 2.0 + (x + 2.0) * gone) * self.near < (x - 1.0 + gone) * self.far:
                low = x
            else:
                high = x
        x = 0.5 * (low + high)
        return x, self.near * x / (x - 1.0 + math.exp(-x))
