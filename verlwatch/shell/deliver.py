"""Outbox -> receivers: one loop for each receiver, so that a dead one delays nobody else.

One turn of a loop:

1. While the receiver wants rest (its own pace, Retry-After, back-off), wait.  The time is in the outbox and therefore
   survives a restart.
2. Take the oldest row that is due; of an incident only the oldest, so that a message never overtakes its elders.
3. Render and send.  Yes: the row is done.  A final no: dead letter.  Anything else: the row falls due again after
   Retry-After, or after a back-off that doubles with each failed attempt up to a limit.
4. A receiver that fails rests as a whole, and starts again with the same row: after an hour of silence all comes in
   order.  Only when one row has failed PATIENCE times is the oldest of another incident tried as well: if that one is
   taken, the message was at fault and not the receiver.
5. Nothing due: repeat what is still open to a receiver that else forgets it (`_resend.py`), then wait for a commit
   (`notify`) or for the next row to fall due.
6. Where the clock was set back every wait keeps its length.

A row whose sending was interrupted is sent again with the same id: at least once.  Whatever a notifier raises that is
no DeliveryError is a defect of it; the row is tried DEFECTS times and then given up.
"""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import ParamSpec, TypeVar

import structlog

from verlwatch.shell._places import StoredPlace
from verlwatch.shell._resend import Resend
from verlwatch.shell.clock import Clock
from verlwatch.shell.notifiers import Notifier, PermanentError, TransientError, in_language
from verlwatch.shell.store import LONGEST_DELAY_S, OutboxRow, OutboxStats, Store, StoreUnavailable
from verlwatch.status import ReceiverStatus

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 3
DEFECTS = 5
FIRST_BACKOFF_S = 1.0
MAX_BACKOFF_S = 300.0
SEND_LIMIT_S = 60.0
STUCK_S = 300.0
"""A receiver that has taken nothing for so long after a failure is reported as stuck."""
_STORE_RETRY_S = 1.0
_SLIP_S = 1.0
_DOUBLINGS = 30

_log = structlog.get_logger(__name__)


class Deliver:
    """The receivers in force, by name, and their loops."""

    def __init__(
        self,
        store: Store,
        receivers: Mapping[str, Notifier],
        clock: Clock,
        *,
        max_backoff_s: float = MAX_BACKOFF_S,
        delivered: Mapping[str, int] | None = None,
        open_incidents: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """``delivered`` is what the receivers had taken before a reload, by name."""
        self._clock = clock
        self._lines = [
            _Line(
                store,
                notifier,
                clock,
                Resend(store.places, name, notifier, open_incidents),
                max_backoff_s,
                (delivered or {}).get(name, 0),
            )
            for name, notifier in receivers.items()
        ]
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    def loops(self) -> list[Coroutine[None, None, None]]:
        """One coroutine for each receiver, for the caller's TaskGroup; they end after `drain`."""
        return [self._run(line) for line in self._lines]

    async def _run(self, line: _Line) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - whatever runs in a TaskGroup is a task
        self._tasks.add(task)
        try:
            await line.run()
        finally:
            self._tasks.discard(task)
            if not self._tasks:
                self._ended.set()

    def notify(self, queued: int = 0) -> None:
        """There may be new rows: to be called after each commit, with how many notifications it held."""
        for line in self._lines:
            line.uncounted += queued
            line.wake.set()

    async def drain(self, grace_s: float) -> None:
        """Sends what is due within ``grace_s`` seconds and ends the loops; what is left stays in the outbox.

        When it returns no loop runs any more.  A message on its way at the end of the grace is sent again later.
        """
        stop_at = self._clock.now() + grace_s
        for line in self._lines:
            line.stop_at = stop_at
            line.wake.set()
        while self._tasks and 0.0 < stop_at - self._clock.now() <= grace_s:  # more: the clock was set back
            await self._clock.wait(self._ended, stop_at)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await self._ended.wait()

    def delivered(self) -> dict[str, int]:
        """How many messages each receiver has taken since the start, by name."""
        return {line.name: line.delivered for line in self._lines}

    def health(self) -> tuple[ReceiverStatus, ...]:
        """Each receiver's rows and last error, as of the last turn of its loop."""
        return tuple(line.health() for line in self._lines)

    def stuck(self) -> tuple[str, ...]:
        """A sentence on each receiver that has failed for STUCK_S or longer, or whose last word was a final no."""
        now = self._clock.now()
        return tuple(text for line in self._lines if (text := line.stuck(now)))


class _Line:
    """The way to one receiver."""

    def __init__(
        self, store: Store, notifier: Notifier, clock: Clock, resend: Resend, max_backoff_s: float, delivered: int
    ) -> None:
        self.name = resend.name
        self.delivered = delivered
        self.wake = asyncio.Event()
        self.uncounted = 0
        """Rows queued since the outbox was last counted: a status must not show less than what is committed."""
        self.stop_at: float | None = None
        self._store = store
        self._notifier = notifier
        self._clock = clock
        self._resend = resend
        self._max_backoff_s = max_backoff_s
        self._rests_until = 0.0
        self._seen_at = clock.now()
        self._suspect_until: float | None = None  # the rest put off until another row shows whose fault it is
        self._failing_since: float | None = None
        self._refusal: str | None = None  # the last answer, if it was a final no
        self._last_error: str | None = None
        self._stats = OutboxStats()

    def health(self) -> ReceiverStatus:
        """See `Deliver.health`."""
        return ReceiverStatus(
            name=self.name,
            type=self._notifier.TYPE,
            pending=self._stats.pending + self.uncounted,
            dead=self._stats.dead,
            delivered=self.delivered,
            oldest_pending_at=self._stats.oldest_pending_at,
            last_error=self._last_error or self._resend.error or self._stats.last_error,
        )

    def stuck(self, now: float) -> str | None:
        """See `Deliver.stuck`."""
        if self._refusal is not None:
            return f"receiver {self.name} refused the last message, {self._stats.dead} are given up: {self._refusal}"
        if self._failing_since is None or now - self._failing_since < STUCK_S:
            return None
        return (
            f"receiver {self.name} has taken nothing for {now - self._failing_since:.0f} s, "
            f"{self._stats.pending} messages wait: {self._last_error}"
        )

    # ------------------------------------------------------------------------------------------------ the loop
    async def run(self) -> None:
        """Turns until `stop_at` leaves nothing to do."""
        held = await self._stored(self._store.hold, self.name)
        self._rests_until = min(held, self._clock.now() + LONGEST_DELAY_S)
        while True:
            self.wake.clear()
            await self._count()
            until = await self._stored(self._turn)
            await self._count()
            if self.stop_at is not None and (until is None or until >= self.stop_at):
                return
            await self._clock.wait(self.wake, until)

    async def _count(self) -> None:
        counted = self.uncounted
        self._stats = (await self._stored(self._store.outbox_stats)).get(self.name, OutboxStats())
        self.uncounted -= counted

    async def _time(self) -> float:
        """Now.  Where the clock was set back, all that waits for a time of the old one is moved back with it."""
        now = self._clock.now()
        back = self._seen_at - now
        if back > _SLIP_S:
            await self._store.bring_forward(self.name, back)
            self._rests_until -= back
            self._suspect_until = None if self._suspect_until is None else self._suspect_until - back
            self._failing_since = None if self._failing_since is None else self._failing_since - back
        self._seen_at = now
        return now

    async def _turn(self) -> float | None:
        """Sends what is due; when to look again, None for not before something is new."""
        while True:
            now = await self._time()
            if now < self._rests_until:
                return self._rests_until
            if self.stop_at is not None and now >= self.stop_at:
                return now
            rows = await self._store.due(self.name, now, 1)
            if not rows:
                times = [await self._store.next_due(self.name)]
                times += [] if self.stop_at is not None else [await self._resend.turn(now)]
                return min((time for time in times if time is not None), default=None)
            await self._send(rows[0])

    async def _send(self, row: OutboxRow) -> None:
        try:
            message = in_language(row.message, self._notifier.language)
            payload = self._notifier.render(message, row.dedup_key)
            async with asyncio.timeout(SEND_LIMIT_S):
                place = StoredPlace(self._store.places, self.name, row.incident, self._clock, self._stored)
                await self._notifier.send_at(payload, row.dedup_key, place)
        except PermanentError as error:
            await self._refused(row, str(error))
        except TransientError as error:
            await self._failed(row, str(error), error.retry_after)
        except TimeoutError:
            await self._failed(row, f"no answer within {SEND_LIMIT_S:g} s")
        except Exception as error:  # noqa: BLE001 - a guarded border: a defect of one notifier stops nobody else
            what = _defect(error)
            await (self._refused(row, what) if row.attempts + 1 >= DEFECTS else self._failed(row, what))
        else:
            await self._taken(row)

    async def _taken(self, row: OutboxRow) -> None:
        now = self._clock.now()
        self._rests_until = now + self._notifier.MIN_INTERVAL_S
        self._suspect_until = self._failing_since = self._last_error = self._refusal = None
        self.delivered += 1
        await self._stored(self._store.done, row.id, now)
        _log.info("message delivered", receiver=self.name, id=row.dedup_key, reason=row.reason)

    async def _refused(self, row: OutboxRow, error: str) -> None:
        now = self._clock.now()
        self._rests_until = now + self._notifier.MIN_INTERVAL_S
        self._suspect_until = self._failing_since = None  # it answers: the message is at fault
        self._last_error = self._refusal = error
        await self._stored(self._store.dead, row.id, now, error)
        _log.error("message given up", receiver=self.name, id=row.dedup_key, reason=row.reason, error=error)

    async def _failed(self, row: OutboxRow, error: str, retry_after: float | None = None) -> None:
        now = self._clock.now()
        backoff = min(FIRST_BACKOFF_S * 2.0 ** min(row.attempts, _DOUBLINGS), self._max_backoff_s)
        wait = backoff if retry_after is None else min(math.ceil(retry_after), LONGEST_DELAY_S)
        at = now + max(wait, self._notifier.MIN_INTERVAL_S)
        if retry_after is None and row.attempts + 1 >= PATIENCE and self._suspect_until is None:
            self._suspect_until = at
            self._rests_until = now + self._notifier.MIN_INTERVAL_S
        else:
            self._rests_until = max(at, self._suspect_until or 0.0)
            self._suspect_until = None
        self._last_error = error
        self._failing_since = now if self._failing_since is None else self._failing_since
        await self._stored(self._store.retry, row.id, at, error)
        _log.warning("message not taken", receiver=self.name, id=row.dedup_key, error=error, again_in_s=at - now)

    async def _stored(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the store until the disk lets it: what a receiver has taken must not be sent again for a full disk."""
        while True:
            try:
                return await call(*args, **kwargs)
            except StoreUnavailable as error:
                _log.warning("outbox unavailable", receiver=self.name, error=str(error))
                self.wake.clear()
                await self._clock.wait(self.wake, self._clock.now() + _STORE_RETRY_S)


def _defect(error: Exception) -> str:
    """Where a notifier went wrong; the error's own text may hold a secret."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"defect of the notifier, please report: {type(error).__name__} in {place.name}, line {place.lineno}"
