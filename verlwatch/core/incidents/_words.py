"""Values in the words of a message: quantities, a line of bars."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from verlwatch.core.metrics import MEASURES
from verlwatch.core.words import amount, duration, listed

__all__ = ["amount", "duration", "listed", "quantity", "sparkline"]

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float]) -> str:
    """One bar a value, the smallest lowest; empty for fewer than two values."""
    largest = max((abs(value) for value in values if isfinite(value)), default=0.0) or 1.0
    values = [value / largest for value in values if isfinite(value)]  # so that no difference overflows
    if len(values) < 2:  # noqa: PLR2004 - a line needs two points
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[min(7, int(8 * (value - low) / span))] for value in values)


def quantity(metric: str, value: float) -> str:
    """A value of ``metric`` with its unit, in three significant digits."""
    return f"{value:.3g} {MEASURES[metric].unit}".rstrip() if metric in MEASURES else duration(value)
