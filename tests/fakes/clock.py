"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(eq=False)
class _Waiter:
    event: asyncio.Event
    until: float | None
    time_has_come: asyncio.Event


class VirtualClock:
    """`Clock` for tests.  Whoever waits is parked until its event is set or `advance` reaches its time."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self._now = now
        self._waiters: list[_Waiter] = []
        self._changed = asyncio.Event()

    def now(self) -> float:
        return self._now

    async def wait(self, event: asyncio.Event, until: float | None) -> None:
        if event.is_set() or (until is not None and until <= self._now):
            await asyncio.sleep(0)
            return
        waiter = _Waiter(event, until, asyncio.Event())
        self._waiters.append(waiter)
        self._changed.set()
        ends = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(waiter.time_has_come.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            self._waiters.remove(waiter)
            self._changed.set()

    async def parked(self, count: int) -> None:
        """Returns when ``count`` tasks wait for this clock and have nothing else to do."""
        await self.until(lambda: len([w for w in self._waiters if self._is_parked(w)]) >= count)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when the condition holds; it is looked at whenever somebody begins or ends to wait."""
        async with asyncio.timeout(10):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def advance(self, seconds: float, *, parked: int = 1) -> None:
        """Moves the time on, stopping at each moment that somebody waits for until ``parked`` tasks wait again."""
        target = self._now + seconds
        while True:
            await self.parked(parked)
            moments = [w.until for w in self._waiters if w.until is not None and w.until <= target]
            if not moments:
                break
            self.move(max(0.0, min(moments) - self._now))
        self._now = target

    def move(self, seconds: float) -> None:
        """Moves the time on and waits for nobody."""
        self._now += seconds
        for waiter in self._waiters:
            if waiter.until is not None and waiter.until <= self._now:
                waiter.time_has_come.set()

    def _is_parked(self, waiter: _Waiter) -> bool:
        return not waiter.event.is_set() and not waiter.time_has_come.is_set()
