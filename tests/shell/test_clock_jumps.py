"""A clock that is set back an hour or ahead a year: nothing stands still, nothing spins, nothing is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.core.watched import step_line
from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from verlwatch.core.engine import Engine
from verlwatch.core.types import Chunk, Message, Outcome, Transition
from verlwatch.fields import ReceiverConfig
from verlwatch.shell.clock import Evenness
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.judge import Judge
from verlwatch.shell.notifiers import Notifier, TransientError
from verlwatch.shell.store import Store

HOUR = 3600.0
YEAR = 365 * 86_400.0
STEP = b"step:5 - critic/score:0.5 - timing_s/gen:6.5\n"
"""A line that may have been cut: its rest is waited for."""


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1e9)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


class Down(Notifier):
    """A receiver that fails until told otherwise."""

    TYPE: ClassVar[str] = "down"
    Config: ClassVar[type[ReceiverConfig]] = ReceiverConfig

    def __init__(self, retry_after: float | None = None) -> None:
        self.fails = True
        self.tries = 0
        self._retry_after = retry_after

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        return {}

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
        self.tries += 1
        if self.fails:
            raise TransientError("down", retry_after=self._retry_after)


@pytest.mark.parametrize("retry_after", [None, 30.0])
@pytest.mark.parametrize("jump", [-HOUR, -YEAR, YEAR])
async def test_a_receiver_that_failed_is_tried_again_when_its_wait_is_over(
    store: Store, clock: VirtualClock, jump: float, retry_after: float | None
) -> None:
    receiver = Down(retry_after)
    await store.commit(outcome(notification("k")), clock.now())
    deliver = Deliver(store, {"slack": receiver}, clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(deliver.loops()[0])
        await clock.advance(40.0)
        receiver.fails = False
        tries = receiver.tries
        clock.move(jump)
        deliver.notify()  # a wait ends after a minute at the latest, whatever the clock says
        await clock.advance(100.0)
        assert receiver.tries == tries + 1
        assert (await store.outbox.stats())["slack"].done == 1
        await deliver.drain(1.0)


async def test_draining_ends_where_the_clock_is_set_back_meanwhile(store: Store, clock: VirtualClock) -> None:
    sending = asyncio.Event()

    class Hanging(Down):
        async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
            sending.set()
            await asyncio.Event().wait()

    await store.commit(outcome(notification("k")), clock.now())
    deliver = Deliver(store, {"slack": Hanging()}, clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(deliver.loops()[0])
        await sending.wait()
        drain = group.create_task(deliver.drain(5.0))
        await clock.parked(1)
        clock.move(-HOUR)
        for waiter in clock._waiters:
            waiter.time_has_come.set()  # the time that was waited for has passed, only the clock does not show it
        async with asyncio.timeout(5):
            await drain


class Judging:
    """A judge over a real engine and store, driven by hand."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.inbox = Inbox()
        self.engine = Engine()
        self.clock = clock
        self.judge = Judge(self.engine, store, self.inbox, clock, lambda _: None)

    async def read(self, *chunks: Chunk) -> Outcome:
        """One turn."""
        self.judge._turn()
        outcome = self.judge._judge(chunks, [])
        await self.judge._commit(outcome)
        return outcome

    def patience(self) -> float:
        return self.judge._patience()


@pytest.mark.parametrize("jump", [-0.5, -HOUR, -YEAR, YEAR])
async def test_the_last_step_line_is_judged_after_its_two_seconds(
    store: Store, clock: VirtualClock, jump: float
) -> None:
    judging = Judging(store, clock)
    assert not (await judging.read(Chunk("log", 0, 0, STEP, "", "r"))).steps, "its rest may follow"
    clock.move(jump)
    told = [*(await judging.read()).steps]
    for _ in range(2):
        clock.move(1.0)
        told += (await judging.read()).steps
        assert judging.patience() <= 1.0
    assert [row.step for row in told] == [5]
    assert judging.engine.deadline() is None
    assert judging.patience() == 1.0, "nothing spins"
    await judging.read(Chunk("log", 0, len(STEP), STEP.replace(b"step:5", b"step:6"), "", "r"))
    clock.move(2.0)
    outcome = await judging.read()
    assert [row.at for row in outcome.steps] == [clock.now()], "the next step has the time of the new clock"


def test_what_is_old_is_not_known_before_the_clock_has_run_evenly_for_a_while() -> None:
    evenness = Evenness(0.0, pause_s=180.0, needed_s=HOUR)
    now, believed = 0.0, []
    for minute in range(300):
        now += 60.0
        now += {100: YEAR, 200: -YEAR}.get(minute, 0.0)
        believed.append(evenness.holds(now))
    assert believed.index(True) == 59
    assert believed[59:100] == [True] * 41
    assert believed[100:160] == [False] * 60
    assert believed[160:200] == [True] * 40
    assert believed[200:260] == [False] * 60
    assert believed[260]


@pytest.mark.parametrize("jump", [2 * HOUR, -2 * HOUR])
async def test_a_training_is_not_late_because_its_host_was_suspended_or_the_clock_was_set(
    store: Store, clock: VirtualClock, jump: float
) -> None:
    judging, at = Judging(store, clock), 0
    told: list[Transition] = []

    async def turns(count: int, *, first_step: int = 0) -> None:
        """Five seconds each; a step of twenty where there are any."""
        nonlocal at
        for turn in range(count):
            chunks = []
            if first_step and turn % 4 == 3:
                line = step_line(first_step + turn // 4, gen=15.0, update_actor=5.0).encode() + b"\n"
                chunks, at = [Chunk("log", 0, at, line, "", "r")], at + len(line)
            told.extend((await judging.read(*chunks)).transitions)
            clock.move(5.0)

    await turns(48, first_step=1)
    clock.move(jump)
    await turns(24, first_step=13)
    assert told == []
    await turns(12)
    assert [transition.rule for transition in told] == ["silent"]
