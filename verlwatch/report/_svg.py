"""The frame of a chart: axes with round ticks, marks of incidents above it, and what is drawn between them.

A chart is as wide as the page gives it.  Text, grid lines and marks stand at percentages, so that they keep their
size; what is drawn lies in an inner ``svg`` of ``ACROSS`` units that is stretched, with strokes that are not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

from verlwatch.core.types import Severity
from verlwatch.report._html_tags import Html, joined, tag

ACROSS = 1000
LANE = 20
"""Height of a line of marks, in pixels."""
BELOW = 22
"""Room for the labels of the steps."""
_LANES = 6
_APART = 0.065
"""Marks on one line are so far apart, as a part of the chart's width: their numbers fit a width of 300 pixels."""
LABELS_APART = 0.11
"""The same for labels of steps: four digits fit."""
_OFF_SCALE = 5.0
"""A value that is so many times what 98 % stay below is marked at the edge, so that the others can be seen."""
_FEW = 20
_MARGIN = 0.05
"""Room beyond the extremes."""


class Axis(NamedTuple):
    """From ``low`` to ``high`` with round ticks; ``beyond`` says that some values are higher."""

    low: float
    high: float
    ticks: tuple[float, ...]
    beyond: bool = False

    def part(self, value: float) -> float:
        """Where a value lies, from 0 to 1; what is beyond lies at the edge."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


class Tick(NamedTuple):
    """A label on the axis below, at a part of the width."""

    at: float
    label: str


class Mark(NamedTuple):
    """An incident over a chart: its number in the list, and from where to where it lasts, as parts of the width."""

    number: int
    begin: float
    end: float
    severity: Severity
    title: str


class Frame(NamedTuple):
    """Everything around what is drawn: ``name`` is the id of the heading, ``breaks`` are where attempts begin."""

    name: str
    height: int
    up: Axis
    unit: str
    across: Sequence[Tick]
    marks: Sequence[Mark] = ()
    breaks: Sequence[Tick] = ()

    @property
    def top(self) -> int:
        """Where the plot begins, below its marks."""
        lanes = max((lane for _, lane in placed(self.marks)), default=-1) + 1
        return LANE * lanes + (4 if lanes else 10)


def axis(values: Iterable[float], count: int = 4, *, from_zero: bool = True) -> Axis:
    """The axis of values in seconds, tokens or GB."""
    known = sorted(value for value in values if isfinite(value))
    low, high = (0.0, 1.0) if not known else (0.0 if from_zero else known[0], known[-1])
    most = known[int(0.98 * (len(known) - 1))] if known else 1.0
    beyond = len(known) >= _FEW and high > _OFF_SCALE * most > 0
    if beyond:
        high = 1.5 * most
    if high <= low:
        low, high = (low, low + (abs(low) or 1.0)) if from_zero else (low - 1.0, low + 1.0)
    margin = _MARGIN * (high - low)
    high, low = high + margin, low if from_zero else low - margin
    step = nice((high - low) / count)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return Axis(low, high, tuple(i * step for i in range(first, last + 1)), beyond)


def nice(step: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= step * (1 - 1e-9))


def short(value: float, step: float) -> str:
    """A tick's label: as many digits as tell it from the next."""
    if value == 0:
        return "0"
    for over, least, letter in ((1e6, 1e6, "M"), (1e3, 1e4, "k")):
        if abs(value) >= least or (abs(value) >= over and step >= over):
            return f"{value / over:.{_digits(step / over)}f}{letter}"
    return f"{value:,.{_digits(step)}f}"


def _digits(step: float) -> int:
    return next((digits for digits in range(4) if abs(step * 10**digits - round(step * 10**digits)) < 1e-6), 4)  # noqa: PLR2004 - powers of ten


def step_ticks(steps: Sequence[int], attempts: Sequence[int], count: int = 6) -> list[Tick]:
    """Labels at round steps, where there are many; an attempt begins anew."""
    rows = len(steps)
    spacing = max(1, round(nice(max(1.0, rows / count)))) if rows else 1
    if rows <= 1.5 * count:  # few steps: a label each
        spacing = 1
    ticks: list[Tick] = []
    for row, step in enumerate(steps):
        is_next = row and attempts[row] == attempts[row - 1]
        crosses = step // spacing != (steps[row - 1] // spacing if is_next else (step - 1) // spacing)
        at = (row + 0.5) / rows
        if crosses and (not ticks or at - ticks[-1].at > LABELS_APART):
            ticks.append(Tick(at, f"{step:,}"))
    return ticks


def value_ticks(along: Axis) -> list[Tick]:
    """Labels of an axis of values below a chart."""
    step = along.ticks[1] - along.ticks[0]
    return [Tick(along.part(value), short(value, step)) for value in along.ticks]


def attempt_breaks(attempts: Sequence[int]) -> list[Tick]:
    """Where each attempt after the first begins."""
    rows = len(attempts)
    return [Tick(row / rows, str(attempts[row])) for row in range(1, rows) if attempts[row] != attempts[row - 1]]


def framed(frame: Frame, *drawn: str, extra: str = "") -> Html:
    """The chart: marks above, grid, labels, what is ``drawn``, and ``extra`` in unstretched coordinates over it."""
    inner = tag(
        "svg",
        *drawn,
        class_="data",
        y=frame.top,
        width="100%",
        height=frame.height,
        viewBox=f"0 0 {ACROSS} {frame.height}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    return tag(
        "svg",
        tag("g", *_grid(frame), class_="axis", aria_hidden="true"),
        inner,
        tag("g", *_breaks(frame), class_="axis", aria_hidden="true") if frame.breaks else "",
        extra,
        tag("g", *(_mark(m, lane * LANE + LANE / 2) for m, lane in placed(frame.marks)), class_="marks"),
        class_="chart",
        role="group",
        aria_labelledby=frame.name,
        aria_describedby=f"{frame.name}-d",
        height=frame.top + frame.height + BELOW,
        data_top=frame.top,
        data_height=frame.height,
    )


def _grid(frame: Frame) -> Iterator[Html]:
    ticks = frame.up.ticks
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    bottom = frame.top + frame.height
    for i, value in enumerate(ticks):
        y = bottom - frame.height * frame.up.part(value)
        yield tag("line", x1="0", x2="100%", y1=y, y2=y, class_=None if i else "zero")
        unit = f" {frame.unit}" if frame.unit and i == len(ticks) - 1 else ""
        yield tag("text", short(value, step) + unit, x="-8", y=y + 4, text_anchor="end")
    for tick in frame.across:
        at = percent(tick.at)
        yield tag("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="zero")
        yield tag("text", tick.label, x=at, y=bottom + 17, text_anchor="middle")


def _breaks(frame: Frame) -> Iterator[Html]:
    bottom = frame.top + frame.height
    for i, tick in enumerate(frame.breaks):
        at = percent(tick.at)
        yield tag("line", x1=at, x2=at, y1=frame.top, y2=bottom, class_="break")
        before = frame.breaks[i - 1].at if i else 0.0
        if tick.at - before > _APART:
            yield tag("text", tick.label, x=at, dx=-4, y=frame.top + 11, text_anchor="end")


def percent(part: float) -> str:
    """A part of the width as an attribute."""
    return f"{100 * part:.2f}%"


def placed(marks: Sequence[Mark]) -> list[tuple[Mark, int]]:
    """Marks with the line that each stands on, so that none covers another; what has no line left is not drawn."""
    ends: list[float] = []
    found = []
    for mark in sorted(marks, key=lambda m: m.begin):
        lane = next((i for i, end in enumerate(ends) if end <= mark.begin), len(ends))
        if lane < _LANES:
            ends[lane : lane + 1] = [max(mark.end, mark.begin) + _APART]
            found.append((mark, lane))
    return found


def _mark(mark: Mark, y: float) -> Html:
    begin, width = percent(mark.begin), percent(max(0.0, mark.end - mark.begin))
    return tag(
        "a",
        tag("title", mark.title),
        tag("rect", x=begin, width=width, y=y - 3, height=6, rx=3),
        tag("circle", cx=begin, cy=y, r=8),
        tag("text", str(mark.number), x=begin, y=y + 4, text_anchor="middle"),
        href=f"#i{mark.number}",
        class_=mark.severity,
        aria_label=mark.title,
    )


def spans(marks: Sequence[Mark], height: int) -> Html:
    """The stretches of incidents behind a series, and a line where each begins."""
    drawn = [
        joined(
            tag("rect", x=ACROSS * m.begin, width=ACROSS * max(m.end - m.begin, 0.002), y=0, height=height),
            tag("line", x1=ACROSS * m.begin, x2=ACROSS * m.begin, y1=0, y2=height),
        )
        for m in marks
    ]
    parts = (tag("g", one, class_=m.severity) for one, m in zip(drawn, marks, strict=True))
    return tag("g", *parts, class_="spans") if drawn else Html("")


def levels(values: Sequence[float], bounds: Sequence[float]) -> list[int | None]:
    """Which of the steps between ``bounds`` each value belongs to."""
    return [None if not isfinite(value) else bisect_left(bounds, value) for value in values]
