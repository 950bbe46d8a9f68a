"""What is drawn in a chart, as paths; and how many steps become few points without losing an extreme.

Above ``BUCKETS`` steps, those next to one another share a bucket.  A line keeps the least and the greatest value of
each bucket in their order (so does M4, Jugel et al., VLDB 2014, which adds the first and the last); a stack keeps the
mean of each phase, so that its areas are the time that was spent, with the greatest total as a line above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import isfinite, nan

from verlwatch.report._svg import ACROSS, Axis

BUCKETS = 400


def buckets(count: int, most: int = BUCKETS) -> list[range]:
    """Rows next to one another, as even as can be, in at most ``most`` parts."""
    parts = min(count, most)
    return [range(i * count // parts, (i + 1) * count // parts) for i in range(parts)]


def extremes(values: Sequence[float], parts: Sequence[range]) -> list[int]:
    """Rows of the least and the greatest value of each part; a part that knows none keeps one row, a gap."""
    kept: list[int] = []
    for part in parts:
        known = [row for row in part if isfinite(values[row])]
        if not known:
            kept.append(part.start)
            continue
        low, high = min(known, key=values.__getitem__), max(known, key=values.__getitem__)
        kept.extend(sorted({low, high}))
    return kept


def means(values: Sequence[float], parts: Sequence[range]) -> list[float]:
    """The mean of what each part knows, nan where that is nothing."""
    return [_mean([values[row] for row in part if isfinite(values[row])]) for part in parts]


def greatest(values: Sequence[float], parts: Sequence[range]) -> list[float]:
    """The greatest that each part knows, nan where that is nothing."""
    return [max((values[row] for row in part if isfinite(values[row])), default=nan) for part in parts]


def _mean(known: Sequence[float]) -> float:
    return sum(known) / len(known) if known else nan


def at_rows(rows: Sequence[int], count: int) -> list[float]:
    """Where rows lie across a chart: in the middle of their share of it."""
    return [ACROSS * (row + 0.5) / count for row in rows]


def line(across: Sequence[float], values: Sequence[float], up: Axis, height: int) -> str:
    """A path through the points; broken where a value is not known, a lone point as a dot."""
    written = []
    for is_known, points in groupby(zip(across, values, strict=True), key=lambda point: isfinite(point[1])):
        if is_known:
            placed = [f"{number(x)} {number(_y(value, up, height))}" for x, value in points]
            written.append(f"M{'L'.join(placed)}{'h0' if len(placed) == 1 else ''}")
    return "".join(written)


def dots(points: Sequence[tuple[float, float]]) -> str:
    """A path of dots: strokes of no length with round or square ends."""
    return "".join(f"M{number(x)} {number(y)}h0" for x, y in points)


def area(edges: Sequence[float], values: Sequence[float], up: Axis, height: int) -> str:
    """The stairs of ``values`` between ``edges`` (one more), filled down to the axis; a gap where one is not known."""
    written = [f"M{number(edges[0])} {height}"]
    for begin, end, value in zip(edges, edges[1:], values, strict=False):
        level = _y(value, up, height) if isfinite(value) else float(height)
        written.append(f"V{number(level)}H{number(end)}" if end > begin else "")
    return "".join([*written, f"V{height}Z"])


def stairs(edges: Sequence[float], values: Sequence[float], up: Axis, height: int) -> str:
    """The upper edge alone, broken where a value is not known."""
    written: list[str] = []
    known = False
    for begin, end, value in zip(edges, edges[1:], values, strict=False):
        if isfinite(value):
            y = number(_y(value, up, height))
            written.append(f"V{y}H{number(end)}" if known else f"M{number(begin)} {y}H{number(end)}")
        known = isfinite(value)
    return "".join(written)


def cells(begin: float, end: float, y: float, height: float) -> str:
    """A rectangle as a part of a path."""
    return f"M{number(begin)} {number(y)}H{number(end)}V{number(y + height)}H{number(begin)}Z"


def spread(points: Sequence[tuple[float, float]], grid: float = 4.0) -> Iterator[tuple[float, float]]:
    """Points of which those that would cover one another (one cell of ``grid`` units) are drawn once."""
    seen: set[tuple[int, int]] = set()
    for x, y in points:
        cell = int(x / grid), int(y / (grid / 2))
        if cell not in seen:
            seen.add(cell)
            yield x, y


def number(value: float) -> str:
    """A coordinate with at most one digit behind the point."""
    return f"{value:.1f}".removesuffix(".0")


def _y(value: float, up: Axis, height: int) -> float:
    return height * (1 - up.part(value))
