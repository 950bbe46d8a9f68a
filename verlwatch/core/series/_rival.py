"""The other level: while a change is open the old baseline stays a live hypothesis, and every step votes.

Idea.  A detector that restarts at the new level is blind for dozens of steps and then takes the return to normal for a
change.  Here nothing restarts: the old baseline waits, frozen, beside the rival level.  Each step speaks for the one it
lies nearer to; once the old one is clearly ahead the change is over, and the model never saw it.

Formula.  R = max(0, R + clip(rho (d^2 - 2 e d) / 2 sd^2, +-4)): the cumulated log likelihood ratio of the old baseline
to a shift of d, for a residual e from the old baseline, rho = (1 - phi) / (1 + phi) for the autocorrelation.  The
change has ended at R >= 7.5, which is two steps for any clear shift; it ended where R left zero.  A step that is near
neither of the two does not count for the old one.  A shift that fades away step by step ends when it is too small to
be told from none.

Reference: Page, Continuous Inspection Schemes, Biometrika 41 (1954).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._state import fields_of

ENOUGH = 7.5
CAP = 4.0  # no step counts for more
NEAR, NEAR_LEAST = 4.0, 0.05  # sd, and log units, within which a step is at the old baseline
FADED = 0.025  # a shift that has become so small, log units, is none any more
FIRM = 60  # steps after which the size of the shift follows slowly


@dataclass(slots=True)
class Rival:
    """A level ``size`` log units above the old baseline; ``lasting`` once it is more than a lone slow step.

    ``steps`` is the number of steps ``size`` stands on, ``quiet`` those since it came up.  ``votes`` is R, ``back`` the
    step at which it left zero, ``back_sum`` and ``back_steps`` sum up the residuals from the old baseline since.
    """

    size: float
    lasting: bool
    steps: int = 1
    quiet: int = 0
    votes: float = 0.0
    back: int = 0
    back_sum: float = 0.0
    back_steps: int = 0

    @property
    def offset(self) -> float:
        """Where residuals are taken from: a lone slow step has not moved the level."""
        return self.size if self.lasting else 0.0

    @property
    def back_at(self) -> float:
        """Mean residual from the old baseline since the votes for it began."""
        return self.back_sum / max(1, self.back_steps)

    def vote(self, step: int, residual: float, baseline: Baseline) -> bool:
        """Hear one step; ``residual`` is from the old baseline.  True when that baseline has won."""
        size, sd = self.size, baseline.sd
        beyond = residual if (residual > 0.0) == (size > 0.0) else 0.0
        rho = (1.0 - baseline.phi) / (1.0 + baseline.phi)
        vote = rho * (size * size - 2.0 * beyond * size) / (2.0 * sd * sd)
        if vote > 0.0 and abs(beyond) > max(NEAR * sd, NEAR_LEAST):
            return False
        if self.votes <= 0.0:
            self.back, self.back_sum, self.back_steps = step, 0.0, 0
        self.votes = max(0.0, self.votes + max(-CAP, min(CAP, vote)))
        self.back_sum += residual
        self.back_steps += 1
        return self.votes >= ENOUGH or (self.lasting and abs(size) < FADED)

    def follow(self, residual: float, sd: float) -> None:
        """Refine the size by one step's residual from it."""
        self.quiet += 1
        if self.lasting:
            self.steps += 1
            self.size += max(-2.0 * sd, min(2.0 * sd, residual)) / min(self.steps, FIRM)

    def state(self) -> dict[str, Any]:
        """Everything, exactly."""
        return fields_of(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Inverse of :meth:`state`."""
        return cls(**state)
