"""The cards of a run on the status page: a row for each, with a strip of what it held lately, darkest where most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from verlwatch.shell.http._html import Html, joined, number, table, tag
from verlwatch.status import GpuStatus

CARDS_LIMIT, PAGE_LIMIT, LEAST = 64, 96, 4
"""Cards that a run, a page, and a run of many show: those farthest from their peers; more are for the API.

Making a row takes about 0.3 ms of the event loop's time.
"""
LEVELS = 9
"""Colours from the least to the most that any card of the run held lately."""
_LEAST_RANGE = 4.0
"""GB that the colours span at least, so that what differs by little looks alike."""
_APART_GB, _APART_SHARE = 2.0, 0.05
"""More than both, the second a share of the card, is marked."""


def cards(gpus: Sequence[GpuStatus], runs: int = 1) -> Html:
    """A table; empty where no card is known.  A page with more ``runs`` shows fewer cards of each."""
    if not gpus:
        return Html("")
    shown = _shown(gpus, max(LEAST, min(CARDS_LIMIT, PAGE_LIMIT // max(1, runs))))
    held = [gb for one in shown for gb in one.recent if gb is not None and math.isfinite(gb)]
    low, high = _range(held) if held else (0.0, 1.0)
    length = max(len(one.recent) for one in shown)
    rows = [
        ("bad" if one.missing else "apart" if _is_apart(one) else "", _row(one, low, high, length)) for one in shown
    ]
    left_out = len(gpus) - len(shown)
    scale = [tag("i", class_=f"l{level}") for level in range(LEVELS)]
    legend = tag("p", number(low, "GB"), tag("span", *scale, class_="scale"), number(high, "GB"), class_="quiet")
    more = tag("p", f"And {left_out} cards that differ less: see /api/v1/status", class_="quiet") if left_out else ""
    return joined(
        table(("Card", "Memory lately", "Now", "Beside peers", "Busy"), rows, "cards"), legend if held else "", more
    )


def _shown(gpus: Sequence[GpuStatus], limit: int) -> Sequence[GpuStatus]:
    if len(gpus) <= limit:
        return gpus
    order = sorted(range(len(gpus)), key=lambda i: (not gpus[i].missing, -abs(gpus[i].offset_gb or 0.0)))
    return [gpus[i] for i in sorted(order[:limit])]


def _is_apart(one: GpuStatus) -> bool:
    return abs(one.offset_gb or 0.0) > max(_APART_GB, _APART_SHARE * (one.total_gb or 0.0))


def _range(held: Sequence[float]) -> tuple[float, float]:
    low, high = min(held), max(held)
    if high - low < _LEAST_RANGE:
        middle = (low + high) / 2
        low = max(0.0, middle - _LEAST_RANGE / 2)
        high = low + _LEAST_RANGE
    return low, high


def _row(one: GpuStatus, low: float, high: float, length: int) -> Sequence[str]:
    size = tag("span", "of ", number(one.total_gb, "GB"), class_="quiet") if one.total_gb else ""
    now = Html("missing") if one.missing else joined(number(one.used_gb, "GB"), size, by=" ")
    apart = "–" if one.offset_gb is None else f"{'+' if one.offset_gb > 0 else ''}{number(one.offset_gb, 'GB')}"
    busy = "–" if one.utilization is None else f"{one.utilization:.0f}\xa0%"
    return _name(one), strip(one.recent, low, high, length), now, apart, busy


def _name(one: GpuStatus) -> Html:
    """Its rank where that is known, else the card, else the process; behind it what else is known."""
    names = [
        f"rank {one.rank}" if one.rank is not None else "",
        f"GPU {one.gpu}" if one.gpu is not None else "",
        f"pid {one.pid}" if one.pid is not None and one.gpu is None else "",
    ]
    first, *rest = [name for name in names if name] or ["card"]
    more = ", ".join([*rest, one.host] if one.host else rest)
    return joined(tag("b", first), tag("span", more, class_="quiet") if more else "", by=" ")


def strip(values: Sequence[float | None], low: float, high: float, length: int) -> Html:
    """The last values at the right end, a gap where one is not known."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return Html("")
    paths: dict[int, list[str]] = {}
    for level, begin, end in _runs(values, low, high):
        shift = length - len(values)
        paths.setdefault(level, []).append(f"M{begin + shift} 0H{end + shift}V1H{begin + shift}Z")
    return tag(
        "svg",
        tag("title", f"last {len(values)} instants, {number(min(known))} to {number(max(known))} GB"),
        *(tag("path", class_=f"l{level}", d=Html("".join(parts))) for level, parts in sorted(paths.items())),
        class_="strip",
        viewBox=f"0 0 {length} 1",
        preserveAspectRatio="none",
        role="img",
    )


def _runs(values: Sequence[float | None], low: float, high: float) -> Iterator[tuple[int, int, int]]:
    """Values next to one another of the same colour: (colour, begin, end)."""

    def level(place: int) -> int | None:
        value = values[place]
        if value is None or not math.isfinite(value):
            return None
        return min(LEVELS - 1, max(0, int(LEVELS * (value - low) / (high - low))))

    for found, places in groupby(range(len(values)), key=level):
        if found is not None:
            held = list(places)
            yield found, held[0], held[-1] + 1
