"""Agent -> hub: ships what the store holds, in order, until the hub has said that it has committed it.

One turn of the loop:

1. Take the oldest shipments, up to REQUEST_BYTES, or none where nothing waits: then the delivery only says that the
   agent lives, every HEARTBEAT_S.  After a failure requests are smaller, so that a slow way gets one through.
2. Send them in one request, with how the agent stands.
3. The hub answers up to which number it has committed everything: those are deleted here.  Any other answer deletes
   nothing: the same shipments are sent again, after Retry-After or a back-off.
4. From the two clocks at sending and answering comes by how much the hub's is ahead; the exchange with the shortest
   way there and back tells it best.  One that contradicts the others says that a clock was set: they are forgotten.

A shipment that was sent and not answered is sent again; the hub ignores numbers that it has committed.  No answer makes
an agent give a shipment up: the one thing that takes samples away is want of room, and that is counted.  Only what the
disk has damaged, so that no hub can read it, is given up, and counted too.
"""

from __future__ import annotations

import math
import random
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from verlwatch import __version__
from verlwatch.core.types import Outcome
from verlwatch.fields import SecretError, read_secret
from verlwatch.shell._line import Line, Lines, backoff
from verlwatch.shell._rows import OutboxStats
from verlwatch.shell._shipments import Oldest, Row, Waiting
from verlwatch.shell.clock import Clock
from verlwatch.shell.fleet.wire import SourceReport, pack, pack_delivery
from verlwatch.shell.notifiers import TransientError
from verlwatch.shell.notifiers._http import network_errors, retry_after
from verlwatch.shell.store import Store, StoreUnavailable

if TYPE_CHECKING:
    import ssl

    import aiohttp

HEARTBEAT_S = 10.0
REQUEST_BYTES = 1 << 20
LEAST_REQUEST_BYTES = 1 << 12
SOURCES_BYTES = 256 << 10
MAX_BACKOFF_S = 30.0
LEAST_WAIT_S, LONGEST_WAIT_S = 0.5, 300.0
"""Bounds of what a hub may ask for by Retry-After."""
STUCK_S = 60.0
_EXCHANGES = 8
_UNEVEN_S = 0.1
"""By so much clocks may drift apart from exchange to exchange."""
_ERROR_LENGTH = 300

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Way:
    """How a hub is reached: its URL with path, the agent's name and the file of its token, and TLS where it is used."""

    url: str
    agent: str
    token_file: str
    tls: ssl.SSLContext | None = None


class Refused(Exception):  # noqa: N818 - an answer, and no fault of the way
    """The hub has answered anything but yes; ``wait_s`` is how long it wants to be left alone, if it said so."""

    def __init__(self, text: str, status: int = 0, wait_s: float | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.wait_s = wait_s


class Link(Lines):
    """The way to the hub; it stands where a standalone watcher has its receivers (see `Deliver`)."""

    def __init__(
        self,
        store: Store,
        session: aiohttp.ClientSession,
        way: Way,
        clock: Clock,
        sources: Callable[[], list[SourceReport]],
    ) -> None:
        self._hub = _Hub(store, session, way, clock, sources)
        super().__init__([self._hub], clock)

    @property
    def offset_s(self) -> float | None:
        """By how much the hub's clock is ahead of this host's; None before the first answer."""
        return self._hub.offset_s


class _Hub(Line):
    """The hub, as a receiver of shipments."""

    STUCK_S = STUCK_S
    NOUN = "shipments"

    def __init__(
        self,
        store: Store,
        session: aiohttp.ClientSession,
        way: Way,
        clock: Clock,
        sources: Callable[[], list[SourceReport]],
    ) -> None:
        super().__init__("hub", "hub", clock)
        self._store = store
        self._session = session
        self._way = way
        self._sources = sources
        self._request_bytes = REQUEST_BYTES
        self._failures = 0
        self._exchanges: deque[tuple[float, float]] = deque(maxlen=_EXCHANGES)

    def queued(self, outcome: Outcome) -> int:
        """See `Line.queued`; how many shipments it makes is not known yet."""
        return 1 if outcome.extracts else 0

    async def look(self) -> OutboxStats:
        """See `Line.look`."""
        return _stats(await self._store.shipments.waiting())

    @property
    def offset_s(self) -> float | None:
        """See `Link.offset_s`."""
        return min(self._exchanges)[1] if self._exchanges else None

    # ------------------------------------------------------------------------------------------------ the loop
    async def turn(self) -> float | None:
        """See `Line.turn`.  Who stops tries once more, and waits for nothing."""
        while True:
            stopping, now = self.stop_at is not None, self.time()
            if now < self._rests_until and not stopping:
                return self._rests_until  # after a failure nothing new makes the next try come earlier
            wait_s = await self._try()
            if wait_s or (self.stop_at is not None and self._clock.now() >= self.stop_at):
                return None if stopping else self._clock.now() + wait_s

    async def _try(self) -> float:
        """One delivery; how long to wait for the next, 0 while more waits."""
        oldest, uncounted = None, self._uncounted
        try:
            oldest = await self._store.shipments.oldest(self._request_bytes, self._clock.now())
            self.stats = _stats(oldest.waiting)
            self._uncounted -= uncounted
            await self._take_off(oldest, await self._deliver(oldest))
        except StoreUnavailable as error:
            return self._failed(f"the outbox cannot be read: {error}", None)
        except (TransientError, SecretError) as error:
            self._halve(oldest)
            return self._failed(str(error), getattr(error, "retry_after", None))
        except Refused as error:
            if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                self._halve(oldest)
            elif error.status == HTTPStatus.BAD_REQUEST and oldest is not None:
                await self._give_up_unreadable(oldest.rows)
            return self._failed(str(error), error.wait_s)
        if self.error is not None:
            _log.info("the hub takes shipments again", waiting=self.stats.pending)
        self.works()
        self._failures = 0
        self._request_bytes = min(REQUEST_BYTES, 2 * self._request_bytes)
        return 0.0 if self.stats.pending else HEARTBEAT_S

    async def _take_off(self, oldest: Oldest, taken: int) -> None:
        """Deletes what the hub has; raises Refused where its yes leads nowhere."""
        if taken < oldest.number:
            if oldest.rows:
                raise Refused("the hub says yes and takes nothing")
            return
        waiting = await self._store.shipments.shipped(taken, self._clock.now())
        if waiting is None:
            raise Refused(
                "the hub has taken shipments that this outbox never held: its state was restored from a copy, or "
                "another agent uses the name; what is in it is sent as a new outbox's"
            )
        self.stats = _stats(waiting)
        self.delivered += sum(number <= taken for number, *_ in oldest.rows)

    def _halve(self, oldest: Oldest | None) -> None:
        """Makes the next request half as large as the one that failed."""
        sent = sum(len(extracts) for *_, extracts in oldest.rows) if oldest else 0
        if sent:
            self._request_bytes = max(LEAST_REQUEST_BYTES, min(self._request_bytes, sent) // 2)

    async def _give_up_unreadable(self, rows: list[Row]) -> None:
        try:
            count = await self._store.shipments.give_up_unreadable(rows)
        except StoreUnavailable:
            return
        if count:
            _log.error("shipments in the database are damaged and were given up", shipments=count)

    def _failed(self, error: str, asked_s: float | None) -> float:
        now = self._clock.now()
        if error != self.error:
            _log.warning("the hub takes nothing", error=error, waiting=self.stats.pending)
        self.fails(error, now)
        wait_s = backoff(self._failures, MAX_BACKOFF_S) * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
        if asked_s is not None:  # not all agents of a hub that comes back at the same moment
            wait_s = min(LONGEST_WAIT_S, max(LEAST_WAIT_S, asked_s)) * random.uniform(1.0, 1.25)  # noqa: S311 - the same
        self._failures += 1
        self._rests_until = now + wait_s
        return wait_s

    async def _deliver(self, oldest: Oldest) -> int:
        """Sends shipments; up to which number the hub has them."""
        sent_at = self._clock.now()
        head = {
            "agent": self._way.agent,
            "software": __version__,
            "epoch": oldest.epoch,
            "oldest": oldest.number,
            "waiting": oldest.waiting.shipments,
            "sent_at": sent_at,
            "offset_s": self.offset_s,
            "sources": _in_short(self._sources()),
        }
        body = zlib.compress(pack_delivery(head, oldest.rows), 1)
        headers = {
            "Authorization": f"Bearer {_token(self._way.token_file)}",
            "Content-Type": "application/json",
            "Content-Encoding": "deflate",
        }
        with network_errors():
            async with self._session.post(
                self._way.url, data=body, headers=headers, allow_redirects=False, ssl=self._way.tls or True
            ) as response:
                answer = _object(await response.read())
        answered_at = self._clock.now()
        taken, said = answer.get("taken"), answer.get("error")
        if type(taken) is int:  # True is one, too
            if response.status == HTTPStatus.OK:
                self._compare_clocks(sent_at, answered_at, answer.get("now"))
                return taken
            if response.status == HTTPStatus.CONFLICT and taken >= oldest.number:
                return taken  # it has more than we knew of
        why = f": {said}" if isinstance(said, str) else ", with nothing that a hub says"
        raise Refused(
            f"the hub answered {response.status}{why}"[:_ERROR_LENGTH],
            response.status,
            retry_after(response.headers, answered_at),
        )

    def _compare_clocks(self, sent_at: float, answered_at: float, theirs: Any) -> None:
        """Notes an exchange: its length, and by how much the hub's clock is ahead, right within half that length."""
        if not isinstance(theirs, float) or not math.isfinite(theirs) or answered_at < sent_at:
            return
        length, ahead = answered_at - sent_at, theirs - (sent_at + answered_at) / 2.0
        if any(abs(ahead - before) > (length + other) / 2.0 + _UNEVEN_S for other, before in self._exchanges):
            self._exchanges.clear()
        self._exchanges.append((length, ahead))


def _stats(waiting: Waiting) -> OutboxStats:
    return OutboxStats(waiting.shipments, oldest_pending_at=waiting.since if waiting.shipments else None)


def _token(file: str) -> str:
    """The first token of a file; raises SecretError."""
    token = read_secret(file).reveal().split()[0]  # there is one: the secret is not blank
    if not (token.isascii() and token.isprintable()):
        raise SecretError(f"{file}: holds a token with characters that no header can carry; use letters and digits")
    return token


def _in_short(sources: list[SourceReport]) -> list[SourceReport]:
    """As many of the reports as a delivery has room for."""
    left, short = SOURCES_BYTES, list[SourceReport]()
    for source in sources:
        error = source["error"]
        one = SourceReport({**source, "error": error and error[:_ERROR_LENGTH]})
        left -= len(pack(one))
        if left < 0:
            break
        short.append(one)
    return short


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}
