"""What the page's script reads: the steps as printed, so that pointing at a chart tells a step's own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import orjson

from verlwatch.report import _svg_paths as paths
from verlwatch.report._html_charts import OTHER, drawn_names, stacked
from verlwatch.report._html_memory import strips
from verlwatch.report._html_tags import Html
from verlwatch.report._model import Report
from verlwatch.report._series import TOKENS, present
from verlwatch.report._words import Words
from verlwatch.shell.printable import encodable, printable

ROWS = 5000
"""Steps that the file holds in full; of more, those are kept at which a phase is least or greatest among neighbours."""


def data(report: Report, words: Words) -> Html:
    """JSON that cannot end the element it stands in."""
    steps = report.steps
    rows = kept(report)
    layers = stacked(steps) if len(steps) else {}
    columns = {name: steps.columns[name] for name in (*drawn_names(report), TOKENS) if name in steps.columns}
    series: dict[str, Mapping[str, object]] = {
        name: {
            "unit": column.unit,
            "values": _taken(column.values, rows),
            "expected": _taken(column.expected, rows) if column.expected else None,
        }
        for name, column in columns.items()
    }
    if OTHER in layers:
        series[OTHER] = {"unit": "s", "values": _taken(layers[OTHER], rows), "expected": None}
    found = {
        "count": len(steps),
        "rows": None if len(rows) == len(steps) else rows,
        "step": [steps.step[row] for row in rows],
        "attempt": [steps.attempt[row] for row in rows] if report.run.attempts > 1 else None,
        "series": series,
        "memory": [
            {
                "cards": [printable(encodable(track.label)) for track in strip.tracks],
                "steps": strip.steps,
                "gb": [[round(gb, 2) if isfinite(gb) else None for gb in row] for row in strip.gb],
            }
            for strip in strips(report)
        ],
        "words": {
            "step": words("step {step}", step="{step}"),
            "again": words("step {step}, attempt {attempt}", step="{step}", attempt="{attempt}"),
            "expected": words("expected {value}", value="{value}"),
            "tokens": words("{tokens} tokens", tokens="{tokens}"),
            "unknown": words("not printed"),
            "move": words("arrow keys move from step to step"),
        },
    }
    return Html(orjson.dumps(found).decode().replace("<", "\\u003c"))


def kept(report: Report) -> list[int]:
    """The rows that are kept, in order."""
    steps = report.steps
    if len(steps) <= ROWS:
        return list(range(len(steps)))
    names = drawn_names(report)
    parts = paths.buckets(len(steps), max(1, ROWS // (2 * len(names))))
    rows = {row for name in names for row in paths.extremes(present(steps, name), parts)}
    return sorted(rows | {0, len(steps) - 1})


def _taken(values: Sequence[float], rows: Sequence[int]) -> list[float | None]:
    """Four digits are enough to be read."""
    return [float(f"{v:.4g}") if isfinite(v := values[row]) else None for row in rows]
