"""What a detection channel is: it is shown every step of one series, whitened, and now and then raises an alarm.

A channel knows nothing of incidents, of the old level or of what was told: :mod:`._watch` composes channels into
change points.  Adding one is a file with a class of this shape, and a line in ``DETECTORS``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self

if TYPE_CHECKING:
    from verlwatch.core.series._baseline import Baseline

CAUTION = 14.0
Kind = Literal["spike", "level", "dispersion", "drift"]


class Seen(NamedTuple):
    """One step as the baseline sees it; logarithms are natural, and larger is worse.

    ``y`` is the log value, ``tokens`` and ``longest`` the step's work relative to the usual work, minus 1.
    ``residual`` is what neither the work nor the level that now holds explains, ``innovation`` what the step before
    does not explain either (both in log units), ``score`` the innovation in its own standard deviations.
    """

    step: int
    y: float
    tokens: float
    longest: float
    residual: float
    innovation: float
    score: float


class Alarm(NamedTuple):
    """A channel's word: ``size`` log units above the level that held, since ``onset``, ``steps`` ago (1: the last)."""

    kind: Kind
    onset: int
    size: float
    steps: int


def caution(rate: float, learned: int) -> float:
    """How many times the evidence counts as enough for false alarms rarer than 1e-4 while few steps are learned.

    The rarer the alarm, the more it hangs on variances of which little is known yet: a threshold for a sum whose
    variance stands on n steps grows by about h / n, as Student's t does.
    """
    return 1.0 + CAUTION * max(0.0, math.log(1e-4 / rate)) / (learned + 12)


class Detector(Protocol):
    """A channel; ``rate`` is the number of false alarms per step asked of the series, all its channels together.

    ``FALSE_ALARMS`` is what it raises, measured, for one asked for, on well-behaved series (plain AR(1) noise).
    ``DELAY`` is (ratio, steps): a change by this ratio is told within so many steps, the first changed one counted,
    in a series whose noise is 2 %.
    """

    KIND: ClassVar[Kind]
    FALSE_ALARMS: ClassVar[float]
    DELAY: ClassVar[tuple[float, int]]

    rate: float

    def __init__(self, rate: float) -> None: ...

    @property
    def suspects(self) -> bool:
        """Whether evidence is building up: then nothing is learned from the latest steps."""

    def update(self, seen: Seen, baseline: Baseline) -> Alarm | None:
        """Judge one step."""

    def learn(self, seen: Seen, age: int, baseline: Baseline) -> None:
        """Learn from a step that nothing was wrong with; ``age`` steps were judged since."""

    def rebase(self) -> None:
        """Drop the evidence gathered: from the next step on residuals are taken from another level."""

    def state(self) -> dict[str, Any]:
        """Everything, JSON-safe and exact."""

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Inverse of :meth:`state`."""
