"""The printed columns of a log -> the columns of its report: phases, step, work, measures, parts.

The same readings of keys as the judgement has (`core.steps`, `core.metrics`), a column at a time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import isfinite, isnan, nan

from verlwatch.core import steps as reckoning
from verlwatch.core.attribution import Row
from verlwatch.core.metrics import METRICS
from verlwatch.core.phases import PHASES, STEP
from verlwatch.core.types import Workload
from verlwatch.report._columns import Columns
from verlwatch.report._reading import Reading
from verlwatch.report._steps import Column, Role, Steps
from verlwatch.report._words import Words

PRINTED = "printed_step"
TOKENS, LONGEST, RESPONSES = "tokens", "longest_response", "response_tokens"
IN_STEP = tuple(phase.name for phase in PHASES if not phase.apart)
APART = tuple(phase.name for phase in PHASES if phase.apart)
_STEP_KEYS = ("timing_s/step", "perf/time_per_step")
_UNITS = {
    "throughput": "tokens/s/GPU",
    "mfu_actor": "",
    "tokens": "tokens",
    "grad_norm": "",
    "entropy": "",
    "response_length": "tokens",
    "prompt_length": "tokens",
}
_NO_PART = frozenset(key for phase in PHASES for key in phase.keys) | frozenset(_STEP_KEYS)


def steps_of(reading: Reading, words: Words, span: tuple[int, int] | None = None) -> Steps:
    """Every step with timing, those of ``span`` (first and last, both in it) where one is given."""
    columns = reading.columns
    phases = {phase.name: _first(columns, phase.keys, bound=reckoning.LONGEST_S) for phase in PHASES}
    printed = _first(columns, _STEP_KEYS, bound=reckoning.LONGEST_S)
    rows = [
        row
        for row in columns.order()
        if (span is None or span[0] <= columns.step[row] <= span[1])
        and not (isnan(printed[row]) and all(isnan(values[row]) for values in phases.values()))
    ]
    named: dict[str, tuple[Role, str, array[float]]] = {STEP: ("step", "s", _step(reading, phases, printed))}
    named[PRINTED] = ("step", "s", printed)
    for phase in PHASES:
        named[phase.name] = ("apart" if phase.apart else "phase", "s", phases[phase.name])
    named |= {name: ("work", "tokens", values) for name, values in _work(reading).items()}
    named["clip_ratio"] = ("measure", "", _first(columns, ("response_length/clip_ratio",)))
    for name, keys in METRICS.items():
        if name not in named:
            named[name] = ("measure", _UNITS.get(name, "GB" if name.endswith("_gb") else ""), _first(columns, keys))
    for key, values in columns.values.items():
        if key.startswith(("timing_s/", "timing/")) and key not in _NO_PART:
            named[key] = ("part", unit_of(key), values)
    found = {
        name: Column(name, words.label(name), unit, role, _taken(values, rows), _expected(columns, name, rows))
        for name, (role, unit, values) in named.items()
    }
    found = {name: column for name, column in found.items() if any(not isnan(v) for v in column.values)}
    return Steps(_whole(columns.attempt, rows), _whole(columns.step, rows), found)


def unit_of(key: str) -> str:
    """The unit of a key under ``timing_s/``: nearly all are seconds."""
    if key.endswith("_length"):
        return "tokens"
    return "" if "topk_ratio" in key else "count" if "num_preempted" in key else "s"


def between(steps: Steps, attempt: int, first: int | None = None, last: int | None = None) -> range:
    """The rows of an attempt from step ``first`` to step ``last``, both in it."""

    def at(row: int) -> tuple[int, int]:
        return steps.attempt[row], steps.step[row]

    rows = range(len(steps))
    begin = bisect_left(rows, (attempt, -1 if first is None else first), key=at)
    end = bisect_left(rows, (attempt + 1, -1) if last is None else (attempt, last + 1), key=at)
    return range(begin, max(begin, end))


def present(steps: Steps, name: str) -> Sequence[float]:
    """The values of a column; empty where the log has none."""
    column = steps.columns.get(name)
    return () if column is None else column.values


def known(values: Sequence[float]) -> list[float]:
    """Those that are numbers."""
    return [value for value in values if isfinite(value)]


def rows_of(steps: Steps, rows: Sequence[int]) -> list[Row]:
    """Steps as what attribution compares."""
    names = [name for name in (*IN_STEP, STEP) if name in steps.columns]
    tokens, longest, responses = (present(steps, name) for name in (TOKENS, LONGEST, RESPONSES))
    return [
        Row(
            {name: v for name in names if not isnan(v := steps.columns[name].values[row])},
            Workload(_at(tokens, row), _at(longest, row)),
            _at(responses, row),
            {n: e for n in names if steps.columns[n].expected and not isnan(e := steps.columns[n].expected[row])},
        )
        for row in rows
    ]


def _at(values: Sequence[float], row: int) -> float | None:
    return None if not values or not isfinite(values[row]) else values[row]


def _first(columns: Columns, keys: Sequence[str], bound: float | None = None) -> array[float]:
    """In each row the first of ``keys`` that it prints; nothing where its size is none (``bound``)."""
    held = [columns.values[key] for key in keys if key in columns.values]
    if not held:
        return array("d", [nan]) * len(columns)
    values = held[0]
    for other in held[1:]:
        values = array("d", (b if isnan(a) else a for a, b in zip(values, other, strict=True)))
    if bound is not None and any(abs(value) >= bound for value in values):
        values = array("d", (value if abs(value) < bound else nan for value in values))
    return values


def _step(reading: Reading, phases: Mapping[str, array[float]], printed: array[float]) -> array[float]:
    """Seconds without validation and checkpoint; the sum of its phases in a log that prints no step."""
    columns = reading.columns
    if all(map(isnan, printed)):
        sums = zip(*(phases[name] for name in IN_STEP), strict=True)
        return array("d", (_sum(row) for row in sums))
    seconds = array("d", printed)
    for row in range(len(columns)):
        if any(not isnan(phases[name][row]) for name in APART) and not isnan(printed[row]):
            facts = reckoning.read(dict(columns.row(row)), reading.releases[columns.attempt[row]])
            seconds[row] = facts.seconds.get(STEP, nan)
    return seconds


def _sum(values: Sequence[float]) -> float:
    parts = [value for value in values if not isnan(value)]
    return sum(parts) if parts else nan


def _work(reading: Reading) -> dict[str, array[float]]:
    """Tokens of the batch, of its responses, and of the longest one, as judging reads them."""
    columns = reading.columns
    total = _first(columns, (reckoning.TOTAL_TOKENS,))
    response, prompt = _first(columns, ("response_length/mean",)), _first(columns, ("prompt_length/mean",))
    if not reading.prints_total:
        total = array("d", (r + (0.0 if isnan(p) else p) for r, p in zip(response, prompt, strict=True)))
    answers = array(
        "d", (t * r / (r + p) if r + p > 0 else nan for t, r, p in zip(total, response, prompt, strict=True))
    )
    return {TOKENS: total, RESPONSES: answers, LONGEST: _first(columns, ("response_length/max",))}


def _expected(columns: Columns, name: str, rows: Sequence[int]) -> Sequence[float]:
    values = columns.expected.get(name)
    return () if values is None else _taken(values, rows)


def _taken(values: array[float], rows: Sequence[int]) -> array[float]:
    return array("d", map(values.__getitem__, rows))


def _whole(values: array[int], rows: Sequence[int]) -> array[int]:
    return array("q", map(values.__getitem__, rows))
