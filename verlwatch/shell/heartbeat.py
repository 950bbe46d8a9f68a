"""A dead man's switch: a URL is asked for as long as this watcher really sees and judges.

A watcher that is dead or blind tells nobody anything, and neither does one that finds nothing.  Whoever gets the pings
tells people when none comes.  So a ping says: every log is readable, judging keeps up with it, and what is found can
be kept.  While that is not so it is withheld, and comes again at once when it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from verlwatch.fields import Secret
from verlwatch.shell._line import backoff
from verlwatch.shell.clock import Clock
from verlwatch.shell.notifiers import DeliveryError, TransientError
from verlwatch.shell.notifiers._http import network_errors, proxy_for
from verlwatch.status import HeartbeatStatus, Status

if TYPE_CHECKING:
    import aiohttp

BLIND_S = 60.0
"""Judging that is longer behind a log than this does not see."""
LOOK_S = 5.0
"""How often a watcher that does not see looks whether it does again."""
_NAMED = 3

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pulse:
    """Where the pings go, every how many seconds, and through which proxy."""

    url: Secret
    every_s: float
    proxy: str | None = None


def blind(status: Status, stalled: str | None) -> Iterator[str]:
    """What keeps the watcher from seeing and judging, a sentence each."""
    if stalled is not None:
        yield stalled
    if not status.store.ok:
        yield f"store: {status.store.error}"
    if not status.sources and status.role != "hub":  # a hub may have no files of its own
        yield "no file matches the configured logs"
    for source in status.sources:
        if not source.readable:
            yield f"{source.source}: {source.error or source.state}"
        elif (source.lag_s or 0.0) > BLIND_S:
            yield f"{source.source}: judging is {source.lag_s:.0f} s behind"
    yield from (f"agent {agent.name} is silent" for agent in status.agents if status.is_silent(agent))


class Heartbeat:
    """The pings.  ``blind`` tells what keeps the watcher from seeing; ``pulse`` is replaced at a reload."""

    def __init__(
        self, session: aiohttp.ClientSession, clock: Clock, blind: Callable[[], Iterator[str]], pulse: Pulse | None
    ) -> None:
        self._session = session
        self._clock = clock
        self._blind = blind
        self._pulse = pulse
        self._changed = asyncio.Event()
        self._sent = self._failures = 0
        self._sent_at: float | None = None
        self._error: str | None = None
        self._withheld: tuple[str, ...] = ()

    def reconfigure(self, pulse: Pulse | None) -> None:
        """Goes on with another URL or rhythm, or with none."""
        self._pulse = pulse
        self._changed.set()

    def status(self) -> HeartbeatStatus | None:
        """How it stands; None where there is none."""
        if self._pulse is None:
            return None
        return HeartbeatStatus(sent=self._sent, sent_at=self._sent_at, withheld=self._withheld, error=self._error)

    async def run(self) -> None:
        """Pings until it is cancelled."""
        while True:
            self._changed.clear()
            pulse = self._pulse
            until = None if pulse is None else self._clock.now() + await self._beat(pulse)
            while not self._changed.is_set() and (until is None or 0.0 < until - self._clock.now() <= _most(pulse)):
                await self._clock.wait(self._changed, until)

    async def _beat(self, pulse: Pulse) -> float:
        """One ping, unless it is withheld; how long to wait for the next."""
        reasons = tuple(self._blind())
        if bool(reasons) != bool(self._withheld):
            say = _log.warning if reasons else _log.info
            say("heartbeat withheld" if reasons else "heartbeat goes on", reasons=list(reasons[:_NAMED]))
        self._withheld = reasons[:_NAMED]
        if reasons:
            return min(LOOK_S, pulse.every_s)
        try:
            await self._ping(pulse)
        except DeliveryError as error:
            if self._error != str(error):
                _log.warning("heartbeat not taken", error=str(error))
            self._error = str(error)
            self._failures += 1
            return backoff(self._failures - 1, pulse.every_s)
        self._sent += 1
        self._sent_at, self._error, self._failures = self._clock.now(), None, 0
        return pulse.every_s

    async def _ping(self, pulse: Pulse) -> None:
        url = pulse.url.reveal()
        with network_errors():
            async with self._session.get(url, proxy=proxy_for(url, pulse.proxy), allow_redirects=False) as answer:
                if not 200 <= answer.status < 300:  # noqa: PLR2004 - the class of yes
                    raise TransientError(f"the answer to the heartbeat was {answer.status}")


def _most(pulse: Pulse | None) -> float:
    """The longest that it waits: more is left only where the clock was set back."""
    return pulse.every_s if pulse else 0.0
