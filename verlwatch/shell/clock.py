"""Time as an object that the loops are given, so that tests can bring their own."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

LONGEST_WAIT_S = 60.0
"""A wait ends after so long even if nothing happened: a clock that was set or a host that slept is noticed then."""


class Clock(Protocol):
    """What a loop needs of time."""

    def now(self) -> float:
        """Epoch seconds."""
        ...

    async def wait(self, event: asyncio.Event, until: float | None) -> None:
        """Returns when ``event`` is set or ``until`` (epoch seconds; None: never) has come, or earlier.

        The caller looks at `now` and at what it waits for, and waits again if there is nothing to do.
        """
        ...


class Evenness:
    """Whether a clock has run evenly for ``needed_s``: after a jump, what looks old may not be.

    It must be looked at every ``pause_s`` at least.  A host that slept cannot be told from a clock that was set.
    """

    def __init__(self, now: float, *, pause_s: float, needed_s: float) -> None:
        self._pause_s = pause_s
        self._needed_s = needed_s
        self._since = self._looked_at = now

    def holds(self, now: float) -> bool:
        """Looks at the clock."""
        if not 0.0 <= now - self._looked_at <= self._pause_s:
            self._since = now
        self._looked_at = now
        return now - self._since >= self._needed_s


class SystemClock:
    """The host's clock."""

    def now(self) -> float:
        """Epoch seconds."""
        return time.time()

    async def wait(self, event: asyncio.Event, until: float | None) -> None:
        """See `Clock.wait`."""
        left = LONGEST_WAIT_S if until is None else min(LONGEST_WAIT_S, until - self.now())
        try:
            async with asyncio.timeout(left):
                await event.wait()
        except TimeoutError:
            pass
