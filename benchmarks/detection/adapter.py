"""Adapter of the watch for a scorer of detectors on generated series: incidents, not events.

What opens a change is an alarm, at whichever kind; what merely confirms it (a slow step that turned out to last) is no
second one.  A level that moved is.
"""

from __future__ import annotations

from typing import Any

from verlwatch.core.phases import phase as phase_of
from verlwatch.core.series import Watch
from verlwatch.core.types import ChangePoint, SeriesKey, Workload


class Adapter:
    """One series under the scorer's interface."""

    def __init__(self, phase: str, rate: float) -> None:
        known = phase_of(phase)
        self.watch = Watch(SeriesKey("scored", phase), (known.tokens, known.longest), rate)

    def update(
        self, step: int, seconds: float, tokens: float, max_len: float, restart: bool
    ) -> list[tuple[str, int, float]]:
        """One step; (kind, onset step, ratio) of each alarm, kind ``close`` where a change is over."""
        open_kind = self.watch.change.kind if self.watch.change else None
        out = []
        for point in self.watch.update(step, seconds, Workload(tokens, max_len), restart=restart):
            if point.action == "returned":
                out.append(("close", point.onset, point.effect))
            elif point.action == "opened" or (point.action == "changed" and open_kind != "spike"):
                out.append(_alarm(point))
        return out

    def state(self) -> dict[str, Any]:
        """For its size."""
        return self.watch.state()


def _alarm(point: ChangePoint) -> tuple[str, int, float]:
    """A slow step counts as a level that has just begun; more noise has no ratio."""
    if point.kind == "dispersion":
        return (point.kind, point.onset, 0.0)
    return ("drift" if point.kind == "drift" else "level", point.onset, point.effect)


def make(phase: str, false_alarms_per_10k_steps: float) -> Adapter:
    """What the scorer calls."""
    return Adapter(phase, false_alarms_per_10k_steps * 1e-4)
