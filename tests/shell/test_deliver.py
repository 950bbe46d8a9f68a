"""Messages reach their receivers in order, at least once, whatever the receivers do meanwhile."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from verlwatch.fields import ReceiverConfig
from verlwatch.shell.deliver import DEFECTS, SEND_LIMIT_S, STUCK_S, Deliver
from verlwatch.shell.notifiers import Notifier, PermanentError, TransientError
from verlwatch.shell.store import Store, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from verlwatch.core.types import Message

START = 1_000_000.0
HOUR = 3600.0


class Recorder(Notifier):
    """A receiver in memory: ``answers(now, key)`` returns for yes and raises for no."""

    TYPE: ClassVar[str] = "recorder"
    Config: ClassVar[type[ReceiverConfig]] = ReceiverConfig

    def __init__(self, clock: VirtualClock, answers: Callable[[float, str], None] | None = None) -> None:
        self.clock = clock
        self.answers = answers
        self.tries: list[tuple[float, str]] = []
        self.taken: list[str] = []

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        return {"title": message.title}

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
        assert payload == {"title": f"title of {dedup_key}"}
        since = self.clock.now() - START
        self.tries.append((since, dedup_key))
        if self.answers is not None:
            self.answers(since, dedup_key)
        self.taken.append(dedup_key)


class Paced(Recorder):
    """A receiver that wants one message a second at most."""

    MIN_INTERVAL_S: ClassVar[float] = 1.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


@asynccontextmanager
async def running(
    store: Store, clock: VirtualClock, *, collapse_after_s: float = math.inf, **receivers: Recorder
) -> AsyncIterator[Deliver]:
    """The loops of these receivers, all of them waiting for something to do."""
    deliver = Deliver(store, receivers, clock, max_backoff_s=300.0, collapse_after_s=collapse_after_s)
    async with asyncio.TaskGroup() as group:
        for loop in deliver.loops():
            group.create_task(loop)
        await clock.parked(len(receivers))
        yield deliver
        await deliver.drain(0.0)


def failing_until(end: float, error: Exception) -> Callable[[float, str], None]:
    def answers(now: float, _key: str) -> None:
        if now < end:
            raise error

    return answers


async def test_a_commit_is_delivered_at_once_and_marked_as_done(store: Store, clock: VirtualClock) -> None:
    slack = Recorder(clock)
    async with running(store, clock, slack=slack) as deliver:
        await store.commit(outcome(notification("k")), clock.now())
        deliver.notify()
        await clock.parked(1)
        assert slack.tries == [(0.0, "k")]
        (health,) = deliver.health()
        assert (health.name, health.type, health.pending, health.delivered) == ("slack", "recorder", 0, 1)
    assert (await store.outbox.stats())["slack"].done == 1


async def test_what_was_committed_before_the_start_is_delivered(store: Store, clock: VirtualClock) -> None:
    await store.commit(outcome(notification("a"), notification("b", "i2"), notification("c")), clock.now())
    slack = Recorder(clock)
    async with running(store, clock, slack=slack):
        assert slack.taken == ["a", "b", "c"]


async def test_nothing_is_lost_when_a_receiver_is_down_for_an_hour_and_all_comes_in_order(
    store: Store, clock: VirtualClock
) -> None:
    slack = Recorder(clock, failing_until(HOUR, TransientError("cannot connect")))
    async with running(store, clock, slack=slack) as deliver:
        for n in range(60):
            await store.commit(outcome(notification(f"k{n}", f"i{n % 7}")), clock.now())
            deliver.notify()
            await clock.advance(60.0)
        assert slack.taken == []
        assert len(slack.tries) < 50
        await clock.advance(300.0)
        assert slack.taken == [f"k{n}" for n in range(60)]
    stats = (await store.outbox.stats())["slack"]
    assert (stats.pending, stats.done, stats.dead) == (0, 60, 0)


async def test_a_dead_receiver_does_not_delay_another(store: Store, clock: VirtualClock) -> None:
    slack, hook = Recorder(clock, failing_until(HOUR, TransientError("down"))), Recorder(clock)
    await store.commit(outcome(notification("k"), notification("k", receiver="hook")), clock.now())
    async with running(store, clock, slack=slack, hook=hook):
        assert (slack.taken, hook.taken) == ([], ["k"])


async def test_the_backoff_doubles_up_to_its_limit(store: Store, clock: VirtualClock) -> None:
    slack = Recorder(clock, failing_until(HOUR, TransientError("down")))
    await store.commit(outcome(notification("k")), clock.now())
    async with running(store, clock, slack=slack):
        await clock.advance(1200.0, parked=1)
    assert [at for at, _ in slack.tries] == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111]


async def test_the_backoff_goes_on_after_a_restart(store: Store, clock: VirtualClock) -> None:
    slack = Recorder(clock, failing_until(HOUR, TransientError("down")))
    await store.commit(outcome(notification("k")), clock.now())
    async with running(store, clock, slack=slack):
        await clock.advance(40.0)
    async with running(store, clock, slack=slack):
        await clock.advance(100.0)
    assert [at for at, _ in slack.tries] == [0, 1, 3, 7, 15, 31, 63, 127]


async def test_retry_after_is_rounded_up_and_holds_for_the_whole_receiver(store: Store, clock: VirtualClock) -> None:
    slack = Recorder(clock, failing_until(1.0, TransientError("busy", retry_after=29.2)))
    await store.commit(outcome(notification("a"), notification("b", "i2")), clock.now())
    async with running(store, clock, slack=slack):
        await clock.advance(29.5)
        assert slack.tries == [(0.0, "a")]
        await clock.advance(1.0)
        assert slack.tries == [(0.0, "a"), (30.0, "a"), (30.0, "b")]


async def test_retry_after_survives_a_restart_and_holds_for_messages_that_came_later(
    store: Store, clock: VirtualClock
) -> None:
    slack = Recorder(clock, failing_until(1.0, TransientError("busy", retry_after=600)))
    await store.commit(outcome(notification("a")), clock.now())
    async with running(store, clock, slack=slack):
        pass
    await store.commit(outcome(notification("b", "i2")), clock.now())
    async with running(store, clock, slack=slack):
        await clock.advance(599.0)
        assert slack.taken == []
        await clock.advance(1.0)
        await clock.parked(1)
        assert slack.tries == [(0.0, "a"), (600.0, "a"), (600.0, "b")]


async def test_an_absurd_retry_after_ends_within_a_day(store: Store, clock: VirtualClock) -> None:
    slack = Recorder(clock, failing_until(1.0, TransientError("busy", retry_after=1e12)))
    await store.commit(outcome(notification("a")), clock.now())
    async with running(store, clock, slack=slack):
        await clock.advance(24 * HOUR)
        await clock.parked(1)
        assert slack.taken == ["a"]


async def test_a_final_no_makes_a_dead_letter_and_the_next_message_is_sent(store: Store, clock: VirtualClock) -> None:
    def answers(_now: float, key: str) -> None:
        if key == "a":
            raise PermanentError("the channel is archived")

    slack = Recorder(clock, answers)
    await store.commit(outcome(notification("a"), notification("b")), clock.now())
    async with running(store, clock, slack=slack) as deliver:
        assert slack.taken == ["b"]
        (health,) = deliver.health()
        assert (health.dead, health.pending, health.last_error) == (1, 0, "the channel is archived")


async def test_a_receiver_whose_last_word_was_no_is_named_until_it_takes_one(store: Store, clock: VirtualClock) -> None:
    slack = Recorder(clock, failing_until(HOUR, PermanentError("no_service")))
    await store.commit(outcome(notification("a")), clock.now())
    async with running(store, clock, slack=slack) as deliver:
        await clock.advance(1.0)
        assert deliver.stuck() == ("receiver slack refused the last message, 1 are given up: no_service",)
        await clock.advance(HOUR)
        await store.commit(outcome(notification("b")), clock.now())
        deliver.notify()
        await clock.advance(1.0)
        assert deliver.stuck() == ()


async def test_one_message_that_always_fails_holds_up_only_its_own_incident(store: Store, clock: VirtualClock) -> None:
    def answers(_now: float, key: str) -> None:
        if key == "bad1":
            raise TransientError("the receiver answered 500")

    slack = Recorder(clock, answers)
    rows = [
        notification("bad1", "bad"),
        *(notification(f"k{n}", f"i{n}") for n in range(3)),
        notification("bad2", "bad"),
    ]
    await store.commit(outcome(*rows), clock.now())
    async with running(store, clock, slack=slack) as deliver:
        await clock.advance(HOUR)
        assert slack.taken == ["k0", "k1", "k2"]
        (health,) = deliver.health()
        assert (health.pending, health.oldest_pending_at) == (2, START)
        assert health.last_error == "the receiver answered 500"


async def test_a_receiver_s_own_pace_is_kept(store: Store, clock: VirtualClock) -> None:
    slack = Paced(clock)
    await store.commit(outcome(*(notification(f"k{n}", f"i{n}") for n in range(5))), clock.now())
    async with running(store, clock, slack=slack):
        await clock.advance(10.0)
    assert slack.tries == [(float(n), f"k{n}") for n in range(5)]


async def test_a_defect_of_a_notifier_is_tried_a_few_times_and_then_given_up(store: Store, clock: VirtualClock) -> None:
    def answers(_now: float, key: str) -> None:
        if key == "a":
            raise KeyError("https://hooks.example.org/canary")

    slack = Recorder(clock, answers)
    await store.commit(outcome(notification("a"), notification("b")), clock.now())
    async with running(store, clock, slack=slack) as deliver:
        await clock.advance(HOUR)
        assert [key for _, key in slack.tries] == ["a"] * DEFECTS + ["b"]
        (health,) = deliver.health()
        assert health.dead == 1
        assert str(health.last_error).startswith("defect of the notifier, please report: KeyError in answers, line")
        assert "canary" not in str(health)


async def test_a_receiver_that_hangs_is_given_up_on_for_now(
    store: Store, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging(Recorder):
        async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr("verlwatch.shell.deliver.SEND_LIMIT_S", 0.01)
    await store.commit(outcome(notification("k")), clock.now())
    async with running(store, clock, slack=Hanging(clock)) as deliver:
        (health,) = deliver.health()
        assert (health.pending, health.last_error) == (1, "no answer within 0.01 s")
    assert SEND_LIMIT_S == 60.0


async def test_a_receiver_that_takes_nothing_is_reported_until_it_does(store: Store, clock: VirtualClock) -> None:
    slack = Recorder(clock, failing_until(700.0, TransientError("cannot connect to hooks.slack.com:443")))
    await store.commit(outcome(notification("k")), clock.now())
    async with running(store, clock, slack=slack) as deliver:
        assert deliver.stuck() == ()
        await clock.advance(STUCK_S)
        assert deliver.stuck() == (
            "receiver slack has taken nothing for 300 s, 1 messages wait: cannot connect to hooks.slack.com:443",
        )
        await clock.advance(600.0)
        await clock.parked(1)
        assert (slack.taken, deliver.stuck()) == (["k"], ())


# ---------------------------------------------------------------------------------------------------- the disk
async def test_a_message_taken_while_the_disk_is_full_is_not_sent_again(
    store: Store, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = [True, True]
    real = store.outbox.done

    async def done(row_id: int, now: float) -> None:
        if full:
            full.pop()
            raise StoreUnavailable("the disk is full")
        await real(row_id, now)

    monkeypatch.setattr(store.outbox, "done", done)
    slack = Recorder(clock)
    await store.commit(outcome(notification("k")), clock.now())
    async with running(store, clock, slack=slack):
        await clock.advance(5.0)
    assert slack.taken == ["k"]
    assert (await store.outbox.stats())["slack"].done == 1


async def test_an_outbox_that_cannot_be_read_is_tried_again(
    store: Store, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [True]
    real = store.outbox.hold

    async def hold(receiver: str) -> float:
        if failures:
            failures.pop()
            raise StoreUnavailable("the disk fails")
        return await real(receiver)

    monkeypatch.setattr(store.outbox, "hold", hold)
    slack = Recorder(clock)
    await store.commit(outcome(notification("k")), clock.now())
    async with running(store, clock, slack=slack):
        await clock.advance(1.0)
        await clock.parked(1)
        assert slack.taken == ["k"]


# ---------------------------------------------------------------------------------------------------- the end
async def test_draining_sends_what_is_due_and_then_ends(store: Store, clock: VirtualClock) -> None:
    slack = Recorder(clock)
    deliver = Deliver(store, {"slack": slack}, clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(deliver.loops()[0])
        await clock.parked(1)
        await store.commit(outcome(notification("a"), notification("b")), clock.now())
        await deliver.drain(10.0)
    assert slack.taken == ["a", "b"]
    assert clock.now() == START


async def test_draining_leaves_in_the_outbox_what_does_not_fit_into_the_grace(
    store: Store, clock: VirtualClock
) -> None:
    slack = Paced(clock)
    await store.commit(outcome(*(notification(f"k{n}", f"i{n}") for n in range(9))), clock.now())
    deliver = Deliver(store, {"slack": slack}, clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(deliver.loops()[0])
        await clock.parked(1)
        drain = group.create_task(deliver.drain(2.5))
        await clock.advance(1.0, parked=2)
        clock.move(1.0)
        await drain
    assert slack.taken == ["k0", "k1", "k2"]
    assert (await store.outbox.stats())["slack"].pending == 6


async def test_draining_does_not_wait_for_a_receiver_that_hangs(store: Store, clock: VirtualClock) -> None:
    started = asyncio.Event()

    class Hanging(Recorder):
        async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
            started.set()
            await asyncio.Event().wait()

    await store.commit(outcome(notification("k")), clock.now())
    deliver = Deliver(store, {"slack": Hanging(clock)}, clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(deliver.loops()[0])
        await started.wait()
        drain = group.create_task(deliver.drain(5.0))
        await clock.parked(1)
        clock.move(5.0)
        await drain
    assert (await store.outbox.stats())["slack"].pending == 1


async def test_a_message_whose_sending_was_interrupted_is_sent_again_with_the_same_id(
    store: Store, clock: VirtualClock
) -> None:
    taking = asyncio.Event()

    class TakesAndHangs(Recorder):
        async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
            self.taken.append(dedup_key)
            taking.set()
            await asyncio.Event().wait()

    await store.commit(outcome(notification("k")), clock.now())
    first, second = TakesAndHangs(clock), Recorder(clock)
    loop = asyncio.ensure_future(Deliver(store, {"slack": first}, clock).loops()[0])
    await taking.wait()
    loop.cancel()
    await asyncio.wait([loop])
    async with running(store, clock, slack=second):
        assert first.taken == second.taken == ["k"]
