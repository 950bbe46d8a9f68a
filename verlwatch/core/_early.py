"""What can be said before a series has a baseline: a step against the median of the few before it.

It is crude, so it speaks of large ratios alone, and names how few steps it knows.  The first steps after a start or a
resume are the slowest and are not judged.  When the series has its baseline, that speaks instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from verlwatch.core.types import ChangePoint, SeriesKey

FEW = 3
"""So many earlier steps are enough for a comparison."""
RATIO = 2.0
OVER_RATIO = 1.5
"""Below this it is over: one step that wavers about the limit does not come and go."""
LEAST_S = 0.05
"""A change of less says nothing, whatever its ratio: logs round to milliseconds."""


class Early:
    """The changes of one run's series that have no baseline yet."""

    def __init__(self) -> None:
        self.changes: dict[str, ChangePoint] = {}
        self._since: dict[str, tuple[int, int]] = {}  # metric -> attempt, and steps seen in it

    def update(self, key: SeriesKey, at: tuple[int, int], value: float, earlier: Sequence[float]) -> None:
        """Compares the ``value`` at (attempt, step) with the ``earlier`` ones of the same metric."""
        attempt, step = at
        known, seen = self._since.get(key.metric, (attempt, 0))
        seen = seen + 1 if known == attempt else 1
        self._since[key.metric] = attempt, seen
        if known != attempt:
            self.changes.pop(key.metric, None)
        if seen <= FEW or len(earlier) < FEW:
            return
        change = self.changes.get(key.metric)
        before = change.before if change else median(earlier)
        if before <= 0.0:
            return
        ratio = value / before
        if ratio >= (OVER_RATIO if change else RATIO) and value - before >= LEAST_S:
            onset = change.onset if change else step
            self.changes[key.metric] = ChangePoint(key, "spike", "opened", step, onset, ratio, "ratio", before, value)
        elif change:
            del self.changes[key.metric]

    def forget(self, metric: str) -> bool:
        """The series has a baseline: whether a change was open."""
        self._since.pop(metric, None)
        return self.changes.pop(metric, None) is not None

    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `restore`."""
        return {
            "since": {metric: list(seen) for metric, seen in self._since.items()},
            "changes": {metric: [c.step, c.onset, c.effect, c.before, c.after] for metric, c in self.changes.items()},
        }

    def restore(self, run: str, data: Mapping[str, Any]) -> None:
        """Takes up where `state` left off."""
        self._since = {metric: (seen[0], seen[1]) for metric, seen in data["since"].items()}
        for metric, (step, onset, effect, before, after) in data["changes"].items():
            key = SeriesKey(run, metric)
            self.changes[metric] = ChangePoint(key, "spike", "opened", step, onset, effect, "ratio", before, after)
