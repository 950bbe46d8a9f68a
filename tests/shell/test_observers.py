"""Whatever is in OBSERVERS can be started, reconfigured and ended, whether or not there is anything to see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import pytest

from tests.fakes.clock import VirtualClock
from verlwatch.config import Config
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.observers import OBSERVERS, Around, Observer
from verlwatch.shell.observers._kept_up import KeptUp

NOTHING = Around(list, dict, dict)


@pytest.mark.parametrize("make", OBSERVERS)
async def test_an_observer_looks_takes_up_another_configuration_and_ends(
    make: Callable[[Inbox, VirtualClock, Config, Around], Observer],
) -> None:
    clock = VirtualClock()
    observer = make(Inbox(), clock, Config(), NOTHING)
    running = asyncio.ensure_future(observer.run())
    async with asyncio.timeout(5.0):
        await clock.parked(1)
    observer.reconfigure(Config())
    assert not running.done()
    assert all(isinstance(notice, str) and notice for notice in observer.notices())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


class Failing:
    """Looks once, and raises what nobody thought of."""

    def __init__(self, looks: list[Config], config: Config) -> None:
        self.looks, self.config = looks, config

    async def run(self) -> None:
        self.looks.append(self.config)
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    def reconfigure(self, config: Config) -> None:
        self.config = config

    def notices(self) -> Iterable[str]:
        yield "something else"


async def test_an_observer_that_raises_is_shown_and_made_anew_by_the_configuration_in_force() -> None:
    clock, looks, other = VirtualClock(1000.0), list[Config](), Config()
    kept = KeptUp(lambda config: Failing(looks, config), clock, Config())
    running = asyncio.ensure_future(kept.run())
    await clock.parked(1)
    assert len(looks) == 1
    why, more = kept.notices()
    assert why.startswith("the observer of failing failed and is started again: UnicodeDecodeError")
    assert more == "something else"
    kept.reconfigure(other)
    await clock.advance(59.0)
    assert len(looks) == 1
    await clock.advance(2.0)
    assert len(looks) == 2
    assert looks[1] is other
    running.cancel()
