"""A way out, and its loop: what receivers (`deliver.py`) and a hub (`fleet/link.py`) have in common.

A line turns: it sends what is due and says when to look again.  It is woken by a commit, rests after a failure, tells
since when nothing has been taken, and ends when it is drained.  Where the clock is set back, all that waits for a time
of the old one is moved back with it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from typing import ClassVar

from verlwatch.core.types import Outcome
from verlwatch.shell._rows import OutboxStats
from verlwatch.shell.clock import Clock
from verlwatch.status import ReceiverStatus

FIRST_BACKOFF_S = 1.0
_SLIP_S = 1.0
_DOUBLINGS = 30
_NOTHING = Outcome()


def backoff(failures: int, longest_s: float) -> float:
    """How long to rest after so many failures before this one: FIRST_BACKOFF_S, doubled with each."""
    return min(longest_s, FIRST_BACKOFF_S * 2.0 ** min(failures, _DOUBLINGS))


class Line(ABC):
    """The way to one receiver, whose `turn` a kind of line defines."""

    STUCK_S: ClassVar[float]
    """Who has taken nothing for so long after a failure is told of as stuck."""
    NOUN: ClassVar[str] = "messages"

    def __init__(self, name: str, kind: str, clock: Clock, delivered: int = 0) -> None:
        self.name = name
        self.kind = kind
        self.delivered = delivered
        self.wake = asyncio.Event()
        self.stop_at: float | None = None
        self.stats = OutboxStats()
        self.error: str | None = None
        self._uncounted = 0  # queued since `stats`: a status must not show less than what is committed
        self._clock = clock
        self._rests_until = 0.0
        self._failing_since: float | None = None
        self._seen_at = clock.now()

    # ------------------------------------------------------------------------------------------------ of each kind
    @abstractmethod
    async def turn(self) -> float | None:
        """Sends what is due; when to look again, None for not before something is new."""
        ...

    @abstractmethod
    async def look(self) -> OutboxStats:
        """What waits in the store."""
        ...

    @abstractmethod
    def queued(self, outcome: Outcome) -> int:
        """How many rows of a commit are for this line."""
        ...

    def set_back(self, seconds: float) -> None:
        """The clock was set back: moves all times that are waited for."""
        self._rests_until -= seconds
        self._failing_since = None if self._failing_since is None else self._failing_since - seconds

    # ------------------------------------------------------------------------------------------------ the loop
    async def run(self) -> None:
        """Turns until `stop_at` leaves nothing to do."""
        while True:
            self.wake.clear()
            stopping = self.stop_at is not None
            until = await self.turn()
            if stopping and (until is None or self.stop_at is None or until >= self.stop_at):
                return
            await self._clock.wait(self.wake, until)

    async def count(self) -> None:
        """Counts what waits."""
        counted = self._uncounted
        self.stats = await self.look()
        self._uncounted -= counted

    def notify(self, outcome: Outcome) -> None:
        """There may be new rows."""
        self._uncounted += self.queued(outcome)
        self.wake.set()

    def time(self) -> float:
        """Now, after `set_back` where that is needed."""
        now = self._clock.now()
        back = self._seen_at - now
        if back > _SLIP_S:
            self.set_back(back)
        self._seen_at = now
        return now

    def fails(self, error: str, now: float) -> None:
        """Notes a failure."""
        self.error = error
        self._failing_since = now if self._failing_since is None else self._failing_since

    def works(self) -> None:
        """Notes that something was taken."""
        self.error = self._failing_since = None

    # ------------------------------------------------------------------------------------------------ how it fares
    @property
    def pending(self) -> int:
        """Rows not taken yet."""
        return self.stats.pending + self._uncounted

    def health(self) -> ReceiverStatus:
        """Its rows and last error."""
        return ReceiverStatus(
            name=self.name,
            type=self.kind,
            pending=self.pending,
            dead=self.stats.dead,
            delivered=self.delivered,
            oldest_pending_at=self.stats.oldest_pending_at,
            last_error=self.error or self.stats.last_error,
        )

    def stuck(self, now: float) -> str | None:
        """A sentence where nothing has been taken for STUCK_S or longer."""
        if self._failing_since is None or now - self._failing_since < self.STUCK_S:
            return None
        return (
            f"receiver {self.name} has taken nothing for {now - self._failing_since:.0f} s, "
            f"{self.stats.pending} {self.NOUN} wait: {self.error}"
        )


class Lines:
    """The lines in force, and their tasks."""

    def __init__(self, lines: Sequence[Line], clock: Clock) -> None:
        self._clock = clock
        self._lines = lines
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    def loops(self) -> list[Coroutine[None, None, None]]:
        """One coroutine for each line, for the caller's TaskGroup; they end after `drain`."""
        return [self._run(line) for line in self._lines]

    async def _run(self, line: Line) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - whatever runs in a TaskGroup is a task
        self._tasks.add(task)
        try:
            await line.run()
        finally:
            self._tasks.discard(task)
            if not self._tasks:
                self._ended.set()

    async def count(self) -> None:
        """Counts what waits, so that a status tells it before the first turn."""
        for line in self._lines:
            await line.count()

    async def count_strays(self) -> None:
        """Counts what is left of receivers that are not in force any more."""

    def notify(self, outcome: Outcome = _NOTHING) -> None:
        """There may be new rows: to be called after each commit, with what it held."""
        for line in self._lines:
            line.notify(outcome)

    async def drain(self, grace_s: float) -> None:
        """Sends what is due within ``grace_s`` seconds and ends the loops; what is left stays in the store.

        When it returns no loop runs any more.  What is on its way at the end of the grace is sent again later.
        """
        stop_at = self._clock.now() + grace_s
        for line in self._lines:
            line.stop_at = stop_at
            line.wake.set()
        while self._tasks and 0.0 < stop_at - self._clock.now() <= grace_s:  # more: the clock was set back
            await self._clock.wait(self._ended, stop_at)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await self._ended.wait()

    def delivered(self) -> Mapping[str, int]:
        """How much each receiver has taken since the start, by name."""
        return {line.name: line.delivered for line in self._lines}

    def health(self) -> tuple[ReceiverStatus, ...]:
        """Each receiver's rows and last error."""
        return tuple(line.health() for line in self._lines)

    def stuck(self) -> tuple[str, ...]:
        """A sentence on each receiver that does not take what it should."""
        now = self._clock.now()
        return tuple(text for line in self._lines if (text := line.stuck(now)))
