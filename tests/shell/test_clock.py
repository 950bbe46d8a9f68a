"""The host's clock waits for an event or a moment, whichever comes first."""

from __future__ import annotations

import asyncio
import time

import pytest

from verlwatch.shell import clock as clock_module
from verlwatch.shell.clock import SystemClock


async def test_a_moment_that_has_passed_is_not_waited_for() -> None:
    clock = SystemClock()
    await clock.wait(asyncio.Event(), clock.now() - 1.0)


async def test_a_wait_ends_with_its_event() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    async with asyncio.timeout(5):
        await SystemClock().wait(event, None)
    assert event.is_set()


async def test_a_wait_ends_at_its_moment() -> None:
    clock = SystemClock()
    until = clock.now() + 0.02
    await clock.wait(asyncio.Event(), until)
    assert until - 0.01 <= time.time() <= until + 5


async def test_a_long_wait_ends_early_so_that_a_changed_clock_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "LONGEST_WAIT_S", 0.01)
    async with asyncio.timeout(5):
        await SystemClock().wait(asyncio.Event(), None)
        await SystemClock().wait(asyncio.Event(), time.time() + 3600)
