"""One card's offset from its group, judged against what that offset was before.

A colocated card swings by tens of GB each step, seconds before or after its peers: at one instant it may be in another
phase than they are.  So no single difference counts:

* **A window's offset** compares order statistics.  The card's values of a few instants and those of the group's median
  at the same instants are sorted, each by itself, and the offset is the median of the differences between the two rows.
  A card that changes phase late, and so was high when the others were low and the other way round, has the same row;
  one that stayed high for one instant more differs in one place of it.
* **A value that the group itself held** a moment before (within TOLERANCE) may be that of a card in another phase.
  Where most of a window's values are, the window says nothing, unless the windows after it go on saying the same.

Offsets of windows are the points.  The base is what they were before, learned LAG points late.  A change opens when the
last instants (`SOON`) are all too far from the base, when two points are, or when the points climb along a line whose
slope is known well: a leak is told before it is large.  It closes when two points are back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import median
from typing import Any, NamedTuple

SOON = 3
"""So many instants tell a gross difference."""
LAG = 4
TRAIL = 24
_POINTS = 8
_SETTLED = 3
_BASE_STEPS = 20.0
_LEAST_SD, _FIRST_SD = 0.08, 0.3
_NOISES = 6.0
_CLIMB_GB = 2.0
"""A leak is told from here on, and not before it is so many noises large."""
_SURE, _SURE_OF_THREE = 7.0, 14.0
"""How many standard errors a slope is away from none; one of three points that is to open a change."""
_STILL = 0.4
"""What has this part of its slope over the last points goes on."""
TOLERANCE_GB = 1.0
_SAME, _SAME_SHARE = 0.25, 0.1
_BACK = 2


class Pair(NamedTuple):
    """What a card held at one instant, and its peers; ``x`` is the instant (seconds, or rows of a log)."""

    x: float
    step: int
    value: float
    peers: float


class Point(NamedTuple):
    """The offset over one window, at its middle."""

    x: float
    step: int
    offset: float


class Slope(NamedTuple):
    """GB for each unit of x, and where the line leaves the base."""

    gb: float
    onset_x: float
    onset_step: int


class Change(NamedTuple):
    """An offset other than before: since ``onset`` (a step), ``before`` None where nothing was known."""

    onset: int
    before: float | None


class Offset:
    """The offset of one card.  ``exact`` cards are compared within one line or stage, where no phases mix."""

    __slots__ = ("_fresh", "_held", "_unseen", "base", "change", "exact", "known", "points", "sd", "trail")

    def __init__(self, *, exact: bool = False) -> None:
        self.exact = exact
        self.trail: deque[Pair] = deque(maxlen=TRAIL)
        self.points: deque[Point] = deque(maxlen=_POINTS)
        self.base: float | None = None
        self.known = 0
        self.sd = _FIRST_SD
        self.change: Change | None = None
        self._unseen = 0
        self._fresh = 0
        self._held: list[float] = []

    # ------------------------------------------------------------------------------------------------ instants
    def see(self, pair: Pair) -> None:
        """Takes one instant."""
        self.trail.append(pair)
        self._unseen += 1

    def soon(self, limit: float, instants: int = SOON) -> Change | None:
        """The change that the last instants alone tell; None while they are as before, or may be another phase."""
        if self.change is not None or len(self.trail) < instants:
            return None
        last = list(self.trail)[-instants:]
        base, offset = self.base or 0.0, sorted_offset(last)
        if abs(offset - base) < max(limit, _NOISES * self.noise):
            return None
        if not self.exact:
            near = TOLERANCE_GB + _SAME_SHARE * abs(offset)
            agreeing = sum(abs(pair.value - pair.peers - offset) <= near for pair in last)
            if 2 * agreeing <= instants or 2 * self._explained(last, base) > instants - 1:
                return None
        line = self.slope()
        if line is not None and self.base is not None:
            return Change(line.onset_step, self.base)
        onset = next(pair.step for pair in last if abs(pair.value - pair.peers - base) >= 0.5 * abs(offset - base))
        return Change(onset, self.base)

    def lately(self, instants: int = SOON) -> float:
        """The offset over the last instants; 0 before there are any."""
        return sorted_offset(list(self.trail)[-instants:]) if self.trail else 0.0

    def window(self, least: int) -> bool:
        """Whether enough instants came since the last point for another."""
        return self._unseen >= least

    @property
    def noise(self) -> float:
        """Standard deviation of the points; a careful one while few are known."""
        return max(self.sd, _LEAST_SD if self.known > 2 * _SETTLED else _FIRST_SD)

    @property
    def now(self) -> float | None:
        """The offset as it is: over the last window, or the instants that told a change since; None before that."""
        if self.points and not self._fresh:
            return self.points[-1].offset
        return self.lately(self._fresh or SOON) if len(self.trail) >= (self._fresh or SOON) else None

    # ------------------------------------------------------------------------------------------------ points
    def close(self, limit: float) -> Change | None:
        """Ends a window: its point, and the change that the points tell, if there is a new one."""
        last = list(self.trail)[-self._unseen :]
        self._unseen = 0
        if not last:
            return None
        offset = sorted_offset(last)
        base = self.base or 0.0
        if not self.exact and self._may_be_phases(last, offset, base):
            return None
        self.points.append(self._point(last, offset))
        self._fresh = 0
        if self.change is not None:
            self._date(self.change)
            self._end(limit)
            return None
        found = self._told(limit)
        if found is None:
            self._learn()
        return found

    def open(self, change: Change, instants: int = 0) -> None:
        """Takes a change for one, until the points are back; ``instants``: so many told it, and no point yet."""
        self.change = change
        self._fresh = instants

    def slope(self, *, opens: bool = False) -> Slope | None:
        """The line along which the last points climb, or sink; None where they do not, or not surely.

        One that ``opens`` a change must be surer where it has but three points.
        """
        base = self.base or 0.0
        run = self._run(base)
        if len(run) < SOON:
            return None
        xs, ys = [point.x for point in run], [point.offset for point in run]
        x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
        spread = sum((x - x0) ** 2 for x in xs)
        if spread <= 0.0:
            return None
        gb = sum((x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True)) / spread
        rest = sum((y - y0 - gb * (x - x0)) ** 2 for x, y in zip(xs, ys, strict=True)) / max(1, len(xs) - 2)
        error = max(self.noise, sqrt(rest)) / sqrt(spread)
        lately = (run[-1].offset - run[-SOON].offset) / (run[-1].x - run[-SOON].x or 1.0)
        if lately / (gb or 1.0) < _STILL:  # it has stopped
            return None
        if abs(gb) < (_SURE_OF_THREE if opens and len(run) == SOON else _SURE) * error:
            return None
        onset_x = x0 - (y0 - base) / gb
        return Slope(gb, onset_x, self._step_at(onset_x, run[0]))

    def forget(self) -> None:
        """Begins anew."""
        self.__init__(exact=self.exact)  # type: ignore[misc]

    def settle(self) -> None:
        """Takes the offset as it is now for the normal one."""
        if self.points:
            self.base = median(point.offset for point in self.points)
        self.change = None
        self.points.clear()

    # ------------------------------------------------------------------------------------------------ inside
    def _point(self, last: Sequence[Pair], offset: float) -> Point:
        """The mean of the instants at which nobody was in another phase, where they are most."""
        near = max(TOLERANCE_GB, _NOISES * self.sd)
        same = [pair for pair in last if abs(pair.value - pair.peers - offset) <= near]
        if 2 * len(same) < len(last):
            same = list(last)
        else:
            offset = sum(pair.value - pair.peers for pair in same) / len(same)
        return Point(sum(pair.x for pair in same) / len(same), same[len(same) // 2].step, offset)

    def _told(self, limit: float) -> Change | None:
        base, points = self.base, self.points
        if base is None:
            return None
        most = max(limit, _NOISES * self.noise)
        if len(points) >= 2 and all(abs(p.offset - base) >= most for p in list(points)[-2:]):  # noqa: PLR2004
            return Change(points[-2].step, base)
        if abs(points[-1].offset - base) < max(_CLIMB_GB, _NOISES * self.noise):
            return None
        line = self.slope(opens=True)
        return None if line is None else Change(line.onset_step, base)

    def _run(self, base: float) -> list[Point]:
        """The last points that go one way, but for their noise, without those that still are at the base."""
        points = list(self.points)
        if len(points) < SOON:
            return []
        away = points[-1].offset - base
        least = max(3.0 * self.noise, 0.1 * abs(away))
        sign = 1.0 if points[-1].offset >= points[-SOON].offset else -1.0
        run = points[-1:]
        for point in reversed(points[:-1]):
            rise = sign * (run[-1].offset - point.offset)
            if rise < -self.noise or abs(point.offset - base) <= least:
                break
            run.append(point)
        run.reverse()
        return run

    def _step_at(self, x: float, first: Point) -> int:
        """The first step behind ``x``, and behind the last point that was at the base."""
        before = [point for point in self.points if point.x < first.x]
        least = before[-1].step + 1 if before else first.step - 1
        after = [pair.step for pair in self.trail if pair.x >= x]
        found = min(after) if after and self.trail[0].x <= x else first.step
        return min(max(found, least), first.step)

    def _date(self, change: Change) -> None:
        """Moves the onset back to where the line leaves the base, while points before it are known."""
        line = self.slope() if change.before is not None else None
        if line is not None and line.onset_step < change.onset and len(self._run(self.base or 0.0)) < len(self.points):
            self.change = change._replace(onset=line.onset_step)

    def _end(self, limit: float) -> None:
        change = self.change
        base = (change.before if change is not None else None) or 0.0
        near = max(0.7, 0.4 * limit, 3.0 * self.noise) if change is None or change.before is not None else 0.6 * limit
        last = list(self.points)[-_BACK:]
        if len(last) == _BACK and all(abs(point.offset - base) <= near for point in last):
            self.change = None
            self.points.clear()
            self._held = []

    def _learn(self) -> None:
        """The base learns a point LAG later; the first few are the base."""
        points = list(self.points)
        if self.base is None:
            if len(points) >= _SETTLED:
                self.base = median(point.offset for point in points)
                self.known = len(points)
            return
        if len(points) <= LAG:
            return
        old = points[-1 - LAG].offset
        self.known += 1
        weight = 1.0 / min(self.known, _BASE_STEPS)
        step = max(-3.0 * self.noise, min(3.0 * self.noise, old - self.base))
        self.base += weight * step
        self.sd += weight * (1.25 * min(abs(old - self.base), 4.0 * self.noise) - self.sd)

    def _may_be_phases(self, last: Sequence[Pair], offset: float, base: float) -> bool:
        """Whether a window may only show a card in another phase; one that goes on so is believed."""
        if abs(offset - base) < 1.5 * TOLERANCE_GB or 2 * self._explained(last, base) <= len(last):
            self._held = []
            return False
        if self._held and abs(offset - self._held[-1]) > _SAME * abs(offset):
            self._held = []
        self._held.append(offset)
        return len(self._held) <= 2 * SOON

    def _explained(self, last: Iterable[Pair], base: float) -> int:
        """How many values the group itself held lately, while it holds others now."""
        levels = [pair.peers for pair in self.trail]
        near = max(TOLERANCE_GB, _NOISES * self.sd)
        return sum(
            any(abs(pair.value - base - level) <= near < abs(level - pair.peers) for level in levels) for pair in last
        )

    # ------------------------------------------------------------------------------------------------ state
    def state(self) -> list[Any]:
        """JSON-safe and short; what is in the windows comes again within minutes."""
        change = None if self.change is None else [self.change.onset, _short(self.change.before)]
        points = [[round(p.x, 1), p.step, _short(p.offset)] for p in list(self.points)[-LAG:]]
        return [_short(self.base), self.known, _short(self.sd), change, points]

    def restore(self, data: Sequence[Any]) -> None:
        """The inverse of `state`."""
        self.base, self.known, self.sd, change, points = data
        self.change = None if change is None else Change(change[0], change[1])
        self.points.extend(Point(*point) for point in points)


def sorted_offset(pairs: Iterable[Pair]) -> float:
    """The median difference between what a card held and what its peers did, each sorted by itself.

    Of two in the middle it is the smaller one: between two phases there is no mean.
    """
    rows = list(pairs)
    mine, theirs = sorted(row.value for row in rows), sorted(row.peers for row in rows)
    apart = sorted(a - b for a, b in zip(mine, theirs, strict=True))
    return min(apart[(len(apart) - 1) // 2], apart[len(apart) // 2], key=abs)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
