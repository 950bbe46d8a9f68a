"""Numbers that training itself moves: what a series is shown of them, and what its words mean in their units.

Idea.  Entropy falls, rewards rise and responses grow over a whole run, and none of that is a fault; a collapse is what
goes much faster.  So each such metric has a course, which follows it, but for the worse no faster than the metric's
pace, and the series (`core.series`) sees how far the metric is off its course.  A slow slide is off it by a constant,
which is the series' baseline; a collapse runs away from it, and is a level or a drift as it would be in a phase.

Formulas, with f = asinh(x / zero) (`core.metrics.Motion`), larger worse (else -f):
    the series sees   exp(f - c), above zero and about 1: its logarithm, in which series reckon, is f - c
    the mean          m += (f - m) / SPAN, and its deviation v += (|f - m| - v) / (4 SPAN)
    the course        c += clip(m - c, -pace, pace), and by -MOST at the most where m < c - v: for the better it
                      follows, and within the noise it leans to neither side
    back again        x = zero sinh(c + log(y)), of what a series expects or has found, y
So a series' ratios are those of x from a few times zero on.

A change that is large enough to be told holds the course where it is: what it collapsed to must not become what is
expected.  Smaller ones do not, lest a slide that goes on makes them large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from math import asinh, exp, log, sinh
from typing import Any

from verlwatch.core.metrics import MEASURES, Motion
from verlwatch.core.types import ChangePoint

SPAN = 8
MOST = 0.05
"""So far, in f, one step takes a course for the better."""
FARTHEST = 20.0
"""A metric is off its course by no more than this, in f: numbers stay numbers."""


@dataclass(slots=True)
class Course:
    """Where training has brought a metric: ``at`` is c, ``mean`` m, ``noise`` v, ``steps`` how many it has seen."""

    at: float
    mean: float
    noise: float = 0.0
    steps: int = 0
    held: bool = False

    def follow(self, f: float, pace: float) -> None:
        """Takes a step along, larger worse."""
        self.steps += 1
        off = f - self.mean
        self.mean += off / min(self.steps, SPAN)
        self.noise += (abs(off) - self.noise) / min(self.steps, 4 * SPAN)
        gap = self.mean - self.at
        if self.steps <= SPAN:
            self.at = self.mean
        elif gap < -self.noise:
            self.at += max(gap, -MOST)
        else:
            self.at += max(-pace, min(pace, gap))


class Courses:
    """The courses of one run's metrics, by name; a metric without one is shown as it is."""

    def __init__(self) -> None:
        self._of: dict[str, Course] = {}

    def shown(self, metric: str, value: float) -> float:
        """What the series of the metric is shown of this value."""
        motion = _motion(metric)
        if motion is None:
            return value
        f = _sign(metric) * asinh(value / motion.zero)
        course = self._of.get(metric) or self._of.setdefault(metric, Course(f, f))
        return exp(max(-FARTHEST, min(FARTHEST, f - course.at)))

    def meant(self, metric: str, shown: float) -> float:
        """The value of the metric that is shown so."""
        motion = _motion(metric)
        if motion is None or metric not in self._of:
            return shown
        return motion.zero * sinh(_sign(metric) * (self._of[metric].at + log(shown)))

    def change(self, metric: str, point: ChangePoint) -> ChangePoint:
        """A change as a series found it, in the unit of the metric; its effect is the ratio on the scale."""
        if _motion(metric) is None:
            return point
        return point._replace(
            effect=point.effect ** _sign(metric),
            before=self.meant(metric, point.before),
            after=self.meant(metric, point.after),
        )

    def follow(self, metric: str, value: float, change: ChangePoint | None) -> None:
        """Takes a step along; ``change`` is the series' open one."""
        course, motion = self._of.get(metric), _motion(metric)
        if course is None or motion is None:
            return
        course.held = change is not None and (course.held or MEASURES[metric].counts(self.change(metric, change)))
        if not course.held:
            course.follow(_sign(metric) * asinh(value / motion.zero), motion.pace)

    def is_held(self, metric: str) -> bool:
        """Whether a large change holds the course."""
        return metric in self._of and self._of[metric].held

    def forget(self, metric: str) -> None:
        """Begins anew with the next value."""
        self._of.pop(metric, None)

    def clear(self) -> None:
        """Forgets every course."""
        self._of.clear()

    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `restore`."""
        return {metric: list(astuple(course)) for metric, course in self._of.items()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes up where `state` left off."""
        self._of = {metric: Course(*row) for metric, row in data.items()}


def _motion(metric: str) -> Motion | None:
    measure = MEASURES.get(metric)
    return None if measure is None else measure.motion


def _sign(metric: str) -> float:
    return 1.0 if MEASURES[metric].worse == "up" else -1.0
