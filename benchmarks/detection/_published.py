"""Published tests for a rise in standardised values, each with one limit; three of them wrap those of river."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from importlib import import_module
from statistics import fmean, median
from typing import Any, NamedTuple, Protocol

drift: Any = import_module("river.drift")  # it carries no types
REFERENCE = 50
MAD = 1.4826  # a Gaussian's standard deviation over its median absolute deviation


class Test(Protocol):
    """A detector of rises in standardised values."""

    def update(self, x: float) -> int:
        """0, or with an alarm how many steps ago the rise began (1: with this one)."""


class RollingZ:
    """A step above the median of the last 50 by ``limit`` times their MAD; a stretch of them is told once."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.past: deque[float] = deque(maxlen=REFERENCE)
        self.above = False

    def update(self, x: float) -> int:
        """See `Test`."""
        before, self.above = self.above, False
        if len(self.past) == REFERENCE:
            middle = median(self.past)
            self.above = x - middle > self.limit * MAD * median(abs(y - middle) for y in self.past)
        self.past.append(x)
        return int(self.above and not before)


class Ewma:
    """Exponentially weighted mean (Roberts 1959), weight 0.1, in its own standard deviations."""

    WEIGHT = 0.1

    def __init__(self, limit: float) -> None:
        self.limit = limit * math.sqrt(self.WEIGHT / (2.0 - self.WEIGHT))
        self.mean = 0.0

    def update(self, x: float) -> int:
        """See `Test`."""
        self.mean += self.WEIGHT * (x - self.mean)
        return int(self.mean > self.limit)


class Cusum:
    """Page's cumulative sum (1954), allowance half a standard deviation."""

    ALLOWANCE = 0.5

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.sum = 0.0
        self.steps = 0

    def update(self, x: float) -> int:
        """See `Test`."""
        self.sum = max(0.0, self.sum + x - self.ALLOWANCE)
        self.steps = self.steps + 1 if self.sum else 0
        return self.steps if self.sum > self.limit else 0


class PageHinkley:
    """river's, upwards, with the allowance of `Cusum`; unlike it, measured from the mean of what it has seen."""

    def __init__(self, limit: float) -> None:
        self.test = drift.PageHinkley(min_instances=10, delta=0.5, threshold=limit, alpha=1.0, mode="up")

    def update(self, x: float) -> int:
        """See `Test`."""
        self.test.update(x)
        return int(self.test.drift_detected)


class Adwin:
    """river's, asked at every step; ``limit`` is -log10 of its delta."""

    def __init__(self, limit: float) -> None:
        self.test = drift.ADWIN(delta=10.0**-limit, clock=1, grace_period=10)

    def update(self, x: float) -> int:
        """See `Test`."""
        before = self.test.estimation
        self.test.update(x)
        return int(self.test.width) if self.test.drift_detected and self.test.estimation > before else 0


class Kswin:
    """river's, its sample drawn with a fixed seed; ``limit`` is -log10 of its alpha."""

    RECENT = 20

    def __init__(self, limit: float) -> None:
        self.test = drift.KSWIN(alpha=10.0**-limit, window_size=100, stat_size=self.RECENT, seed=1)
        self.past: deque[float] = deque(maxlen=100)

    def update(self, x: float) -> int:
        """See `Test`."""
        self.past.append(x)
        self.test.update(x)
        if not self.test.drift_detected:
            return 0
        seen = list(self.past)
        recent, older = seen[-self.RECENT :], seen[: -self.RECENT]
        return len(recent) if older and fmean(recent) > fmean(older) else 0


class Kind(NamedTuple):
    """A test: how it is made from its limit, between which limits it is sought, and how it behaves.

    ``sums`` says that it accumulates and so begins anew after an alarm.
    """

    make: Callable[[float], Test]
    least: float
    most: float
    sums: bool = True


TESTS: Mapping[str, Kind] = {
    "rolling z": Kind(RollingZ, 2.0, 30.0, sums=False),
    "ewma": Kind(Ewma, 1.0, 80.0),
    "cusum": Kind(Cusum, 2.0, 20_000.0),
    "page-hinkley": Kind(PageHinkley, 2.0, 20_000.0),
    "adwin": Kind(Adwin, 0.3, 150.0),
    "kswin": Kind(Kswin, 1.0, 16.0),
}
