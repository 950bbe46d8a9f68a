"""What the steps of a log print, as arrays: eight bytes a number, whatever the log's length.

A dictionary a step would take twenty times as much.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from math import isnan, nan

KEPT = (
    *("timing_s/", "timing/", "perf/", "mfu/", "actor/perf/", "critic/perf/"),
    *("response_length/", "prompt_length/", "global_seqlen/", "response/", "num_turns/", "tool_call_counts/"),
    *("actor/grad_norm", "actor/entropy", "critic/score/mean", "critic/rewards/mean", "fully_async/", "rollout_corr/"),
)
"""Beginnings of the keys that a report reads, or shows beside what it reads.  MoE runs print thousands of others."""
COLUMNS = 400
MOST_MET = 10_000


class Columns:
    """One array per key, one row per step of an attempt; nan where a step did not print it."""

    def __init__(self) -> None:
        self.attempt = array("q")
        self.step = array("q")
        self.values: dict[str, array[float]] = {}
        self.expected: dict[str, array[float]] = {}
        """By metric: what its baseline expected of the step's work."""
        self._rows: dict[tuple[int, int], int] = {}
        self._met: set[str] = set()
        """Keys that are kept, and such as are not."""

    def __len__(self) -> int:
        return len(self.step)

    def put(self, attempt: int, step: int, values: Mapping[str, float]) -> int:
        """Takes a step's values and gives its row.  What another source told of the same step first wins."""
        if new := values.keys() - self._met:
            self._meet(key for key in values if key in new)  # in the order of the line
        row = self._rows.get((attempt, step))
        if row is None:
            row = self._rows[attempt, step] = len(self.step)
            self.attempt.append(attempt)
            self.step.append(step)
            for key, column in self.values.items():
                column.append(values.get(key, nan))
            for column in self.expected.values():
                column.append(nan)
        else:
            for key, column in self.values.items():
                if isnan(column[row]):
                    column[row] = values.get(key, nan)
        return row

    def expect(self, row: int, metric: str, value: float) -> None:
        """Takes what a baseline expected."""
        column = self.expected.get(metric)
        if column is None:
            column = self.expected[metric] = array("d", [nan]) * len(self.step)
        if isnan(column[row]):
            column[row] = value

    def _meet(self, keys: Iterable[str]) -> None:
        """Makes a column for each of the keys that are kept, where there is room."""
        for key in keys:
            if key.startswith(KEPT) and key not in self.values and len(self.values) < COLUMNS:
                self.values[key] = array("d", [nan]) * len(self.step)
            if len(self._met) < MOST_MET:
                self._met.add(key)

    def order(self) -> list[int]:
        """Rows in the order of attempt and step."""
        keys = list(zip(self.attempt, self.step, strict=True))
        return sorted(range(len(keys)), key=keys.__getitem__)

    def row(self, row: int) -> Iterator[tuple[str, float]]:
        """What a step printed."""
        return ((key, column[row]) for key, column in self.values.items() if not isnan(column[row]))
