"""The other noise: while a phase swings more than it did, its steps are judged by the swings it shows now.

Idea.  As with two levels (:mod:`._rival`) the old noise waits beside the new one, and each step votes.  Meanwhile the
baseline has the larger noise, so that what is a spike or a shift is judged by it.

Formula.  With f the variance now over the old one, followed over 16 steps, and s a score in the old scale, the log
likelihood ratio of the old noise to the new is R = max(0, R + clip(log(f) / 2 - s^2 (1 - 1 / f) / 2, +-2)).  The series
is back at R >= 7.5, a dozen steps for three times the noise; it was back where R left zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._channel import Seen
from verlwatch.core.series._state import fields_of

ENOUGH = 7.5
CAP = 2.0
SPAN = 16.0
LEAST = 1.5  # of f
TOP = 6.0  # a square counts for no more times f


@dataclass(slots=True)
class Noise:
    """``variance`` and ``shock`` are the baseline's as they were, ``factor`` is f, ``steps`` those since it came up.

    ``votes`` is R and ``back`` the step at which it left zero.
    """

    variance: float
    shock: float
    factor: float
    steps: int = 0
    votes: float = 0.0
    back: int = 0

    @classmethod
    def begin(cls, baseline: Baseline, ratio: float) -> Self:
        """From now on the baseline's noise is ``ratio`` times as large."""
        noise = cls(baseline.variance, baseline.shock, max(LEAST, ratio * ratio))
        noise.apply(baseline)
        return noise

    def apply(self, baseline: Baseline) -> None:
        """Give the baseline the present noise."""
        baseline.spread(self.variance * self.factor, self.shock * self.factor)

    def end(self, baseline: Baseline) -> None:
        """Give the baseline the old noise back."""
        baseline.spread(self.variance, self.shock)

    def vote(self, seen: Seen, baseline: Baseline) -> bool:
        """Hear one step; True when the old noise has won."""
        self.steps += 1
        square, f = seen.innovation * seen.innovation / self.shock, self.factor
        if self.votes <= 0.0:
            self.back = seen.step
        vote = 0.5 * math.log(f) - 0.5 * square * (1.0 - 1.0 / f)
        self.votes = max(0.0, self.votes + max(-CAP, min(CAP, vote)))
        self.factor = max(LEAST, f + (min(square, TOP * f) - f) / SPAN)
        self.apply(baseline)
        return self.votes >= ENOUGH

    def state(self) -> dict[str, Any]:
        """Everything, exactly."""
        return fields_of(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Inverse of :meth:`state`."""
        return cls(**state)
