"""Outbox -> receivers: one loop for each receiver, so that a dead one delays nobody else.

One turn of a loop:

1. While the receiver wants rest (Retry-After, back-off, its own pace), wait.  The time is in the outbox and therefore
   survives a restart.
2. Where more waits than the channel's rate leaves room for, make one digest of it (`_merging.py`).
3. Take the oldest row that is due; of an incident only the oldest, so that a message never overtakes its elders.  Where
   it waited too long, the newest state of its incident takes the place of all that its incident had to tell.
4. Note that it is being sent, render and send.  Yes: the row is done.  A final no: dead letter.  Anything else: the row
   falls due again after Retry-After, or after a back-off that doubles with each failed attempt up to a limit.
5. A receiver that fails rests as a whole, and starts again with the same row: after an hour of silence all comes in
   order.  Only when one row has failed PATIENCE times is the oldest of another incident tried as well: if that one is
   taken, the message was at fault and not the receiver.
6. Nothing due: repeat what is still open to a receiver that else forgets it (`_resend.py`), then wait for a commit
   (`notify`) or for the next row to fall due.

A row whose sending was interrupted is sent again with the same id: at least once.  Whatever a notifier raises that is
no DeliveryError is a defect of it; the row is tried DEFECTS times and then given up.
"""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import ParamSpec, TypeVar

import structlog

from verlwatch.core.types import Outcome
from verlwatch.shell._line import Line, Lines, backoff
from verlwatch.shell._merging import COLLAPSE_AFTER_S, Merging
from verlwatch.shell._pace import Pace
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
MAX_BACKOFF_S = 300.0
SEND_LIMIT_S = 60.0
NOT_CONFIGURED = "no longer configured"
"""In the place of a receiver's type in the status."""
STUCK_S = 300.0
_STORE_RETRY_S = 1.0

_log = structlog.get_logger(__name__)


class Deliver(Lines):
    """The receivers in force, by name, and their loops."""

    def __init__(
        self,
        store: Store,
        receivers: Mapping[str, Notifier],
        clock: Clock,
        *,
        max_backoff_s: float = MAX_BACKOFF_S,
        collapse_after_s: float = COLLAPSE_AFTER_S,
        delivered: Mapping[str, int] | None = None,
        open_incidents: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """``delivered`` is what the receivers had taken before a reload, by name."""
        self._strays: dict[str, OutboxStats] = {}
        lines = [
            _Receiver(
                store,
                self._seen,
                notifier,
                clock,
                Resend(store.places, name, notifier, open_incidents),
                Merging(store.outbox, name, notifier, collapse_after_s),
                max_backoff_s,
                (delivered or {}).get(name, 0),
            )
            for name, notifier in receivers.items()
        ]
        super().__init__(lines, clock)
        self._outbox = store.outbox

    async def count(self) -> None:
        """See `Lines.count`."""
        await super().count()
        await self.count_strays()

    async def count_strays(self) -> None:
        """See `Lines.count_strays`."""
        self._seen(await self._outbox.stats())

    def _seen(self, stats: Mapping[str, OutboxStats]) -> None:
        names = {line.name for line in self._lines}
        self._strays = {
            name: found for name, found in stats.items() if name not in names and (found.dead or found.pending)
        }

    def health(self) -> tuple[ReceiverStatus, ...]:
        """Each receiver's rows and last error; then those that are no longer configured and have rows left."""
        return (*super().health(), *(_stray(name, found) for name, found in sorted(self._strays.items())))


def _stray(name: str, found: OutboxStats) -> ReceiverStatus:
    return ReceiverStatus(
        name=name,
        type=NOT_CONFIGURED,
        pending=found.pending,
        dead=found.dead,
        oldest_pending_at=found.oldest_pending_at,
        last_error=f"no receiver is called {name} any more; `verlwatch outbox drop --all --receiver {name}` lets go of "
        "its dead letters",
    )


class _Receiver(Line):
    """The way to one receiver."""

    STUCK_S = STUCK_S

    def __init__(
        self,
        store: Store,
        seen: Callable[[Mapping[str, OutboxStats]], None],
        notifier: Notifier,
        clock: Clock,
        resend: Resend,
        merging: Merging,
        max_backoff_s: float,
        delivered: int,
    ) -> None:
        super().__init__(resend.name, notifier.TYPE, clock, delivered)
        self._outbox = store.outbox
        self._seen = seen
        self._places = store.places
        self._notifier = notifier
        self._resend = resend
        self._merging = merging
        self._max_backoff_s = max_backoff_s
        self._pace = Pace(notifier)
        self._bring_forward_s = 0.0  # by how much the clock was set back since the rows of the outbox were told
        self._suspect_until: float | None = None  # the rest put off until another row shows whose fault it is
        self._refusal: str | None = None  # the last answer, if it was a final no

    def health(self) -> ReceiverStatus:
        """See `Line.health`."""
        return replace(super().health(), last_error=self.error or self._resend.error or self.stats.last_error)

    def stuck(self, now: float) -> str | None:
        """See `Line.stuck`; also where its last word was a final no."""
        if self._refusal is not None and self.stats.dead:
            return f"receiver {self.name} refused the last message, {self.stats.dead} are given up: {self._refusal}"
        return super().stuck(now)

    def queued(self, outcome: Outcome) -> int:
        """See `Line.queued`."""
        return sum(notification.receiver == self.name for notification in outcome.notifications)

    async def look(self) -> OutboxStats:
        """See `Line.look`."""
        stats = await self._outbox.stats()
        self._seen(stats)
        return stats.get(self.name, OutboxStats())

    def set_back(self, seconds: float) -> None:
        """See `Line.set_back`."""
        super().set_back(seconds)
        self._bring_forward_s += seconds
        self._pace.set_back(seconds)
        self._suspect_until = None if self._suspect_until is None else self._suspect_until - seconds

    # ------------------------------------------------------------------------------------------------ the loop
    async def run(self) -> None:
        """See `Line.run`."""
        await self._stored(self._recall)
        await super().run()

    async def _recall(self) -> None:
        """Takes up what an earlier process left: how long to rest, and how much of the rate is used up."""
        now = self._clock.now()
        self._rests_until = min(await self._outbox.hold(self.name), now + LONGEST_DELAY_S)
        if self._pace.limit:
            sent = await self._outbox.sent(self.name, now - self._pace.window_s, self._pace.limit)
            self._pace.recall([*sent, now])  # it may have sent one more than it could note

    async def turn(self) -> float | None:
        """See `Line.turn`."""
        await self._stored(self.count)
        until = await self._stored(self._turn)
        await self._stored(self.count)
        return until

    async def _turn(self) -> float | None:
        while True:
            now = self.time()
            if self._bring_forward_s:
                await self._outbox.bring_forward(self.name, self._bring_forward_s)
                self._bring_forward_s = 0.0
            at = max(self._rests_until, self._pace.next(now))
            if now < at:
                return at
            if self.stop_at is not None and now >= self.stop_at:
                return now
            row = await self._next(now)
            if row is None:
                times = [await self._outbox.next_due(self.name)]
                times += [] if self.stop_at is not None else [await self._resend.turn(now)]
                return min((time for time in times if time is not None), default=None)
            await self._send(row)

    async def _next(self, now: float) -> OutboxRow | None:
        """The row to send now, merged from others where that is needed; None where nothing is due."""
        room = self._pace.room(now)
        if is_over := self.pending > room:
            self._fewer(await self._merging.gather(room, now))
        rows = await self._outbox.due(self.name, now, 1)
        if not rows:
            return None
        row, merged = await self._merging.newest(rows[0], now, at_once=is_over)
        self._fewer(merged)
        return row

    def _fewer(self, rows: int, *, dead: int = 0) -> None:
        self.stats = replace(self.stats, pending=self.stats.pending - rows, dead=self.stats.dead + dead)

    # ------------------------------------------------------------------------------------------------ sending
    async def _send(self, row: OutboxRow) -> None:
        await self._outbox.begin(row.id)
        try:
            message = in_language(row.message, self._notifier.language)
            payload = self._notifier.render(message, row.dedup_key)
            async with asyncio.timeout(SEND_LIMIT_S):
                place = StoredPlace(self._places, self.name, row.incident, self._clock, self._stored)
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

    def _answered(self) -> float:
        now = self._clock.now()
        self._pace.note(now)
        return now

    async def _taken(self, row: OutboxRow) -> None:
        now = self._answered()
        self.works()
        self._suspect_until = self._refusal = None
        self.delivered += 1
        await self._stored(self._outbox.done, row.id, now)
        self._fewer(1)
        _log.info("message delivered", receiver=self.name, id=row.dedup_key, reason=row.reason)

    async def _refused(self, row: OutboxRow, error: str) -> None:
        now = self._answered()
        self.works()  # it answers: the message is at fault
        self._suspect_until = None
        self.error = self._refusal = error
        await self._stored(self._outbox.dead, row.id, now, error)
        self._fewer(1, dead=1)
        _log.error("message given up", receiver=self.name, id=row.dedup_key, reason=row.reason, error=error)

    async def _failed(self, row: OutboxRow, error: str, retry_after: float | None = None) -> None:
        now = self._answered()
        wait = backoff(row.attempts, self._max_backoff_s)
        if retry_after is not None:
            wait = min(math.ceil(retry_after), LONGEST_DELAY_S)
        at = self._pace.next(now + wait)
        if retry_after is None and row.attempts + 1 >= PATIENCE and self._suspect_until is None:
            self._suspect_until, self._rests_until = at, now
        else:
            self._rests_until = max(at, self._suspect_until or 0.0)
            self._suspect_until = None
        self.fails(error, now)
        await self._stored(self._outbox.retry, row.id, at, error)
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
