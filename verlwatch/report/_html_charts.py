"""The charts over the steps: the stack of phases, each phase with its baseline, seconds against tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, isnan, nan
from statistics import median

from verlwatch.core.phases import STEP
from verlwatch.core.rules.all_slow import SUBJECT as ALL_PHASES
from verlwatch.report import _svg_paths as paths
from verlwatch.report._html_tags import Html, figure, tag
from verlwatch.report._model import Incident, Report
from verlwatch.report._sections import cell
from verlwatch.report._series import APART, IN_STEP, between, known, present
from verlwatch.report._steps import Column, Steps
from verlwatch.report._svg import ACROSS, Axis, Frame, Mark, attempt_breaks, axis, framed, placed, spans, step_ticks
from verlwatch.report._words import Words

OTHER = "other"
_STACK, _SERIES = 280, 120
"""Heights in pixels."""


def marks(report: Report, names: Sequence[str] | None = None) -> list[Mark]:
    """Incidents over the steps, those about ``names`` where some are given."""
    steps, count = report.steps, len(report.steps)
    found = []
    for number, incident in enumerate(report.incidents, 1):
        rows = between(steps, incident.attempt, incident.onset, incident.last)
        if (names is None or is_about(incident, names)) and between(steps, incident.attempt):
            begin = min(rows.start, count - 1)
            mark = Mark(number, begin / count, max(rows.stop, begin + 1) / count, incident.severity, incident.title)
            found.append(mark)
    return found


def is_about(incident: Incident, names: Sequence[str]) -> bool:
    return incident.phase in names or (incident.phase == ALL_PHASES and not set(names).isdisjoint((*IN_STEP, STEP)))


def stacked(steps: Steps) -> dict[str, Sequence[float]]:
    """The phases in the order of a step, and what lies between them."""
    found: dict[str, Sequence[float]] = {n: steps.columns[n].values for n in IN_STEP if n in steps.columns}
    whole = present(steps, STEP)
    if whole:
        sums = [sum(v for values in found.values() if not isnan(v := values[row])) for row in range(len(steps))]
        found[OTHER] = [max(0.0, a - b) if not isnan(a) else nan for a, b in zip(whole, sums, strict=True)]
    return {name: values for name, values in found.items() if any(value > 0 for value in values)}


def stack(report: Report, words: Words) -> Html:
    """Seconds of each step, phase upon phase."""
    steps = report.steps
    parts = paths.buckets(len(steps))
    edges = [ACROSS * part.start / len(steps) for part in parts] + [float(ACROSS)]
    layers = stacked(steps)
    whole = present(steps, STEP)
    is_thinned = len(parts) < len(steps)
    tops = paths.greatest(whole, parts)
    up = axis([*tops, *paths.means(whole, parts)])
    heights = _heights(layers, parts)
    drawn = [
        tag("path", class_=f"layer p-{name}", d=Html(paths.area(edges, heights[name], up, _STACK)))
        for name in reversed(list(layers))
    ]
    if is_thinned:
        drawn.append(tag("path", class_="most", d=Html(paths.stairs(edges, tops, up, _STACK))))
    frame = Frame("c-stack", _STACK, up, "s", step_ticks(steps.step, steps.attempt), marks(report),
                  attempt_breaks(steps.attempt))  # fmt: skip
    unplaced = len(frame.marks) - len(placed(frame.marks))
    notes = [
        words("Seconds of each step without validation and checkpoint; beside the colours the median step, and the "
              "share of all steps."),
        words("Each column is the mean of up to {count} steps, so that areas are time spent; the line above is the "
              "longest step of each column.", count=max(map(len, parts)))
        if is_thinned
        else "",
        words("Numbers lead to the changes below; their bars last from the first slow step to the last.")
        if frame.marks
        else "",
        words("{count} changes find no room here; they are below.", count=unplaced) if unplaced else "",
    ]  # fmt: skip
    said = words("A step takes {median} s in the median, {low} to {high} s.", **_spread(known(whole)))
    return figure(
        "stack",
        frame.name,
        words("Step over time"),
        framed(frame, *drawn, extra=_beyond(whole, up, steps, frame)),
        said,
        notes=words.joined(note for note in notes if note),
        legend=_legend(report, layers, words),
    )


def _heights(layers: dict[str, Sequence[float]], parts: Sequence[range]) -> dict[str, list[float]]:
    """The upper edge of each layer; a bucket that knows nothing of a phase has none of it."""
    heights: dict[str, list[float]] = {}
    below = [0.0] * len(parts)
    for name, values in layers.items():
        below = [b + (m if isfinite(m) else 0.0) for b, m in zip(below, _added(values, parts), strict=True)]
        heights[name] = below
    return heights


def _added(values: Sequence[float], parts: Sequence[range]) -> list[float]:
    """Seconds of a phase for each step of a bucket: steps without it count, so that the areas add up."""
    return [sum(v for row in part if isfinite(v := values[row])) / len(part) for part in parts]


def _legend(report: Report, layers: dict[str, Sequence[float]], words: Words) -> Html:
    """The colours, with each phase's share; beside it the seconds of the step that is pointed at."""
    shares = {stats.name: stats.share for stats in report.phases}
    items = []
    for name, values in layers.items():
        share = shares.get(name)
        if share is None and report.cost is not None:
            share = next((line.share for line in report.cost.phases if line.name == name), None)
        said = f"{share:.0%}" if share is not None and share >= 0.01 else "<1%"  # noqa: PLR2004 - one per cent
        value = tag("b", f"{cell(median(known(values)))} s", data_of=name)
        items.append(tag("li", tag("i", class_=f"p-{name}"), words.label(name), value, tag("span", said)))
    return tag("ul", *items, class_="legend")


def _beyond(values: Sequence[float], up: Axis, steps: Steps, frame: Frame) -> Html:
    """Arrows at the upper edge for what is off the scale."""
    if not up.beyond or not values:
        return Html("")
    count = len(steps)
    parts = paths.buckets(count, 60)
    highest = paths.greatest(values, parts)
    shown = [
        tag("text", tag("title", f"{cell(high)} s"), "▲", x=f"{100 * (part[0] + part[-1] + 1) / 2 / count:.2f}%",
            y=frame.top + 9, text_anchor="middle")
        for part, high in zip(parts, highest, strict=True) if high > up.high
    ]  # fmt: skip
    return tag("g", *shown, class_="beyond")


def _spread(values: Sequence[float]) -> dict[str, str]:
    if not values:
        return dict.fromkeys(("median", "low", "high"), "-")
    return {"median": cell(median(values)), "low": cell(min(values)), "high": cell(max(values))}


def drawn_names(report: Report) -> list[str]:
    """The step, its phases, validation and checkpoint, and what else an incident is about."""
    columns = report.steps.columns
    about = [incident.phase for incident in report.incidents]
    names = [STEP, *IN_STEP, *APART, *(name for name in about if name in columns)]
    return [name for name in dict.fromkeys(names) if name in columns and any(v > 0 for v in columns[name].values)]


def series(report: Report, words: Words) -> Iterator[Html]:
    """A chart for each phase: its values, the baseline's expectation, and the incidents about it."""
    for name in drawn_names(report):
        yield _one(report, report.steps.columns[name], words)


def _one(report: Report, column: Column, words: Words) -> Html:
    steps, values = report.steps, column.values
    count = len(steps)
    parts = paths.buckets(count)
    is_thinned = len(parts) < count
    rows = paths.extremes(values, parts) if is_thinned else list(range(count))
    here = marks(report, (column.name,))
    is_rare = len(known(values)) < count / 2
    expected = paths.means(column.expected, parts) if column.expected else []
    up = axis([*known(values), *known(expected)])
    across = paths.at_rows(rows, count)
    shown = [values[row] for row in rows]
    if is_rare:
        placed = [(x, _SERIES * (1 - up.part(v))) for x, v in zip(across, shown, strict=True) if isfinite(v)]
        path = tag("path", class_="rare", d=Html(paths.dots(placed)))
    else:
        path = tag("path", class_="line", d=Html(paths.line(across, shown, up, _SERIES)))
    middle = [ACROSS * (part[0] + part[-1] + 1) / 2 / count for part in parts]
    base = (
        tag("path", class_="base over" if is_thinned else "base", d=Html(paths.line(middle, expected, up, _SERIES)))
        if expected
        else ""
    )
    frame = Frame(f"c-{column.name}", _SERIES, up, column.unit if len(column.unit) < 4 else "",  # noqa: PLR2004
                  step_ticks(steps.step, steps.attempt, 5), here,
                  attempt_breaks(steps.attempt))  # fmt: skip
    over = (path, base) if is_thinned else (base, path)
    drawn = framed(frame, spans(here, _SERIES), *over, extra=_beyond(values, up, steps, frame))
    return figure("series", frame.name, column.label, drawn, _series_said(column, words), data_of=column.name)


def _series_said(column: Column, words: Words) -> str:
    values = _spread(known(column.values))
    return words("median {median}, {low} to {high} {unit}", unit=column.unit, **values).rstrip()
