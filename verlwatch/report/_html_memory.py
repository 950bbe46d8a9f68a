"""Memory as a strip: a row for each card, its colour what it holds, from the first step on the left to the last."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from math import isfinite, nan
from typing import NamedTuple

from verlwatch.report import _svg_paths as paths
from verlwatch.report._html_tags import Html, figure, tag
from verlwatch.report._model import MemoryTrack, Report
from verlwatch.report._svg import ACROSS, BELOW, LABELS_APART, Tick, levels, nice, percent
from verlwatch.report._words import Words

LEVELS = 9
"""Colours from the least to the most."""
SHOWN = 96
"""Cards of a strip: those whose memory is farthest from the others' where there are more."""
COLUMNS = 120
_LEAST_RANGE = 4.0
"""GB that the colours span at least, so that what differs by little looks alike."""


class Strip(NamedTuple):
    """Cards that count the same kind of memory; ``steps`` are the first and last of each column, ``gb`` by card."""

    kind: str
    tracks: Sequence[MemoryTrack]
    steps: Sequence[tuple[int, int]]
    gb: Sequence[Sequence[float]]


def strips(report: Report) -> list[Strip]:
    """One for each kind of memory."""
    kinds: dict[str, list[MemoryTrack]] = {}
    for track in report.memory:
        if track.points:
            kinds.setdefault(track.kind, []).append(track)
    found = (_strip(kind, tracks) for kind, tracks in kinds.items())
    return [strip for strip in found if len(strip.tracks) > 1 or len(strip.steps) > 1]


def _strip(kind: str, tracks: Sequence[MemoryTrack]) -> Strip:
    steps = sorted({point.step for track in tracks for point in track.points})
    parts = paths.buckets(len(steps), COLUMNS)
    columns = [(steps[part[0]], steps[part[-1]]) for part in parts]
    starts = [first for first, _ in columns]
    rows = []
    for track in tracks:
        most = [nan] * len(columns)
        for point in track.points:
            column = bisect_right(starts, point.step) - 1
            most[column] = point.gb if not isfinite(most[column]) else max(most[column], point.gb)
        rows.append(most)
    if len(tracks) > SHOWN:
        chosen = _apart(rows)
        return Strip(kind, [tracks[i] for i in chosen], columns, [rows[i] for i in chosen])
    return Strip(kind, tracks, columns, rows)


def _apart(rows: Sequence[Sequence[float]]) -> list[int]:
    """The rows that are once farthest from the middle one, in their order."""
    middles = []
    for column in zip(*rows, strict=True):
        held = sorted(value for value in column if isfinite(value))
        middles.append(held[len(held) // 2] if held else nan)

    def distance(row: int) -> float:
        pairs = zip(rows[row], middles, strict=True)
        return max((abs(a - b) for a, b in pairs if isfinite(a) and isfinite(b)), default=0.0)

    return sorted(sorted(range(len(rows)), key=distance, reverse=True)[:SHOWN])


def memory(report: Report, words: Words) -> Iterator[Html]:
    """A figure for each kind of memory."""
    for number, strip in enumerate(strips(report)):
        yield _figure(report, strip, number, words)


def _figure(report: Report, strip: Strip, number: int, words: Words) -> Html:
    held = [gb for row in strip.gb for gb in row if isfinite(gb)]
    low, high = _range(held)
    bounds = [low + (high - low) * i / LEVELS for i in range(1, LEVELS)]
    name = f"c-memory-{number}"
    height = 18 if len(strip.tracks) <= 16 else 10 if len(strip.tracks) <= 48 else 6  # noqa: PLR2004 - cards
    chart = _chart(strip, bounds, height, name)
    kind = words(strip.kind)
    said = words("{count} card(s), {low} to {high} GB, steps {first} to {last}", count=len(strip.tracks),
                 low=f"{min(held):.1f}", high=f"{max(held):.1f}", first=strip.steps[0][0],
                 last=strip.steps[-1][1])  # fmt: skip
    scale = [tag("i", class_=f"l{level}") for level in range(LEVELS)]
    legend = tag("p", f"{low:g} GB ", tag("span", *scale, class_="scale"), f" {high:g} GB", class_="legend quiet")
    left_out = sum(track.kind == strip.kind for track in report.memory) - len(strip.tracks)
    notes = words("The most that each card held in the steps of a column; step 0 is before the first.")
    if left_out > 0:
        notes = words.joined((notes, words("{count} cards that differ less are left out.", count=left_out)))
    return figure("memory", name, words("Memory of each card: {kind}", kind=kind), chart, said, legend=legend,
                  notes=notes, data_of=str(number))  # fmt: skip


def _range(held: Sequence[float]) -> tuple[float, float]:
    """Round ends of the colours."""
    low, high = min(held), max(held)
    if high - low < _LEAST_RANGE:
        middle = (low + high) / 2
        low, high = max(0.0, middle - _LEAST_RANGE / 2), middle + _LEAST_RANGE / 2
    step = nice((high - low) / 8)
    return step * int(low / step), step * -int(-high // step)


def _chart(strip: Strip, bounds: Sequence[float], height: int, name: str) -> Html:
    rows, columns = len(strip.tracks), len(strip.steps)
    whole = rows * height
    drawn: dict[int, list[str]] = {}
    for i, row in enumerate(strip.gb):
        found = levels(row, bounds)
        begin = 0
        for column in range(1, columns + 1):
            if column < columns and found[column] == found[begin]:
                continue
            if (level := found[begin]) is not None:
                ends = ACROSS * begin / columns, ACROSS * column / columns
                drawn.setdefault(level, []).append(paths.cells(*ends, i * height, height - 1))
            begin = column
    cells = [tag("path", class_=f"l{level}", d=Html("".join(parts))) for level, parts in sorted(drawn.items())]
    inner = tag("svg", *cells, class_="data", width="100%", height=whole, viewBox=f"0 0 {ACROSS} {whole}",
                preserveAspectRatio="none", aria_hidden="true")  # fmt: skip
    return tag(
        "svg",
        inner,
        tag("g", *_labels(strip, height), class_="axis", aria_hidden="true"),
        class_="chart",
        role="group",
        aria_labelledby=name,
        aria_describedby=f"{name}-d",
        height=whole + BELOW,
        data_top=0,
        data_height=whole,
    )


def _labels(strip: Strip, height: int) -> Iterator[Html]:
    every = -(-12 // height)
    for i, track in enumerate(strip.tracks):
        if i % every == 0:
            y = i * height + height / 2 + 4
            label = track.name if len(track.name) <= 10 else f"{track.name[:9]}…"  # noqa: PLR2004 - room beside the strip
            yield tag("text", tag("title", track.label), label, x="-8", y=y, text_anchor="end")
    bottom = len(strip.tracks) * height
    for tick in column_ticks(strip.steps):
        at = percent(tick.at)
        yield tag("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="zero")
        yield tag("text", tick.label, x=at, y=bottom + 17, text_anchor="middle")


def column_ticks(columns: Sequence[tuple[int, int]], count: int = 6) -> list[Tick]:
    """Round steps where they lie among the columns; all first steps where there are few columns."""
    if len(columns) <= count:
        return [Tick((i + 0.5) / len(columns), f"{first:,}") for i, (first, _) in enumerate(columns)]
    starts = [first for first, _ in columns]
    spacing = max(1, round(nice((columns[-1][1] - starts[0]) / count)))
    found: list[Tick] = []
    for step in range(-(-starts[0] // spacing) * spacing, columns[-1][1] + 1, spacing):
        column = bisect_right(starts, step) - 1
        last = columns[column][1]
        beyond = (step - last) / (starts[column + 1] - last) if step > last else 0.0
        at = (column + 0.5 + beyond) / len(columns)
        if not found or at - found[-1].at > LABELS_APART:
            found.append(Tick(at, f"{step:,}"))
    return found
