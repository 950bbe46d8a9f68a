"""What a channel notes of an incident survives, and a receiver that forgets is told again until the incident ends."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from verlwatch.fields import ReceiverConfig
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.notifiers import Repeater, TransientError
from verlwatch.shell.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from verlwatch.core.types import Message
    from verlwatch.shell.notifiers import Place


class Forgetful(Repeater):
    """A receiver that notes the last id of each incident; ``repeated`` are the repetitions with their times."""

    TYPE: ClassVar[str] = "forgetful"
    RESEND_S: ClassVar[float] = 60.0
    Config: ClassVar[type[ReceiverConfig]] = ReceiverConfig

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.start = clock.now()
        self.found: list[str] = []
        self.repeated: list[tuple[float, list[str]]] = []
        self.error: Exception | None = None

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        return {"closed": message.closed_as is not None}

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
        raise NotImplementedError

    async def send_at(self, payload: dict[str, Any], dedup_key: str, place: Place) -> None:
        self.found.append(await place.read())
        await place.note("" if payload["closed"] else f"shows {dedup_key}")

    async def resend(self, places: Sequence[str]) -> None:
        if self.error is not None:
            raise self.error
        self.repeated.append((self.clock.now() - self.start, list(places)))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


@asynccontextmanager
async def running(store: Store, clock: VirtualClock, receiver: Forgetful, is_open: set[str]) -> AsyncIterator[Deliver]:
    deliver = Deliver(store, {"slack": receiver}, clock, open_incidents=lambda: is_open)
    async with asyncio.TaskGroup() as group:
        group.create_task(deliver.loops()[0])
        await clock.parked(1)
        yield deliver
        await deliver.drain(0.0)


async def test_what_was_noted_is_there_for_the_next_message_of_the_incident_and_for_no_other(store: Store) -> None:
    clock = VirtualClock()
    receiver = Forgetful(clock)
    rows = [notification("a1", "a"), notification("b1", "b"), notification("a2", "a")]
    await store.commit(outcome(*rows), clock.now())
    async with running(store, clock, receiver, set()):
        assert receiver.found == ["", "", "shows a1"]
    await store.commit(outcome(notification("a3", "a")), clock.now())
    async with running(store, clock, again := Forgetful(clock), set()):
        assert again.found == ["shows a2"]


async def test_open_incidents_are_repeated_every_minute_in_one_piece_and_others_are_not(store: Store) -> None:
    clock, is_open = VirtualClock(), {"a", "b"}
    receiver = Forgetful(clock)
    await store.commit(outcome(*(notification(f"{name}1", name) for name in "abc")), clock.now())
    async with running(store, clock, receiver, is_open):
        await clock.advance(65.0)
        is_open.discard("a")
        await clock.advance(60.0)
    assert receiver.repeated == [
        (0.0, ["shows a1", "shows b1"]),
        (60.0, ["shows a1", "shows b1"]),
        (120.0, ["shows b1"]),
    ]


async def test_a_restart_repeats_at_once(store: Store) -> None:
    clock = VirtualClock()
    await store.commit(outcome(notification("a1", "a")), clock.now())
    async with running(store, clock, Forgetful(clock), {"a"}):
        pass
    async with running(store, clock, receiver := Forgetful(clock), {"a"}):
        assert receiver.repeated == [(0.0, ["shows a1"])]


async def test_a_repetition_that_fails_is_shown_until_one_is_taken_and_holds_up_nothing(store: Store) -> None:
    clock = VirtualClock()
    receiver = Forgetful(clock)
    await store.commit(outcome(notification("a1", "a")), clock.now())
    async with running(store, clock, receiver, {"a"}) as deliver:
        for error, told in ((TransientError("down"), "down"), (KeyError("canary"), "defect of the notifier")):
            receiver.error = error
            await clock.advance(60.0)
            assert str(deliver.health()[0].last_error).startswith(told)
            assert "canary" not in str(deliver.health())
        await store.commit(outcome(notification("b1", "b")), clock.now())
        deliver.notify()
        await clock.advance(1.0)
        assert receiver.found == ["", ""]
        receiver.error = None
        await clock.advance(60.0)
        assert deliver.health()[0].last_error is None


async def test_a_clock_that_was_set_back_does_not_put_the_next_repetition_off(store: Store) -> None:
    clock = VirtualClock()
    receiver = Forgetful(clock)
    await store.commit(outcome(notification("a1", "a")), clock.now())
    async with running(store, clock, receiver, {"a"}) as deliver:
        clock.move(-3600.0)
        deliver.notify()
        await clock.advance(61.0)
    assert [round(at) for at, _ in receiver.repeated] == [0, -3600, -3540]


async def test_draining_waits_for_no_repetition(store: Store) -> None:
    clock = VirtualClock()
    receiver = Forgetful(clock)
    deliver = Deliver(store, {"slack": receiver}, clock, open_incidents=lambda: {"a"})
    async with asyncio.TaskGroup() as group:
        group.create_task(deliver.loops()[0])
        await clock.parked(1)
        await deliver.drain(300.0)
    assert clock.now() == VirtualClock().now()


async def test_places_are_forgotten_long_after_everything_else(store: Store) -> None:
    now = 1e9
    await store.places.note("slack", "a", "shows a1", now)
    await store.prune(now + 90 * 86400.0, 3600.0, 1 << 30)
    assert await store.places.of("slack") == {"a": "shows a1"}
    await store.prune(now + 91 * 86400.0, 3600.0, 1 << 30)
    assert await store.places.of("slack") == {}
