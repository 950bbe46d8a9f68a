"""How fast a series grows a step, how sure that is, and when it comes to a limit.

*Slope*: the median of the slopes between all pairs of values (Theil 1950; Sen 1968): a quarter of the values may be
anything.  *Interval*: Sen's: the slopes of rank (N ± C) / 2 of the N, with C = z·√Var S and Kendall's variance
Var S = n(n-1)(2n+5)/18 (Gilbert 1987, 16.4; Hollander & Wolfe 1999, 9.3), enlarged for values that carry over from
step to step by the factor of Hamed & Rao (1998, Journal of Hydrology 204, eq. 13 and 14) with rho^k for the
autocorrelation at lag k.  rho comes from the differences of neighbours, less those around them, which no trend and no
bend touches: their correlation is -(1 - rho)/2.  What wanders for good is not covered by that: the interval is never
narrower than that of the mean of n differences, each as large as m steps bring, over √m.

*Window*: how far back the same growth goes is not known.  From the shortest window to the longest, the last counts
whose slope lies in the intervals of all shorter ones (after the rule of intersecting intervals, Goldenshluger &
Nemirovski 1997, and stricter): a leak that has just begun is seen by a short window, one that goes on by a long one,
and where growth has ended the short windows say so.

*Two scales*: the last 60 steps, and the highest values of each ten steps, 30 times ten.  Memory that is taken and
given back time and again is a saw-tooth: each tooth grows, and says nothing.  So growth counts on new ground only,
where the values of today lie above all others; and the tops themselves are the second series, which tells a saw-tooth
that climbs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import floor, inf, sqrt
from statistics import median
from typing import Any, NamedTuple

from verlwatch.core.rules import Span

KEPT = 60
"""Values of the fine scale."""
BLOCK = 10
BLOCKS = 30
"""Steps of one value of the coarse scale, and how many of them."""
WINDOWS = (6, 9, 13, 20, 30, 45, 60)
SETTLING = 3
"""So many first steps of an attempt say nothing of the later ones."""
LONG = 60
REACH, LONG_REACH = 1.0, 2.0
"""Growth is carried on for so many times the steps in which it was seen, and for more where those are LONG."""
LENIENT = 2.0
"""What is told goes on being told while it reaches the limit within so many times that."""
Z = 1.645
"""Of an interval that covers nine of ten."""
CARRIED = 0.95
"""The most that is believed of the autocorrelation."""
DOUBT = 2.0
"""The last bound of the time may be so many times the middle."""
LATEST, LATEST_TOPS = 5, 3
"""So many last values of either scale, or a third of a window, are of today: two of them must lie on new ground."""
CLEAR = 1.0
"""By so many times the noise."""
AROUND = 4
"""Differences on either side that a difference is compared with."""
DIGITS = 6
"""Significant digits kept of a value: 1 in a million of the memory of a host is a megabyte or two."""
_FAR_OUT = 3.0
_MAD = 1.4826
_WANDERING = 1.2
"""The variance of the slope of a random walk is 6/5 of that of the mean of its steps."""

Point = tuple[int, float]


class Growth(NamedTuple):
    """What the last ``seen`` steps say: ``slope`` a step, the ``level`` of the last step, and since which step.

    ``swing`` is how far single values lie above the line at most, ``noise`` how far most do, ``before`` where it began.
    """

    slope: Span
    level: float
    swing: float
    noise: float
    seen: int
    since: int
    before: float


class Lead(NamedTuple):
    """Steps until a limit is reached by ``growth``; ``steps.high`` is infinite where it may never be."""

    growth: Growth
    steps: Span


def slope(points: Sequence[Point], rho: float = 0.0) -> Span | None:
    """Theil-Sen slope with Sen's interval; None where there are too few points for one."""
    n = len(points)
    slopes = sorted(
        (value - earlier) / (step - before)
        for i, (step, value) in enumerate(points)
        for before, earlier in points[:i]
        if step != before
    )
    count = len(slopes)
    spread = Z * sqrt(n * (n - 1) * (2 * n + 5) / 18 * _inflation(n, rho)) if count else 0.0
    lowest = floor((count - spread) / 2) - 1
    if n < 4 or lowest < 0:  # noqa: PLR2004 - with three points no interval covers nine of ten
        return None
    return Span(slopes[lowest], median(slopes), slopes[count - 1 - lowest])


def carried_over(values: Sequence[float]) -> float:
    """The autocorrelation of neighbours, from their differences, far-out ones cut."""
    raw = [after - before for before, after in pairwise(values)]
    steps = [one - median(raw[max(0, i - AROUND) : i + AROUND + 1]) for i, one in enumerate(raw)]
    most = _FAR_OUT * _spread(steps)
    cut = [min(max(step, -most), most) for step in steps]
    power = sum(one * one for one in cut)
    if power <= 0.0:
        return 0.0
    return min(max(1.0 + 2.0 * sum(a * b for a, b in pairwise(cut)) / power, 0.0), CARRIED)


def wandering(points: Sequence[Point], along: float) -> float:
    """Half the width of the interval of a slope ``along`` a series that wanders like these."""
    n = len(points)
    m = max(1, n // 4)
    steps = [
        (value - before - along * (step - earlier)) / sqrt(m)
        for (earlier, before), (step, value) in zip(points, points[m:], strict=False)
    ]
    return Z * _spread(steps) * sqrt(_WANDERING / n) * n / max(1, points[-1][0] - points[0][0])


def growth(points: Sequence[Point], *, least: float = -inf, now: int | None = None) -> Growth | None:
    """The growth of the longest last window in which it was the same.

    None for too few points, and where it is certainly no more than ``least``.  The level is that of the step ``now``,
    or of the last one.
    """
    rho = carried_over([value for _, value in points])
    bottom, top = -inf, inf
    known: tuple[Span, Sequence[Point]] | None = None
    for size in WINDOWS:
        window = points[-size:]
        found = slope(window, rho)
        if found is None:
            continue
        if not bottom <= found.mid <= top:
            break
        half = wandering(window, found.mid)
        found = Span(min(found.low, found.mid - half), found.mid, max(found.high, found.mid + half))
        bottom, top = max(bottom, found.low), min(top, found.high)
        if top <= least:
            return None
        known = found, window
        if len(window) < size:
            break
    return None if known is None else _as_of(points[-1][0] if now is None else now, _slowed(*known), known[1])


def _slowed(span: Span, window: Sequence[Point]) -> Span:
    """What slows down is carried on at the pace of the later half."""
    later = slope(window[len(window) // 2 :])
    return span if later is None else span._replace(mid=max(span.low, min(span.mid, later.mid)))


def _ends_before(limit: float, found: Growth, points: Sequence[Point]) -> bool:
    """Whether growth that went on slowing down as it does would end below ``limit``: a geometric series of halves."""
    window = [point for point in points if point[0] >= found.since]
    middle = len(window) // 2
    first, later = slope(window[: middle + 1]), slope(window[middle:])
    if first is None or later is None or not first.mid > later.mid:
        return False
    kept = later.mid / first.mid
    return found.level + later.mid * found.seen / 2 * kept / (1 - kept) < limit


def _as_of(now: int, span: Span, window: Sequence[Point]) -> Growth:
    rests = [value + span.mid * (now - step) for step, value in window]
    later = rests[len(rests) // 2 :]
    level = median(rests[-LATEST:])
    seen = window[-1][0] - window[0][0]
    return Growth(
        slope=span,
        level=level,
        swing=max(0.0, max(later) - level),
        noise=_spread([rest - level for rest in rests]),
        seen=seen,
        since=window[0][0],
        before=median([value for _, value in window[:LATEST_TOPS]]),
    )


class Trend:
    """The last values of one series, on both scales."""

    def __init__(self) -> None:
        self.points: deque[Point] = deque(maxlen=KEPT)
        self.tops: deque[Point] = deque(maxlen=BLOCKS)
        """Last step and highest value of each block of steps; the last block may not be full."""
        self._skipped = 0

    def add(self, step: int, value: float) -> None:
        """Takes the value of a step; one that is not later than the last is left out."""
        if self.points and step <= self.points[-1][0]:
            return
        if self._skipped < SETTLING:
            self._skipped += 1
            return
        value = float(f"{value:.{DIGITS}g}")
        self.points.append((step, value))
        if self.tops and self.tops[-1][0] // BLOCK == step // BLOCK:
            value = max(value, self.tops.pop()[1])
        self.tops.append((step, value))

    def lead(self, limit: float, *, told: bool = False) -> Lead | None:
        """Steps to ``limit``, where it lies within reach; None where the series does not get there as far as is known.

        The nearer of both scales counts.  What is ``told`` already needs less to go on.
        """
        if len(self.points) < WINDOWS[0]:
            return None
        full = self.points[-1][0] % BLOCK == BLOCK - 1
        tops = list(self.tops)[: None if full else -1]
        first, now = self.points[0][0], self.points[-1][0]
        earlier = max((top for step, top in tops if step < first), default=-inf)
        if told:
            found = tuple(_goes_on(points, limit, now) for points in (list(self.points), tops))
        else:
            found = (_begins(list(self.points), LATEST, limit, now, earlier), _begins(tops, LATEST_TOPS, limit, now))
        return min((lead for lead in found if lead), key=lambda lead: lead.steps.mid, default=None)

    def state(self) -> dict[str, Any]:
        """JSON-safe; steps as differences."""
        return {"points": _packed(self.points), "tops": _packed(self.tops), "skipped": self._skipped}

    @classmethod
    def from_state(cls, data: Mapping[str, Any]) -> Trend:
        """The inverse of `state`."""
        self = cls()
        self.points.extend(_unpacked(data["points"]))
        self.tops.extend(_unpacked(data["tops"]))
        self._skipped = data["skipped"]
        return self


def _begins(points: Sequence[Point], latest: int, limit: float, now: int, earlier: float = -inf) -> Lead | None:
    """As far as one scale tells; ``earlier`` is the top before it."""
    values = [value for _, value in points]
    if len(points) < WINDOWS[0] or max(values[-latest:]) <= max(earlier, *values[:-latest]):
        return None
    age = points[-1][0] - points[0][0]
    found = growth(points, least=max(0.0, (limit - max(values)) / (LONG_REACH * age)), now=now)
    if found is None or found.slope.low <= 0.0:
        return None
    recent = max(latest, round(len(points) * found.seen / age / 3))
    if sorted(values[-recent:])[-2] <= max(earlier, *values[:-recent]) + CLEAR * found.noise:
        return None
    steps = time_to(found, limit)
    if steps.mid > _reach(found) or steps.high > DOUBT * steps.mid or _ends_before(limit, found, points):
        return None
    return Lead(found, steps)


def _goes_on(points: Sequence[Point], limit: float, now: int) -> Lead | None:
    found = growth(points, now=now) if len(points) >= WINDOWS[0] else None
    if found is None or found.slope.low <= 0.0:
        return None
    steps = time_to(found, limit)
    return Lead(found, steps) if steps.mid <= LENIENT * _reach(found) else None


def _reach(found: Growth) -> float:
    """Steps for which growth is carried on."""
    return found.seen * (LONG_REACH if found.seen >= LONG else REACH)


def time_to(found: Growth, limit: float) -> Span:
    """Steps until the line, or at the earliest a single value above it, is at the limit."""
    room = limit - found.level
    return Span(
        max(0.0, room - found.swing) / found.slope.high,
        max(0.0, room) / found.slope.mid,
        max(0.0, room) / found.slope.low if found.slope.low > 0.0 else inf,
    )


def _inflation(n: int, rho: float) -> float:
    """How much larger the variance of Kendall's S is for values of which a share rho carries over."""
    if rho <= 0.0 or n < 4:  # noqa: PLR2004 - the formula's sum is empty
        return 1.0
    total = sum((n - k) * (n - k - 1) * (n - k - 2) * rho**k for k in range(1, n - 2))
    return 1.0 + 2.0 * total / (n * (n - 1) * (n - 2))


def _spread(values: Sequence[float]) -> float:
    """Robust standard deviation around zero."""
    return _MAD * median([abs(value) for value in values]) if values else 0.0


def _packed(points: Sequence[Point]) -> list[list[float]]:
    steps = [step for step, _ in points]
    return [
        [after - before for before, after in zip([0, *steps], steps, strict=False)],
        [value for _, value in points],
    ]


def _unpacked(data: Sequence[Sequence[float]]) -> list[Point]:
    points, step = [], 0
    for more, value in zip(*data, strict=True):
        step += int(more)
        points.append((step, value))
    return points
