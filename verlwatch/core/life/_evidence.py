"""What says that a run has died: faults of its log, its process, its job.

One failure has many voices: every rank prints its traceback, Ray misses the workers, the driver ends.  They are
gathered for a moment before anything is told, so that what caused the others can lead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verlwatch.core.rules import Attributes, Fault
from verlwatch.core.types import Event

SETTLE_S, MOST_SETTLE_S = 4.0, 15.0
"""So long after the last of them, and at most so long after the first, they are told."""
GONE_S = 3.0
"""The same for a process that is gone: its last lines are there already, but a traceback is closed only 2 s later.

Told before, one death would be told twice, first without its reason.
"""
MOST, MOST_SAID, LONGEST = 48, 48, 1000
"""Faults, attributes of each and characters of their texts that are kept."""
_SURE = frozenset({"worker_died"})
"""Faults that a log gives as warnings, and that no run survives."""
_ENDS = frozenset({
    "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "DEADLINE", "BOOT_FAIL",
    "REVOKED",
})  # fmt: skip
"""States of a job that is over.  Source: Slurm ``sacct``, JOB STATE CODES."""


class Evidence:
    """Of one attempt, since its last step."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.gone: Attributes | None = None
        """The training process that has ended."""
        self.job: Attributes = {}
        self.ended = ""
        """What in the log says that it has ended."""
        self.is_old = False
        """Whether all of it was there before anybody watched: no news."""
        self._first_at = self._due_at = 0.0

    def hear(self, event: Event, now: float, *, is_current: bool, history: bool = False) -> None:
        """Takes what an event says of the end; ``is_current``: its writer is known to be of this attempt."""
        if self._take(event, now, is_current=is_current):
            self.is_old = history and (self.is_old or not self._first_at)
            if not self.is_whole(now):  # what comes later adds to what is told already
                self._first_at = self._first_at or now
                wait_s = GONE_S if event.name == "process" else SETTLE_S
                self._due_at = min(now + wait_s, self._first_at + MOST_SETTLE_S)

    def _take(self, event: Event, now: float, *, is_current: bool) -> bool:
        """Whether it says that something has ended."""
        said = event.attributes
        if event.name == "fault":
            kind = str(said.get("class", ""))
            if len(self.faults) < MOST:
                writer = event.origin.writer.name
                self.faults.append(Fault(kind, _brief(said), event.excerpt, event.severity, writer, now))
            return event.severity == "critical" or kind in _SURE
        if event.name == "process" and said.get("state") == "gone":
            self.gone = _brief(said)
            return True
        if event.name == "job":
            self.job = _brief(said)
            return said.get("state") in _ENDS
        if event.name == "wandb_summary" and is_current:
            self.ended = "wandb's summary"
            return True
        return False

    @property
    def began_at(self) -> float | None:
        """When the first of it came."""
        return self._first_at or None

    @property
    def settles_at(self) -> float | None:
        """When no more of it is expected; None while there is none."""
        return self._due_at or None

    def is_whole(self, now: float) -> bool:
        """Whether there is any, and no more is expected."""
        return self.settles_at is not None and now >= self.settles_at

    @property
    def is_end(self) -> bool:
        """Whether it says that nothing more is to be expected, be it in good order or not."""
        return bool(self.ended or self.gone is not None or self.job.get("state") in _ENDS)

    def turn(self, now: float) -> bool:
        """It is ``now``; whether the clock was set back: the times of before count from here then."""
        back = max(0.0, self._first_at - now)
        self._first_at, self._due_at = self._first_at - back, self._due_at - back
        return back > 0.0

    def forget(self) -> None:
        """The run has shown that it lives, or another attempt begins."""
        self.faults, self.gone, self.ended, self.is_old = [], None, "", False
        self._first_at = self._due_at = 0.0

    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `restore`."""
        return {
            "faults": [[fault.kind, dict(fault.said), *fault[2:]] for fault in self.faults],
            "gone": None if self.gone is None else dict(self.gone),
            "job": dict(self.job),
            "ended": self.ended,
            "is_old": self.is_old,
            "times": [self._first_at, self._due_at],
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes up where it was."""
        self.faults = [Fault(*fault) for fault in data["faults"]]
        self.gone, self.job, self.ended = data["gone"], data["job"], data["ended"]
        self.is_old = data["is_old"]
        self._first_at, self._due_at = data["times"]


def _brief(said: Attributes) -> Attributes:
    """What is kept of it with every commit, however much an agent says."""
    return {name: fact[:LONGEST] if isinstance(fact, str) else fact for name, fact in list(said.items())[:MOST_SAID]}
