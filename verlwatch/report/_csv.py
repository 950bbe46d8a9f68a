"""All series of a report as CSV: three files, from which every number of the report can be reckoned again.

``steps.csv`` has a row per step (``attempt``, ``step_number``): every column of the steps, and ``NAME:expected`` for
what its baseline expected.  ``memory.csv`` has what each card held (``card``, ``moment``, ``step``, ``gb``),
``lines.csv`` what was seen beside the steps (``section``, ``name``, ``step``, ``value``).  What is not known is
an empty cell.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from math import isnan
from pathlib import Path

from verlwatch.report._memory import at_steps, name_of
from verlwatch.report._reading import Reading
from verlwatch.report._steps import Steps
from verlwatch.shell.printable import encodable

STEPS, MEMORY, LINES = "steps.csv", "memory.csv", "lines.csv"


def write(folder: Path, reading: Reading, steps: Steps) -> None:
    """Writes the files into ``folder``, which is made if it is not there.

    Raises:
        OSError: they cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / STEPS, _steps(steps))
    _write(folder / MEMORY, _memory(reading, steps))
    _write(folder / LINES, _lines(reading))


def _write(path: Path, rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _steps(steps: Steps) -> Iterator[Iterable[object]]:
    columns = [(name, column.values) for name, column in steps.columns.items()]
    columns += [(f"{name}:expected", column.expected) for name, column in steps.columns.items() if column.expected]
    yield ("attempt", "step_number", *(_text(name) for name, _ in columns))
    for row in range(len(steps)):
        yield (steps.attempt[row], steps.step[row], *(_cell(values[row]) for _, values in columns))


def _memory(reading: Reading, steps: Steps) -> Iterator[Iterable[object]]:
    yield ("card", "host", "moment", "kind", "step", "gb")
    for card in reading.cards.known():
        for head, points in card.heads.items():
            for step, gb in at_steps(points, card, reading, steps):
                yield (_text(name_of(card)), _text(card.host), _text(head), card.kind, step, repr(gb))


def _lines(reading: Reading) -> Iterator[Iterable[object]]:
    yield ("section", "name", "step", "value")
    for section, gauges in reading.gauges.items():
        for name, seen in gauges.items():
            for step, value in zip(seen.steps, seen.values, strict=True):
                yield (section, _text(name), step, repr(value))


def _cell(value: float) -> str:
    return "" if isnan(value) else repr(value)


def _text(text: str) -> str:
    """Text of a log that no spreadsheet takes for a formula."""
    plain = encodable(text)
    return f"'{plain}" if plain.startswith(("=", "+", "-", "@", "\t", "\r")) else plain
