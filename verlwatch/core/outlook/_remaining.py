"""How long the steps that are left will take.

A step takes the median of the last ones, and more by its drift (`_forecast`) as far as that may be carried on; what
comes only now and then, validation and checkpoints, is shared out over the steps of the attempt; and what lies between
two step lines, as data loading, is what the clock shows beyond the printed seconds.  The interval is that of the
median, by ranks (n ± z·√n) / 2 of the binomial distribution (Conover 1999, 3.2), and that of the drift.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil, floor, sqrt
from statistics import median
from typing import Any

from verlwatch.core.outlook._forecast import DOUBT, LONG_REACH, growth
from verlwatch.core.phases import STEP
from verlwatch.core.rules import Span

KEPT = 60
"""So many last steps say how long one takes."""
Z = 2.58
"""Of an interval that covers 99 of 100: it is asked again with each step."""
EVERY = 5
"""Steps after which the drift is reckoned anew."""
LEAST = 10
"""Steps without which nothing is said."""
APART = ("testing", "save_checkpoint")
LONGEST_GAP_S = 3600.0


class Remaining:
    """Seconds of the last steps of one attempt."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, float]] = deque(maxlen=KEPT)
        self._gaps: deque[float] = deque(maxlen=KEPT)
        self._apart_s = 0.0
        self._first = self._last = -1
        self._at = 0.0
        self._drift = Span(0.0, 0.0, 0.0)
        self._unreckoned: list[tuple[int, float]] | None = None

    def add(self, step: int, seconds: Mapping[str, float], now: float, *, live: bool) -> None:
        """Takes a step: its seconds by phase, STEP without validation and checkpoint; ``live``: it has just ended."""
        if STEP not in seconds or not seconds[STEP] > 0.0 or step <= self._last:
            return
        apart = sum(max(0.0, seconds.get(name, 0.0)) for name in APART)
        gap = now - self._at - seconds[STEP] - apart
        if live and self._at and step == self._last + 1:
            self._gaps.append(round(min(max(gap, 0.0), LONGEST_GAP_S), 1))
        self._at = now if live else 0.0
        self._first = step if self._first < 0 else self._first
        self._last = step
        self._apart_s += apart
        self._steps.append((step, round(seconds[STEP], 3)))
        if step % EVERY == 0:
            self._unreckoned = list(self._steps)

    @property
    def step_s(self) -> float:
        """Seconds from one step to the next in the long run; 0 where not known."""
        return self._span().mid + self._beside() if self._steps else 0.0

    @property
    def known(self) -> bool:
        """Whether there are steps enough."""
        return len(self._steps) >= LEAST

    @property
    def drift_s(self) -> float:
        """Seconds that a step takes more than the one before; 0 where that may be chance."""
        return self._reckoned().mid

    def _reckoned(self) -> Span:
        """The drift; only when it is asked for, which in a run without a deadline nobody does."""
        if self._unreckoned is not None:
            self._drift, self._unreckoned = _drift(self._unreckoned), None
        return self._drift

    def seconds(self, steps: int) -> Span:
        """What so many more steps take."""
        beside = self._beside()
        return Span(*(self._takes(steps, which, beside) for which in range(3)))

    def reach(self, seconds: float, most: int) -> Span:
        """How many more steps will have been made by then, ``most`` at most."""
        beside = self._beside()
        return Span(*(float(self._within(seconds, most, which, beside)) for which in (2, 1, 0)))

    def _within(self, seconds: float, most: int, which: int, beside: float) -> int:
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if self._takes(middle, which, beside) <= seconds:
                low = middle
            else:
                high = middle - 1
        return low

    def _takes(self, steps: int, which: int, beside: float) -> float:
        """Of the bounds one, for what the last steps took in their middle, and what they slide."""
        sliding = min(steps, floor(LONG_REACH * len(self._steps)))
        slid = sliding * (sliding + 1) / 2 + (steps - sliding) * sliding + steps * len(self._steps) / 2
        return max(0.0, steps * (self._span()[which] + beside) + slid * self._reckoned()[which])

    def _span(self) -> Span:
        values = sorted(seconds for _, seconds in self._steps)
        n = len(values)
        half = Z * sqrt(n) / 2
        return Span(values[max(0, floor(n / 2 - half))], median(values), values[min(n - 1, ceil(n / 2 + half))])

    def _beside(self) -> float:
        return self._apart_s / (self._last - self._first + 1) + (median(self._gaps) if self._gaps else 0.0)

    def state(self) -> dict[str, Any]:
        """JSON-safe."""
        return {
            "steps": [list(one) for one in self._steps],
            "gaps": list(self._gaps),
            "apart_s": self._apart_s,
            "first": self._first,
            "last": self._last,
            "at": self._at,
            "drift": list(self._reckoned()),
        }

    @classmethod
    def from_state(cls, data: Mapping[str, Any]) -> Remaining:
        """The inverse of `state`."""
        self = cls()
        self._steps.extend((step, seconds) for step, seconds in data["steps"])
        self._gaps.extend(data["gaps"])
        self._apart_s, self._first, self._last = data["apart_s"], data["first"], data["last"]
        self._at = data["at"]
        self._drift = Span(*data["drift"])
        return self


def _drift(steps: list[tuple[int, float]]) -> Span:
    """Nothing where it may be chance."""
    found = growth(steps)
    if found is None or min(abs(found.slope.low), abs(found.slope.high)) * DOUBT < abs(found.slope.mid):
        return Span(0.0, 0.0, 0.0)
    return found.slope if found.slope.low * found.slope.high > 0.0 else Span(0.0, 0.0, 0.0)
