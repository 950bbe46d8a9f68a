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
