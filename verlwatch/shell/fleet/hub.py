"""Hub: takes deliveries of agents, and says yes once what they hold is judged and committed.

One request:

1. Whose token is it?  Unknown ones are refused and counted; a token is good for the deliveries of its own agent alone.
2. Read the body, bounded before and after it is unpacked, and check it whole: one wrong field refuses all of it.
3. Compare numbers.  The cursor of an agent is (epoch, number of the last shipment committed), in the table in which the
   cursors of files stand.  What is at or below it is ignored, what leaves a gap is refused, unless the agent itself
   does not hold what is missing: then that is counted as lost.
4. Put the rest into the inbox as one parcel.  Where it is full for a while the agent is asked to come again later.
5. Wait for the commit that holds the parcel's cursor; then answer up to which number everything is committed.

Two requests of one agent do not overlap: the second waits for the first.
"""

from __future__ import annotations

import asyncio
import hmac
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog
from aiohttp import hdrs, web

from verlwatch.core.fleet import AgentReport
from verlwatch.core.types import Cursor, Outcome
from verlwatch.fields import Secret
from verlwatch.shell.clock import Clock
from verlwatch.shell.fleet.wire import Delivery, DeliveryError, extracts_of, unpack
from verlwatch.shell.inbox import Inbox, Parcel
from verlwatch.status import AgentStatus

PATH = "/api/v1/fleet/deliveries"
AGENT = "agent:"
"""In front of an agent's name where a cursor has the name of a source."""
BODY_BYTES = 4 << 20
UNPACKED_BYTES = 32 << 20
BODY_S, INBOX_S, COMMIT_S = 20.0, 2.0, 20.0
BUSY_S = 2

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Agent:
    """What a hub knows of an agent: from its cursor ``epoch`` and ``taken``, the rest since its own start."""

    name: str
    epoch: int = 0
    taken: int = 0
    seen_at: float | None = None
    delivery: Delivery | None = None
    skew_s: float | None = None
    thinned: int = 0
    lost: int = 0
    repeated: int = 0
    refused: int = 0
    put: tuple[int, int] = (0, 0)
    """Epoch and number of what is in the inbox, committed or not: a request that comes again must not put it twice."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    committed: asyncio.Event = field(default_factory=asyncio.Event)


class Hub:
    """The agents that are known by their tokens (``tokens``: name -> any of these), and their deliveries."""

    def __init__(
        self, inbox: Inbox, clock: Clock, tokens: Mapping[str, Sequence[Secret]], cursors: Sequence[Cursor]
    ) -> None:
        self.strangers = 0
        """Requests with a token that is nobody's, or another agent's."""
        self._inbox = inbox
        self._clock = clock
        self._agents: dict[str, _Agent] = {}
        self._tokens: dict[str, tuple[bytes, ...]] = {}
        self.reconfigure(tokens)
        self._take_up(cursors)

    def reconfigure(self, tokens: Mapping[str, Sequence[Secret]]) -> None:
        """Takes up other tokens; what is known of an agent stays."""
        self._tokens = {name: tuple(one.reveal().encode() for one in of) for name, of in tokens.items()}
        for name in tokens:
            self._agents.setdefault(name, _Agent(name))

    def committed(self, outcome: Outcome) -> None:
        """Lets those go on whose deliveries a commit held."""
        self._take_up(outcome.cursors)

    def agents(self) -> tuple[AgentStatus, ...]:
        """Each configured agent."""
        return tuple(_status(self._agents[name]) for name in self._tokens)

    # ------------------------------------------------------------------------------------------------ a request
    async def answer(self, request: web.BaseRequest) -> web.Response:
        """The answer to a delivery."""
        agent = self._whose(request)
        if agent is None:
            self.strangers += 1
            return _answer(401, error="the token is missing, wrong or revoked; give the agent one that the hub knows")
        try:
            async with asyncio.timeout(BODY_S):
                delivery = await _body(request)
        except TimeoutError:
            return self._refuse(agent, 408, f"the request has not come whole within {BODY_S:g} s")
        except DeliveryError as error:
            return self._refuse(agent, 413 if "bytes" in str(error) else 400, str(error))
        if delivery["agent"] != agent.name:
            self.strangers += 1
            return self._refuse(agent, 403, f"this token is that of agent {agent.name}, the delivery names another")
        async with agent.lock:
            return await self._take(agent, delivery)

    async def _take(self, agent: _Agent, delivery: Delivery) -> web.Response:
        agent.seen_at = now = self._clock.now()
        agent.delivery = delivery
        offset = delivery["offset_s"]
        agent.skew_s = -offset if offset is not None else delivery["sent_at"] - now
        epoch = delivery["epoch"]
        known_epoch, known = max(agent.put, (agent.epoch, agent.taken))
        if epoch < known_epoch:
            return self._refuse(
                agent,
                409,
                "the outbox of this agent is older than one that the hub has taken deliveries of: another agent uses "
                "the name, or its state was restored from a backup; give it a new state directory of its own",
            )
        before = delivery["oldest"] - 1
        known = known if epoch == known_epoch else before
        fresh = [shipment for shipment in delivery["shipments"] if shipment["number"] > known]
        number = max(known, before) + len(fresh)
        if [shipment["number"] for shipment in fresh] != list(range(number - len(fresh) + 1, number + 1)):
            return _answer(409, taken=agent.taken, error=f"shipment {known + 1} is the next one")
        agent.repeated += len(delivery["shipments"]) - len(fresh)
        parcel = Parcel(_report(delivery))
        is_new = (epoch, number) > max(agent.put, (agent.epoch, agent.taken))
        if is_new:
            extracts = tuple(one for shipment in fresh for one in extracts_of(shipment, agent.name))
            parcel = Parcel(parcel.report, Cursor(f"{AGENT}{agent.name}", epoch, number, number), extracts)
        if not await self._put(parcel):
            return _later(429, "the hub has more to judge than it can take; come again")
        if is_new:
            agent.put = epoch, number
            agent.thinned += sum(shipment["thinned"] for shipment in fresh)
            agent.lost += max(0, before - known)
        if not await self._has_committed(agent, epoch, number):
            return _later(503, "the hub cannot commit now; its status says why")
        return _answer(200, taken=agent.taken, now=self._clock.now())

    async def _put(self, parcel: Parcel) -> bool:
        """Whether there was room for what is to be judged."""
        try:
            async with asyncio.timeout(INBOX_S):
                await self._inbox.put(parcel)
        except (TimeoutError, RuntimeError):
            return False
        return True

    @staticmethod
    async def _has_committed(agent: _Agent, epoch: int, number: int) -> bool:
        """Whether everything up to a number is committed, within a while."""
        try:
            async with asyncio.timeout(COMMIT_S):
                while (agent.epoch, agent.taken) < (epoch, number):
                    agent.committed.clear()
                    await agent.committed.wait()
        except TimeoutError:
            return False
        return True

    def _take_up(self, cursors: Sequence[Cursor]) -> None:
        for cursor in cursors:
            if cursor.source.startswith(AGENT):
                name = cursor.source.removeprefix(AGENT)
                agent = self._agents.setdefault(name, _Agent(name))
                agent.epoch, agent.taken = cursor.generation, cursor.applied_to
                agent.committed.set()

    def _whose(self, request: web.BaseRequest) -> _Agent | None:
        """The agent whose token the request carries; every token is compared, each in constant time."""
        scheme, _, text = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        given = text.strip().encode("utf-8", "surrogateescape") if scheme.lower() == "bearer" else b""
        found = None
        for name, tokens in self._tokens.items():
            for token in tokens:
                if hmac.compare_digest(given, token) and token:
                    found = self._agents[name]
        return found

    @staticmethod
    def _refuse(agent: _Agent, status: int, text: str) -> web.Response:
        agent.refused += 1
        _log.warning("delivery refused", agent=agent.name, status=status, why=text)
        return _answer(status, error=text)


async def _body(request: web.BaseRequest) -> Delivery:
    """The delivery that a request brings; raises DeliveryError."""
    packed = bytearray()
    async for piece in request.content.iter_any():
        packed += piece
        if len(packed) > BODY_BYTES:
            raise DeliveryError(f"a request may have {BODY_BYTES} bytes")
    encoding = request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower()
    if encoding == "identity":
        return unpack(bytes(packed))
    if encoding != "deflate":
        raise DeliveryError(f"Content-Encoding: {encoding[:20]!a} is not known here; send deflate")
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(bytes(packed), UNPACKED_BYTES)
    except zlib.error:
        raise DeliveryError("the body is not deflate") from None
    if unpacking.unconsumed_tail:
        raise DeliveryError(f"a request may have {UNPACKED_BYTES} bytes unpacked")
    if not unpacking.eof or unpacking.unused_data:
        raise DeliveryError("the body is cut, or goes on behind its end")
    return unpack(text)


def _answer(status: int, **fields: Any) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(fields), content_type="application/json")


def _later(status: int, text: str) -> web.Response:
    response = _answer(status, error=text)
    response.headers[hdrs.RETRY_AFTER] = str(BUSY_S)
    return response


def _report(delivery: Delivery) -> AgentReport:
    """What the core needs to know of how the agent stands.  A file that does not exist yet keeps it from nothing."""
    sources = delivery["sources"]
    return AgentReport(
        delivery["agent"],
        tuple(dict.fromkeys(source["run"] for source in sources)),
        len(sources),
        tuple(source["source"] for source in sources if not source["readable"] and source["state"] != "waiting"),
    )


def _waiting(agent: _Agent, delivery: Delivery) -> int:
    """How many shipments are left in the outbox: what came with the delivery leaves it once it is committed."""
    taken = agent.taken if agent.epoch == delivery["epoch"] else 0
    return max(0, min(delivery["waiting"], delivery["oldest"] + delivery["waiting"] - 1 - taken))


def _status(agent: _Agent) -> AgentStatus:
    delivery = agent.delivery
    sources = delivery["sources"] if delivery else []
    return AgentStatus(
        name=agent.name,
        version=delivery["software"] if delivery else None,
        seen_at=agent.seen_at,
        skew_s=agent.skew_s,
        taken=agent.taken,
        waiting=_waiting(agent, delivery) if delivery else 0,
        sources=len(sources),
        unreadable=_report(delivery).unreadable if delivery else (),
        lag_s=max((source["lag_s"] or 0.0 for source in sources), default=0.0),
        thinned=agent.thinned,
        lost=agent.lost,
        repeated=agent.repeated,
        refused=agent.refused,
    )
