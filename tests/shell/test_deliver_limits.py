"""No channel gets more than it takes; what that leaves no room for, and what waited too long, comes as one message."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from verlwatch.fields import ReceiverConfig
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.notifiers import Notifier, TransientError, sample_message
from verlwatch.shell.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from verlwatch.core.types import Message, Notification, Reason

START = 1_000_000.0
HOUR = 3600.0


class Channel(Notifier):
    """A receiver in memory; it notes when it was asked, and what it took."""

    TYPE: ClassVar[str] = "channel"
    Config: ClassVar[type[ReceiverConfig]] = ReceiverConfig

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.down_until = 0.0
        self.asked: list[float] = []
        self.taken: list[tuple[str, Message]] = []

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        return {"message": message, "key": dedup_key}

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
        await asyncio.sleep(0)
        since = self.clock.now() - START
        self.asked.append(since)
        if since < self.down_until:
            raise TransientError("cannot connect")
        self.taken.append((dedup_key, payload["message"]))

    def keys(self) -> list[str]:
        return [key for key, _ in self.taken]


class Twenty(Channel):
    """Takes what DingTalk and WeCom take."""

    RATE: ClassVar[tuple[int, float]] = (20, 60.0)


class Three(Channel):
    """Takes little."""

    RATE: ClassVar[tuple[int, float]] = (3, 60.0)


class ThreeAlerts(Three):
    """Has an alert for each incident, as PagerDuty has."""

    DIGEST: ClassVar[bool] = False


class Dislikes(Channel):
    """Wants nothing in the first ten seconds of an hour, as Feishu wants nothing around :00."""

    def not_before(self, now: float) -> float:
        into = (now - START) % HOUR
        return now + 10.0 - into if into < 10.0 else now


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


@asynccontextmanager
async def running(store: Store, clock: VirtualClock, channel: Channel) -> AsyncIterator[Deliver]:
    deliver = Deliver(store, {"slack": channel}, clock, max_backoff_s=300.0)
    async with asyncio.TaskGroup() as group:
        for loop in deliver.loops():
            group.create_task(loop)
        await clock.parked(1)
        yield deliver
        await deliver.drain(0.0)


def alert(number: int, incident: str, reason: Reason = "opened", **more: Any) -> Notification:
    message = replace(
        sample_message(),
        incident=incident,
        reason=reason,
        step=100 + number,
        run=f"run-{number % 4}",
        title=f"title of {number}",
        summary=f"Summary of {number}.",
        closed_as=reason if reason == "resolved" else None,
        **more,
    )
    return notification(f"k{number}", incident, reason=reason, message=message)


def alerts(count: int, first: int = 0) -> list[Notification]:
    return [alert(number, f"i{number}") for number in range(first, first + count)]


def most_within(times: list[float], window_s: float) -> int:
    """The most sends in any window, both ends included but one."""
    return max(sum(at <= other < at + window_s for other in times) for at in times)


# ---------------------------------------------------------------------------------------------------- rates
async def test_two_hundred_alerts_at_once_are_one_digest(store: Store, clock: VirtualClock) -> None:
    channel = Twenty(clock)
    await store.commit(outcome(*alerts(200)), clock.now())
    async with running(store, clock, channel) as deliver:
        ((key, message),) = channel.taken
        assert key.startswith("digest-")
        assert message.title == "200 incidents in 4 runs: 200 open"
        assert (message.evidence[0], len(message.evidence)) == ("i0 title of 0", 200)
        (health,) = deliver.health()
        assert (health.pending, health.delivered, health.dead) == (0, 1, 0)


async def test_two_hundred_alerts_in_a_minute_never_exceed_the_rate_and_each_is_told(
    store: Store, clock: VirtualClock
) -> None:
    channel = Twenty(clock)
    async with running(store, clock, channel) as deliver:
        for number in range(200):
            made = outcome(alert(number, f"i{number}"))
            await store.commit(made, clock.now())
            deliver.notify(made)
            await clock.advance(0.3)
        await clock.advance(180.0)
    assert 19 <= most_within(channel.asked, 60.0) <= 20
    assert len(channel.taken) < 30
    told = [line.split()[0] for _, message in channel.taken for line in message.evidence if line.startswith("i")]
    told += [message.incident for key, message in channel.taken if not key.startswith("digest-")]
    assert len(told) == len(set(told)) == 200


async def test_the_rate_holds_over_a_restart(store: Store, clock: VirtualClock) -> None:
    channel = Three(clock)
    await store.commit(outcome(*alerts(2)), clock.now())
    async with running(store, clock, channel):
        assert channel.keys() == ["k0", "k1"]
    await store.commit(outcome(*alerts(1, first=2)), clock.now())
    async with running(store, clock, channel):
        assert channel.keys() == ["k0", "k1"], "a process that was killed may have sent a third"
        await clock.advance(60.0)
        await clock.parked(1)
    assert channel.keys() == ["k0", "k1", "k2"]
    assert most_within(channel.asked, 60.0) == 2


async def test_what_failed_counts_for_the_rate(store: Store, clock: VirtualClock) -> None:
    channel = Three(clock)
    channel.down_until = 1000.0
    await store.commit(outcome(*alerts(1)), clock.now())
    async with running(store, clock, channel):
        await clock.advance(600.0)
    assert len(channel.asked) > 4
    assert most_within(channel.asked, 60.0) <= 3


async def test_what_fits_is_told_message_by_message(store: Store, clock: VirtualClock) -> None:
    channel = Three(clock)
    await store.commit(outcome(*alerts(2)), clock.now())
    async with running(store, clock, channel):
        assert channel.keys() == ["k0", "k1"]


async def test_many_messages_of_one_incident_become_its_newest_state(store: Store, clock: VirtualClock) -> None:
    channel = Three(clock)
    made = [alert(0, "i"), *(alert(n, "i", "updated") for n in range(1, 9)), alert(9, "i", "resolved")]
    await store.commit(outcome(*made), clock.now())
    async with running(store, clock, channel):
        ((key, message),) = channel.taken
        assert key == "k9+9"
        assert (message.incident, message.reason, message.title) == ("i", "resolved", "title of 9")
        assert message.summary == (
            "Summary of 9. Told late, in one message: opened at step 100, updated 8 times, resolved at step 109."
        )


async def test_a_channel_that_has_an_alert_for_each_incident_gets_no_digest_but_the_newest_states(
    store: Store, clock: VirtualClock
) -> None:
    channel = ThreeAlerts(clock)
    made = [alert(n, f"i{n % 5}", "opened" if n < 5 else "updated") for n in range(20)]
    await store.commit(outcome(*made), clock.now())
    async with running(store, clock, channel):
        await clock.advance(120.0)
    assert channel.keys() == ["k15+3", "k16+3", "k17+3", "k18+3", "k19+3"]
    assert most_within(channel.asked, 60.0) <= 3


async def test_a_digest_is_told_in_the_language_of_the_receiver(store: Store, clock: VirtualClock) -> None:
    channel = Three(clock)
    channel.language = "zh"
    await store.commit(outcome(*alerts(5)), clock.now())
    async with running(store, clock, channel):
        ((_, message),) = channel.taken
    assert message.title == "4 个训练中有 5 个事件：5 个未结束"  # noqa: RUF001 - as Chinese writes it
    assert message.language == "zh"


async def test_a_digest_tells_first_what_is_worst_and_last_what_is_over(store: Store, clock: VirtualClock) -> None:
    channel = Three(clock)
    made = [
        alert(0, "over", "resolved"),
        alert(1, "small", severity="warning"),
        alert(2, "large", severity="critical", ratio=9.0),
        alert(3, "small", "updated", severity="warning"),
    ]
    await store.commit(outcome(*made), clock.now())
    async with running(store, clock, channel):
        ((_, message),) = channel.taken
    assert message.title == "3 incidents in 3 runs: 2 open, 1 over"
    assert message.evidence == ("large title of 2", "small title of 3", "over title of 0")
    assert (message.severity, message.ratio, message.closed_as, message.reason) == ("critical", 9.0, None, "opened")


async def test_the_times_that_a_channel_dislikes_are_avoided(store: Store, clock: VirtualClock) -> None:
    channel = Dislikes(clock)
    await store.commit(outcome(*alerts(2)), clock.now())
    async with running(store, clock, channel):
        await clock.advance(9.0)
        assert channel.asked == []
        await clock.advance(1.0)
        await clock.parked(1)
    assert channel.asked == [10.0, 10.0]


# ---------------------------------------------------------------------------------------------------- age
async def test_what_waited_for_an_hour_comes_as_the_newest_state_of_each_incident(
    store: Store, clock: VirtualClock
) -> None:
    channel = Channel(clock)
    channel.down_until = 2 * HOUR
    async with running(store, clock, channel) as deliver:
        for number in range(20):
            reason: Reason = "opened" if number < 4 else "resolved" if number >= 16 else "updated"
            made = outcome(alert(number, f"i{number % 4}", reason))
            await store.commit(made, clock.now())
            deliver.notify(made)
            await clock.advance(60.0)
        await clock.advance(2 * HOUR)
        assert channel.keys() == ["k16+4", "k17+4", "k18+4", "k19+4"]
        assert {message.reason for _, message in channel.taken} == {"resolved"}
        assert "opened at step 100, updated 3 times, resolved at step 116." in channel.taken[0][1].summary
        (health,) = deliver.health()
        assert (health.pending, health.delivered, health.last_error) == (0, 4, None)
    assert [one.status for one in await store.outbox.letters()] == []


async def test_what_is_younger_comes_message_by_message(store: Store, clock: VirtualClock) -> None:
    channel = Channel(clock)
    channel.down_until = HOUR / 2
    await store.commit(outcome(alert(0, "i"), alert(1, "i", "updated"), alert(2, "i", "resolved")), clock.now())
    async with running(store, clock, channel):
        await clock.advance(HOUR)
    assert channel.keys() == ["k0", "k1", "k2"]


async def test_a_state_that_is_newest_no_more_is_merged_again(store: Store, clock: VirtualClock) -> None:
    channel = Channel(clock)
    channel.down_until = 3 * HOUR
    await store.commit(outcome(alert(0, "i"), alert(1, "i", "updated")), clock.now())
    async with running(store, clock, channel) as deliver:
        await clock.advance(1.5 * HOUR)
        await store.commit(outcome(alert(2, "i", "resolved")), clock.now())
        deliver.notify()
        await clock.advance(2 * HOUR)
    assert channel.keys() == ["k2+1"]
    assert channel.taken[0][1].reason == "resolved"


# ---------------------------------------------------------------------------------------------------- Retry-After
@pytest.mark.parametrize("restarts", [0, 1, 7])
async def test_429_for_ten_minutes_and_restarts_meanwhile_deliver_once_and_not_early(
    store: Store, clock: VirtualClock, restarts: int
) -> None:
    channel = Channel(clock)
    ends = 600.0

    def busy(real: Callable[..., Any]) -> Callable[..., Any]:
        async def send(payload: dict[str, Any], dedup_key: str) -> None:
            left = ends - (clock.now() - START)
            if left > 0:
                channel.asked.append(clock.now() - START)
                raise TransientError("the receiver answered 429", min(97.0, left))
            await real(payload, dedup_key)

        return send

    channel.send = busy(channel.send)  # type: ignore[method-assign]
    await store.commit(outcome(*alerts(3)), clock.now())
    for _ in range(restarts):
        async with running(store, clock, channel):
            await clock.advance(ends / (restarts + 1))
    async with running(store, clock, channel):
        await clock.advance(ends)
    assert channel.keys() == ["k0", "k1", "k2"]
    tries = [at for at in channel.asked if at < ends]
    assert all(later - earlier >= 97.0 for earlier, later in pairwise(tries))
    assert [at for at in channel.asked if at >= ends] == [ends] * 3
