"""Which source is polled when.

Polling a source costs tens of microseconds, and hardly ever finds anything.  So a source that is read to its end
*sleeps*, and is only looked at:

- where its open file ends: one ``lseek``, a microsecond, as true as a stat on network file systems.  Every ``poll_s``
  if it is fast, else every second.  Fast is every source that grew within the last quarter of an hour, and as many of
  those that changed last as make `FAST_FILES` together: the ones seen growing within six hours, however rarely they
  grow, then those of which only the time of modification is known.
- what its path names, and when that was modified: one ``stat``, three times as much.  As often; but where somebody
  tells when a name changes, then, and else in turn, `PATHS` a second.

What differs from what the last poll left is polled.  A source that does not sleep is polled by itself: one that is
behind at once, one that waits for a replaced file to fall silent every ``poll_s``, one without a file now and then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from verlwatch.shell._source import Source

FAST_FILES = 128
RECENT_S = 900.0
LIVE_S = 6 * 3600.0  # a step may take two hours
IDLE_S = 1.0
PATHS = 50
RANK_S = 60.0
WAITING_S = 0.5

NEVER = float("-inf")
_SLEEPS = float("inf")


class Rhythm:
    """The sources of a tail, and when each is due.  ``looking_at`` is the one that is looked at right now."""

    def __init__(self, poll_s: float) -> None:
        self.poll_s = poll_s
        self.told = False
        """Whether somebody tells when a name appears, moves or vanishes."""
        self.looking_at: Source | None = None
        self._awake: dict[Source, None] = {}
        self._fast: dict[Source, None] = {}
        self._slow: dict[Source, None] = {}
        self._fast_at = self._slow_at = self._rank_at = NEVER
        self._turns: list[Source] = []
        self._turn = 0

    def drop(self, source: Source) -> None:
        """Forgets a source, which is closed."""
        for sources in (self._awake, self._fast, self._slow):
            sources.pop(source, None)

    def wake(self, source: Source, now: float) -> None:
        """Has a source polled in the next cycle."""
        source.due_at = now
        self._awake[source] = None

    def look_at_paths(self, now: float) -> None:
        """Looks at what every path names: a name has changed."""
        self._look_at_paths([*self._fast, *self._slow], now)

    def set_back(self, now: float) -> None:
        """The clock was set back."""
        self._fast_at = self._slow_at = self._rank_at = NEVER
        for source in self._awake:
            source.due_at = now

    def due(self, now: float) -> list[Source]:
        """What to poll now: those that are not catching up first, then whoever has waited longest."""
        if now >= self._slow_at:
            self._slow_at = now + max(IDLE_S, self.poll_s)
            if now >= self._rank_at:
                self._rank(now)
            self._look(self._slow, now)
            self._look_at_paths(self._in_turn() if self.told else self._slow, now)
        if now >= self._fast_at:
            self._fast_at = now + self.poll_s
            self._look(self._fast, now)
            if not self.told:
                self._look_at_paths(self._fast, now)
        due = [source for source in self._awake if source.due_at <= now]
        return sorted(due, key=lambda source: (source.behind, source.due_at, source.turn))

    def next_at(self) -> float:
        """When something is due."""
        at = self._slow_at if self._fast or self._slow else _SLEEPS
        if self._fast:
            at = min(at, self._fast_at)
        return min(at, *(source.due_at for source in self._awake)) if self._awake else at

    def polled(self, source: Source, now: float) -> None:
        """Takes note of a poll: what the source does next."""
        self._turn += 1
        source.turn = self._turn
        if source.sleeps:
            source.due_at = _SLEEPS
            self._awake.pop(source, None)
        else:
            source.due_at = now + self._interval(source)
            self._awake[source] = None
        if source.waiting:
            self._fast.pop(source, None)
            self._slow.pop(source, None)
        elif source not in self._fast and (source not in self._slow or source.grown_at == now):
            self._place(source, now)

    def _interval(self, source: Source) -> float:
        if source.behind:
            return 0.0
        if source.retry_s:
            return source.retry_s if source.waiting else IDLE_S
        return WAITING_S if source.waiting or source.absent else self.poll_s

    def _place(self, source: Source, now: float) -> None:
        self._slow.pop(source, None)
        live = now - source.changed_at < LIVE_S
        if source.grown_at == now or (live and len(self._fast) < FAST_FILES):
            self._fast[source] = None
            return
        self._slow[source] = None
        if live:
            self._rank_at = NEVER

    def _rank(self, now: float) -> None:
        self._rank_at = now + RANK_S
        ranked = sorted((*self._fast, *self._slow), key=lambda one: (one.grown_at, one.changed_at), reverse=True)
        live = (source for source in ranked if now - source.changed_at < LIVE_S)
        fast = (s for place, s in enumerate(live) if place < FAST_FILES or now - s.grown_at < RECENT_S)
        self._fast = dict.fromkeys(fast)
        self._slow = {source: None for source in ranked if source not in self._fast}

    def _look(self, sources: Iterable[Source], now: float) -> None:
        """Where the open files end."""
        end_of = os.lseek
        stirred = []
        for source in sources:
            self.looking_at = source
            try:
                if end_of(source.fd, 0, os.SEEK_END) != source.end:
                    stirred.append(source)
            except OSError:
                stirred.append(source)
        self._stir(stirred, now)

    def _in_turn(self) -> list[Source]:
        """Those whose paths have waited longest for a look."""
        turn, self._turns = self._turns[:PATHS], self._turns[PATHS:]
        if not self._turns:
            self._turns = [*self._fast, *self._slow]
        return turn

    def _look_at_paths(self, sources: Iterable[Source], now: float) -> None:
        """What the paths name."""
        stirred = []
        for source in sources:
            self.looking_at = source
            try:
                status = os.stat(source.path)  # noqa: PTH116  # a Path costs as much again
                if (status.st_dev, status.st_ino, status.st_mtime_ns) != source.seen:
                    stirred.append(source)
            except OSError:
                stirred.append(source)
        self._stir(stirred, now)

    def _stir(self, sources: Iterable[Source], now: float) -> None:
        self.looking_at = None
        for source in sources:
            if source.due_at > now and not source.waiting:
                self.wake(source, now)
