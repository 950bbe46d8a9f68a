"""Room for checkpoints on one file system: they come in lumps, so what counts is bytes per checkpoint."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from math import floor
from statistics import median
from typing import Any

from verlwatch.core.rules import Room

KEPT = 6
"""Checkpoints that are remembered."""
LEAST = 3
"""Checkpoints without which nothing is said of what each takes."""
ROTATED = 0.02
"""Where so little of what a checkpoint takes at once is gone for good, an old one goes with each."""


class Disk:
    """What is free on it, and was when each checkpoint began."""

    def __init__(self) -> None:
        self.free_gb = self.total_gb = 0.0
        self._least = 0.0  # since the last checkpoint began
        self._marks: deque[tuple[int, float]] = deque(maxlen=KEPT)
        self._lumps: deque[float] = deque(maxlen=KEPT)

    def see(self, free_gb: float, total_gb: float) -> None:
        """Takes what is free now."""
        self.free_gb, self.total_gb = free_gb, total_gb
        self._least = min(self._least, free_gb)

    def begin(self, step: int) -> None:
        """A checkpoint begins to be written."""
        if not self.total_gb or (self._marks and step <= self._marks[-1][0]):
            return
        if self._marks:
            self._lumps.append(round(max(0.0, self._marks[-1][1] - self._least), 3))
        self._marks.append((step, self.free_gb))
        self._least = self.free_gb

    def room(self, path: str, step: int, every: float) -> Room | None:
        """How many more fit, the next one ``every`` steps after the last; None where that is not known or no matter."""
        taken = [before - after for (_, before), (_, after) in pairwise(self._marks)]
        if len(taken) < LEAST - 1 or every <= 0.0:
            return None
        each, lump = median(taken), max(median(taken), median(self._lumps))
        if lump <= 0.0:
            return None
        fits = 0
        if self.free_gb >= lump:
            if each <= ROTATED * lump:
                return None
            fits = 1 + floor((self.free_gb - lump) / each)
        steps = max(0.0, every * (fits + 1) - (step - self._marks[-1][0]))
        seen = len(taken)
        return Room(path, self.free_gb, self.total_gb, max(0.0, each), lump, every, fits, steps, seen)

    def state(self) -> dict[str, Any]:
        """JSON-safe."""
        return {
            "free": self.free_gb,
            "total": self.total_gb,
            "least": self._least,
            "marks": [list(mark) for mark in self._marks],
            "lumps": list(self._lumps),
        }

    @classmethod
    def from_state(cls, data: Mapping[str, Any]) -> Disk:
        """The inverse of `state`."""
        self = cls()
        self.free_gb, self.total_gb, self._least = data["free"], data["total"], data["least"]
        self._marks.extend((step, free) for step, free in data["marks"])
        self._lumps.extend(data["lumps"])
        return self
