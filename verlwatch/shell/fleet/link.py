"""Agent -> hub: ships what the store holds, in order, until the hub has said that it has committed it.

One turn of the loop:

1. Take the oldest shipments, up to REQUEST_BYTES, or none where nothing waits: then the delivery only says that the
   agent lives, every HEARTBEAT_S.
2. Send them in one request, with how the agent stands.
3. The hub answers up to which number it has committed everything: those are deleted here.  Any other answer deletes
   nothing: the same shipments are sent again, after Retry-After or a back-off.
4. From the two clocks at sending and answering comes by how much the hub's is ahead; the exchange with the shortest
   way there and back tells it best.

A shipment that was sent and not answered is sent again; the hub ignores numbers that it has committed.  No answer makes
an agent give a shipment up: the one thing that takes samples away is want of room, and that is counted.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from verlwatch import __version__
from verlwatch.fields import SecretError, read_secret
from verlwatch.shell.clock import Clock
from verlwatch.shell.fleet.wire import SourceReport, pack_delivery
from verlwatch.shell.notifiers import TransientError
from verlwatch.shell.notifiers._http import network_errors, retry_after
from verlwatch.shell.store import Store, StoreUnavailable
from verlwatch.status import ReceiverStatus

if TYPE_CHECKING:
    import ssl

    import aiohttp

HEARTBEAT_S = 10.0
REQUEST_BYTES = 1 << 20
LEAST_REQUEST_BYTES = 1 << 12
FIRST_BACKOFF_S, MAX_BACKOFF_S = 1.0, 30.0
STUCK_S = 60.0
_EXCHANGES = 8
_DOUBLINGS = 10

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

    def __init__(self, text: str, wait_s: float | None = None) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class Link:
    """The way to the hub; it stands where a standalone watcher has its receivers (see `Deliver`)."""

    def __init__(
        self,
        store: Store,
        session: aiohttp.ClientSession,
        way: Way,
        clock: Clock,
        sources: Callable[[], list[SourceReport]],
    ) -> None:
        self._store = store
        self._session = session
        self._way = way
        self._clock = clock
        self._sources = sources
        self._wake = asyncio.Event()
        self._stop_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._request_bytes = REQUEST_BYTES
        self._failures = 0
        self._failing_since: float | None = None
        self._error: str | None = None
        self._exchanges: deque[tuple[float, float]] = deque(maxlen=_EXCHANGES)
        self._waiting, self._oldest_at = 0, 0.0
        self._delivered = 0

    # ------------------------------------------------------------------------------------------------ as Deliver
    def loops(self) -> list[Coroutine[None, None, None]]:
        """The one loop, for the caller's TaskGroup; it ends after `drain`."""
        return [self._run()]

    def notify(self) -> None:
        """There may be new shipments: to be called after each commit."""
        self._wake.set()

    async def drain(self, grace_s: float) -> None:
        """Sends what waits within ``grace_s`` seconds and ends the loop; what is left stays in the store."""
        stop_at = self._stop_at = self._clock.now() + grace_s
        self._wake.set()
        while self._task is not None and not self._ended.is_set() and 0 < stop_at - self._clock.now() <= grace_s:
            await self._clock.wait(self._ended, stop_at)
        if self._task is not None and not self._ended.is_set():
            self._task.cancel()
            await self._ended.wait()

    def delivered(self) -> dict[str, int]:
        """How many shipments the hub has taken since the start."""
        return {"hub": self._delivered}

    def health(self) -> tuple[ReceiverStatus, ...]:
        """The hub, as a receiver of shipments."""
        return (
            ReceiverStatus(
                name="hub",
                type="hub",
                pending=self._waiting,
                delivered=self._delivered,
                oldest_pending_at=self._oldest_at if self._waiting else None,
                last_error=self._error,
            ),
        )

    def stuck(self) -> tuple[str, ...]:
        """A sentence where the hub has taken nothing for STUCK_S."""
        since, now = self._failing_since, self._clock.now()
        if since is None or now - since < STUCK_S:
            return ()
        return (
            f"receiver hub has taken nothing for {now - since:.0f} s, {self._waiting} shipments wait: {self._error}",
        )

    @property
    def offset_s(self) -> float | None:
        """By how much the hub's clock is ahead of this host's; None before the first answer."""
        return min(self._exchanges)[1] if self._exchanges else None

    # ------------------------------------------------------------------------------------------------ the loop
    async def _run(self) -> None:
        self._task = asyncio.current_task()
        try:
            while True:
                self._wake.clear()
                wait_s = await self._turn()
                stopping = self._stop_at is not None
                if stopping and (not self._waiting or self._clock.now() >= (self._stop_at or 0.0)):
                    return
                if wait_s:
                    # after a failure nothing new makes the next try come earlier
                    event = asyncio.Event() if self._failures and not stopping else self._wake
                    await self._clock.wait(event, self._clock.now() + wait_s)
        finally:
            self._ended.set()

    async def _turn(self) -> float:
        """One delivery; how long to wait for the next, 0 while more waits."""
        try:
            epoch, oldest, rows = await self._store.shipments(self._request_bytes, self._clock.now())
            self._waiting, self._oldest_at = await self._store.shipped(oldest - 1)
            taken = await self._deliver(epoch, oldest, rows)
            self._waiting, self._oldest_at = await self._store.shipped(taken)
        except StoreUnavailable as error:
            return self._failed(f"the outbox cannot be read: {error}", None)
        except (TransientError, SecretError) as error:
            return self._failed(str(error), getattr(error, "retry_after", None))
        except Refused as error:
            return self._failed(str(error), error.wait_s)
        if self._error is not None:
            _log.info("the hub takes shipments again", waiting=self._waiting)
        self._failures, self._failing_since, self._error = 0, None, None
        self._delivered += len(rows)
        self._request_bytes = min(REQUEST_BYTES, 2 * self._request_bytes)
        return 0.0 if self._waiting else HEARTBEAT_S

    def _failed(self, error: str, wait_s: float | None) -> float:
        now = self._clock.now()
        if error != self._error:
            _log.warning("the hub takes nothing", error=error, waiting=self._waiting)
        self._failing_since = now if self._failing_since is None else min(now, self._failing_since)
        self._error = error
        backoff = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(self._failures, _DOUBLINGS))
        self._failures += 1
        # not all agents of a hub that comes back at the same moment
        return (backoff if wait_s is None else wait_s) * random.uniform(0.75, 1.25)  # noqa: S311 - no secret

    async def _deliver(self, epoch: int, oldest: int, rows: list[tuple[int, int, bytes]]) -> int:
        """Sends shipments; up to which number the hub has them."""
        sent_at = self._clock.now()
        head = {
            "agent": self._way.agent,
            "software": __version__,
            "epoch": epoch,
            "oldest": oldest,
            "waiting": self._waiting,
            "sent_at": sent_at,
            "offset_s": self.offset_s,
            "sources": self._sources(),
        }
        body = zlib.compress(pack_delivery(head, rows), 1)
        headers = {
            "Authorization": f"Bearer {read_secret(self._way.token_file).reveal().split()[0]}",
            "Content-Type": "application/json",
            "Content-Encoding": "deflate",
        }
        with network_errors():
            async with self._session.post(
                self._way.url, data=body, headers=headers, allow_redirects=False, ssl=self._way.tls or True
            ) as response:
                answer = _object(await response.read())
        answered_at = self._clock.now()
        match response.status:
            case 200 if isinstance(taken := answer.get("taken"), int):
                self._compare_clocks(sent_at, answered_at, answer.get("now"))
                return taken
            case 409 if isinstance(taken := answer.get("taken"), int) and taken >= oldest:
                return taken  # it has more than we knew of
            case 413 if self._request_bytes > LEAST_REQUEST_BYTES:
                self._request_bytes = max(LEAST_REQUEST_BYTES, self._request_bytes // 2)
                raise Refused("the hub takes only smaller requests", 0.1)
        said = answer.get("error")
        raise Refused(
            f"the hub answered {response.status}{f': {said}' if isinstance(said, str) else ''}"[:300],
            retry_after(response.headers, answered_at),
        )

    def _compare_clocks(self, sent_at: float, answered_at: float, theirs: Any) -> None:
        if isinstance(theirs, float) and answered_at >= sent_at:
            self._exchanges.append((answered_at - sent_at, theirs - (sent_at + answered_at) / 2.0))


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}
