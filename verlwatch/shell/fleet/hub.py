"""Hub: takes deliveries of agents, and says yes once what they hold is judged and committed.

One request:

1. Whose token is it?  Unknown ones are refused and counted; a token is good for the deliveries of its own agent alone.
2. Read the body, bounded before and after it is unpacked, and check it whole: one wrong field refuses all of it.
3. Compare numbers.  The cursor of an agent is (epoch, number of the last shipment committed), in the table in which the
   cursors of files stand.  What is at or below it is ignored, what leaves a gap is refused, unless the agent itself
   does not hold what is missing: then that is counted as lost.
4. Put the rest into the inbox, in parcels that are judged without holding up the others.  Where there is no room for
   any of it for a while the agent is asked to come again later.
5. Wait for the commit that holds the last parcel's cursor; then answer up to which number everything is committed.

Two requests of one agent do not overlap: the second waits for the first, a third is sent away.

What a token is worth: its holder can say anything about any run.  Agents share runs by name, that is how the hosts of a
training become one run, so an agent may add records to a run that other agents, or this hub's own files, tell of.  It
cannot speak as another agent: its sources carry its name in front, and its deliveries move its own cursor alone.  The
``Host`` of a delivery is not looked at: no page of a browser can know a token.
"""

from __future__ import annotations

import asyncio
import hmac
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
import structlog
from aiohttp import hdrs, web

from verlwatch.core.fleet import AgentReport
from verlwatch.core.types import Cursor, Outcome
from verlwatch.fields import Secret
from verlwatch.shell.clock import Clock
from verlwatch.shell.fleet.wire import MOST_RECORDS, Delivery, DeliveryError, Shipment, extracts_of, unpack
from verlwatch.shell.http._guard import bearer
from verlwatch.shell.inbox import Inbox, Parcel
from verlwatch.status import AgentStatus

PATH = "/api/v1/fleet/deliveries"
AGENT = "agent:"
"""In front of an agent's name where a cursor has the name of a source."""
BODY_BYTES = 3 << 19
"""Of a body, as it comes and unpacked.  An agent sends 1.3 MiB at most, which takes 15 ms to check; to check so much
that is made to be costly holds everything else up for 0.1 to 0.2 s."""
BODY_S, INBOX_S, COMMIT_S = 15.0, 2.0, 10.0
"""Together less than an agent waits for an answer."""
BUSY_S = 2
REQUESTS_AT_ONCE = 2
"""Of one agent: its connection may have broken without the hub having noticed."""
REFUSALS_TOLD_S = 60.0
"""At most so often a refusal of an agent's deliveries is logged; each is counted."""

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
    told_at: float = 0.0
    requests: int = 0
    put: tuple[int, int] = (0, 0)
    """Epoch and number of what is in the inbox, committed or not: a request that comes again must not put it twice."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    committed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def known(self) -> tuple[int, int]:
        """Epoch and number of the last shipment that is committed, or in the inbox and will be."""
        return max(self.put, (self.epoch, self.taken))


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
        if agent.requests >= REQUESTS_AT_ONCE:
            return _later(429, "other requests of this agent are still being answered; come again")
        agent.requests += 1
        try:
            return await self._answer(agent, request)
        finally:
            agent.requests -= 1

    async def _answer(self, agent: _Agent, request: web.BaseRequest) -> web.Response:
        if request.content_type != "application/json":
            return self._refuse(agent, 415, "the Content-Type of a delivery is application/json")
        try:
            async with asyncio.timeout(BODY_S):
                packed = await _body(request)
        except TimeoutError:
            return self._refuse(agent, 408, f"the request has not come whole within {BODY_S:g} s")
        except TooLargeError as error:
            return self._refuse(agent, 413, str(error))
        except (OSError, RuntimeError, aiohttp.ClientError, aiohttp.http.HttpProcessingError):
            return self._refuse(agent, 400, "the request broke off, or its body is no HTTP")
        async with agent.lock:  # unpacked only here: there is one delivery of each agent in memory
            try:
                delivery = _delivery(packed, request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower())
            except TooLargeError as error:
                return self._refuse(agent, 413, str(error))
            except DeliveryError as error:
                return self._refuse(agent, 400, str(error))
            if delivery["agent"] != agent.name:
                self.strangers += 1
                return self._refuse(agent, 403, f"this token is that of agent {agent.name}, the delivery names another")
            return await self._take(agent, delivery)

    async def _take(self, agent: _Agent, delivery: Delivery) -> web.Response:
        epoch, before = delivery["epoch"], delivery["oldest"] - 1
        known_epoch, known = was = agent.known
        if epoch < known_epoch:
            return self._refuse(
                agent,
                409,
                "the outbox of this agent is older than one that the hub has taken deliveries of: another agent uses "
                "the name, or its state was restored from a backup; give it a new state directory of its own",
            )
        known = known if epoch == known_epoch else before
        floor = max(known, before)
        fresh = [shipment for shipment in delivery["shipments"] if shipment["number"] > floor]
        if fresh and fresh[0]["number"] != floor + 1:
            return self._refuse(agent, 409, f"shipment {floor + 1} is the next one", taken=agent.taken)
        self._note(agent, delivery)
        agent.repeated += len(delivery["shipments"]) - len(fresh)
        room = await self._put(agent, delivery, floor, fresh)
        if agent.known > was:
            agent.lost += floor - known
        elif not room:
            return _later(429, "the hub has more to judge than it can take; come again")
        if not await self._has_committed(agent, *agent.known):
            return _later(503, "the hub cannot commit now; its status says why")
        return _answer(200, taken=agent.taken, now=self._clock.now())

    def _note(self, agent: _Agent, delivery: Delivery) -> None:
        """Keeps how the agent stands."""
        agent.seen_at = now = self._clock.now()
        agent.delivery = {**delivery, "shipments": []}
        offset = delivery["offset_s"]
        agent.skew_s = -offset if offset is not None else delivery["sent_at"] - now

    async def _put(self, agent: _Agent, delivery: Delivery, floor: int, fresh: Sequence[Shipment]) -> bool:
        """Puts what is to be judged into the inbox, as far as there is room within a while; whether there was."""
        epoch, report, ahead_s = delivery["epoch"], _report(delivery), -(agent.skew_s or 0.0)
        try:
            async with asyncio.timeout(INBOX_S):
                for part in _parts(fresh) if fresh else ([],):
                    at = epoch, part[-1]["number"] if part else floor
                    cursor = Cursor(f"{AGENT}{agent.name}", *at, at[1]) if at > agent.known else None
                    extracts = tuple(one for shipment in part for one in extracts_of(shipment, agent.name, ahead_s))
                    await self._inbox.put(Parcel(report, cursor, extracts))
                    agent.put = max(agent.known, at)
                    agent.thinned += sum(shipment["thinned"] for shipment in part)
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
        given = bearer(request)
        found = None
        for name, tokens in self._tokens.items():
            for token in tokens:
                if hmac.compare_digest(given, token) and token:
                    found = self._agents[name]
        return found

    def _refuse(self, agent: _Agent, status: int, text: str, **fields: Any) -> web.Response:
        agent.refused += 1
        now = self._clock.now()
        if not 0.0 <= now - agent.told_at < REFUSALS_TOLD_S:
            agent.told_at = now
            _log.warning("delivery refused", agent=agent.name, status=status, why=text, refused=agent.refused)
        return _answer(status, error=text, **fields)


class TooLargeError(DeliveryError):
    """A body that is larger than a hub reads."""


async def _body(request: web.BaseRequest) -> bytes:
    """The body as it came; raises TooLargeError."""
    if (request.content_length or 0) > BODY_BYTES:
        raise TooLargeError(f"a request may have {BODY_BYTES} bytes")
    packed = bytearray()
    async for piece in request.content.iter_any():
        packed += piece
        if len(packed) > BODY_BYTES:
            raise TooLargeError(f"a request may have {BODY_BYTES} bytes")
    return bytes(packed)


def _delivery(packed: bytes, encoding: str) -> Delivery:
    """The delivery in a body; raises DeliveryError."""
    if encoding == "identity":
        return unpack(packed)
    if encoding != "deflate":
        raise DeliveryError(f"Content-Encoding: {encoding[:20]!a} is not known here; send deflate")
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(packed, BODY_BYTES + 1)
    except zlib.error:
        raise DeliveryError("the body is not deflate") from None
    if len(text) > BODY_BYTES:
        raise TooLargeError(f"a request may have {BODY_BYTES} bytes unpacked")
    if not unpacking.eof or unpacking.unused_data:
        raise DeliveryError("the body is cut, or goes on behind its end")
    return unpack(text)


def _parts(shipments: Iterable[Shipment]) -> Iterator[list[Shipment]]:
    """Shipments that are judged together: of MOST_RECORDS records at most."""
    part: list[Shipment] = []
    count = 0
    for shipment in shipments:
        records = sum(len(extract["records"]) for extract in shipment["extracts"])
        if part and count + records > MOST_RECORDS:
            yield part
            part, count = [], 0
        part.append(shipment)
        count += records
    if part:
        yield part


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
        max(0, delivery["waiting"] - len(delivery["shipments"])) + sum(source["lag_bytes"] > 0 for source in sources),
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
