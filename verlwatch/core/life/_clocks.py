"""The two clocks of a run: of its progress and of its activity.

A step, or what goes on before the first one, is progress; any line at all is activity.  Time in which nobody watched
counts for neither: a host that was suspended, a clock that was set.
"""

from __future__ import annotations

from typing import Any

QUIET_FACTOR, QUIET_LEAST_S = 4.0, 300.0
"""A run is quiet when no line has come for so many times its longest pause so far, and for so long at least."""


class Clocks:
    """When an attempt began, went on, was heard; 0 for never."""

    def __init__(self) -> None:
        self.began_at = self.progress_at = self.heard_at = 0.0
        self.is_broken = False
        """Whether since the last step there was a time in which nobody watched."""
        self._pause_s = 0.0  # the longest between two lines

    def heard(self, now: float, *, watched: bool) -> None:
        """A line has come; ``watched``: somebody has waited for it since the one before."""
        if watched and self.heard_at:
            self._pause_s = max(self._pause_s, now - self.heard_at)
        self.began_at = self.began_at or now
        self.progress_at = self.progress_at or now
        self.heard_at = now

    def begin(self, now: float) -> None:
        """A trainer starts."""
        self.began_at = now
        self.step(now)

    def step(self, now: float, *, watched: bool = True) -> None:
        """A step is over; ``watched``: its line came just now."""
        self.progress_at, self.is_broken = now, not watched

    def seen_again(self, now: float) -> None:
        """The log could not be read until now: what it held meanwhile was not missing."""
        self.heard_at, self.is_broken = now, True

    def slept(self, seconds: float) -> None:
        """Nobody has watched for so long."""
        self.is_broken = True
        self.progress_at += seconds if self.progress_at else 0.0
        self.heard_at += seconds if self.heard_at else 0.0

    def turn(self, now: float) -> bool:
        """It is ``now``; whether the clock was set back: the times of before count from here then."""
        is_back = now < max(self.progress_at, self.heard_at)
        self.progress_at, self.heard_at = min(self.progress_at, now), min(self.heard_at, now)
        return is_back

    @property
    def quiet_s(self) -> float:
        """So long without any line is longer than it ever was."""
        return max(QUIET_LEAST_S, QUIET_FACTOR * self._pause_s) if self._pause_s else float("inf")

    def state(self) -> list[float]:
        """JSON-safe; the inverse of `restore`."""
        return [self.began_at, self.progress_at, self.heard_at, self._pause_s]

    def restore(self, data: Any) -> None:
        """Takes up where it was."""
        self.began_at, self.progress_at, self.heard_at, self._pause_s = data
        self.is_broken = True
