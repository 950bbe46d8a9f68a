"""An agent's shipments reach the hub in order, once each, whatever the hub and the way do meanwhile."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from yarl import URL

from tests.fakes._server import Answer, ScriptedServer
from tests.fakes.clock import VirtualClock
from tests.shell.fleet.rig import samples
from verlwatch.core.types import Extract, Outcome
from verlwatch.shell.fleet import link as link_module
from verlwatch.shell.fleet.link import HEARTBEAT_S, LONGEST_WAIT_S, MAX_BACKOFF_S, REQUEST_BYTES, STUCK_S, Link, Way
from verlwatch.shell.fleet.wire import Delivery, SourceReport, unpack
from verlwatch.shell.notifiers import open_session
from verlwatch.shell.store import Store, StoreUnavailable

START = 1_000_000.0


@dataclass
class Response:
    """A hub's answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    async def read(self) -> bytes:
        return self.body


def yes(taken: Any, now: Any = START) -> Response:
    return Response(200, json.dumps({"taken": taken, "now": now}).encode())


class FakeHub:
    """A hub in memory, and the way to it: each direction takes its time.  ``answers`` may answer in its place."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.there_s = self.back_s = self.ahead_s = 0.0
        self.epoch = self.taken = 0
        self.judged: list[int] = []
        self.asked: list[tuple[float, list[int]]] = []
        self.said: list[Delivery] = []
        self.tokens: list[str] = []
        self.sizes: list[int] = []
        self.answers: Callable[[Delivery], Response | Exception | None] | None = None

    @asynccontextmanager
    async def post(
        self, url: str, *, data: bytes, headers: Mapping[str, str], allow_redirects: bool, ssl: object
    ) -> AsyncIterator[Response]:
        assert (url, allow_redirects, ssl) == ("http://hub/", False, True)
        assert headers["Content-Type"] == "application/json"
        body = zlib.decompress(data)
        delivery = unpack(body)
        numbers = [shipment["number"] for shipment in delivery["shipments"]]
        self.asked.append((self.clock.now() - START, numbers))
        self.said.append(delivery)
        self.tokens.append(headers["Authorization"])
        self.sizes.append(len(body))
        self.clock.move(self.there_s)
        answer = self.answers(delivery) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        answer = answer or self.judge(delivery, numbers)
        self.clock.move(self.back_s)
        yield answer

    def judge(self, delivery: Delivery, numbers: list[int]) -> Response:
        if delivery["epoch"] != self.epoch:
            self.epoch, self.taken = delivery["epoch"], delivery["oldest"] - 1
        assert delivery["oldest"] <= self.taken + 1
        fresh = [number for number in numbers if number > self.taken]
        self.judged += fresh
        self.taken = (self.taken, *fresh)[-1]
        return yes(self.taken, self.clock.now() + self.ahead_s)

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.asked]


class Agent:
    """An outbox and its link in a task."""

    def __init__(self, store: Store, token: Path) -> None:
        self.clock = VirtualClock(START)
        self.hub = FakeHub(self.clock)
        self.store = store
        self.token = token
        self.sources: list[SourceReport] = []
        self.shipped: Counter[int] = Counter()
        session = cast("aiohttp.ClientSession", self.hub)
        self.link = Link(store, session, Way("http://hub/", "n1", str(token)), self.clock, lambda: self.sources)
        self.task: asyncio.Task[None] | None = None
        self._last = 0
        self._count_deletions()

    def _count_deletions(self) -> None:
        shipped = self.store.shipments.shipped

        async def counted(number: int, now: float) -> Any:
            self.shipped[number] += 1
            return await shipped(number, now)

        self.store.shipments.shipped = counted  # type: ignore[method-assign]

    async def put(self, count: int = 1) -> None:
        for _ in range(count):
            self._last += 1
            await self.store.commit(
                Outcome(extracts=(Extract("a.log", "r", (samples(self._last),)),)), self.clock.now()
            )
        self.link.notify()

    async def go(self, seconds: float = 0.0) -> None:
        if self.task is None:
            (loop,) = self.link.loops()
            self.task = asyncio.create_task(loop)
        await self.clock.advance(seconds)

    @property
    def error(self) -> str:
        return self.link.health()[0].last_error or ""


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Agent]:
    store = await Store.open(tmp_path / "state")
    token = tmp_path / "token"
    token.write_text("secret-1\n")
    agent = Agent(store, token)
    yield agent
    if agent.task is not None:
        agent.task.cancel()
        await asyncio.wait({agent.task})
    await store.close()


# ---------------------------------------------------------------------------------------------------- all is well
async def test_what_waits_is_sent_in_order_and_deleted_once(agent: Agent) -> None:
    await agent.put(5)
    await agent.go()
    assert agent.hub.judged == [1, 2, 3, 4, 5]
    await agent.put(2)
    await agent.go()
    assert agent.hub.judged == [1, 2, 3, 4, 5, 6, 7]
    assert agent.shipped == {5: 1, 7: 1}
    assert (await agent.store.shipments.oldest(9, START)).number == 8
    (health,) = agent.link.health()
    assert (health.pending, health.delivered, health.last_error, health.oldest_pending_at) == (0, 7, None, None)
    assert agent.link.delivered() == {"hub": 7}


async def test_a_heartbeat_is_sent_where_nothing_is_new(agent: Agent) -> None:
    await agent.go(3 * HEARTBEAT_S)
    assert agent.hub.asked == [(0.0, []), (10.0, []), (20.0, []), (30.0, [])]
    assert agent.hub.said[0]["agent"] == "n1"
    assert {(one["oldest"], one["waiting"]) for one in agent.hub.said} == {(1, 0)}


async def test_a_backlog_goes_in_requests_of_bounded_size_one_behind_the_other(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent.link._hub, "_request_bytes", 2000)
    monkeypatch.setattr(link_module, "REQUEST_BYTES", 2000)
    await agent.put(50)
    await agent.go()
    assert agent.hub.judged == list(range(1, 51))
    assert max(agent.hub.sizes) < 2600
    assert set(agent.hub.times) == {0.0}


async def test_how_the_agent_stands_is_told_as_far_as_there_is_room(agent: Agent) -> None:
    agent.sources = [
        SourceReport(source=f"/{i}" + "d" * 1000, run="r", state="live", readable=True, error="e\udcff" * 900,
                     lag_bytes=0, lag_s=None)
        for i in range(2000)
    ]  # fmt: skip
    await agent.go()
    sources = agent.hub.said[0]["sources"]
    assert 100 < len(sources) < 2000
    assert agent.hub.sizes[0] < 300_000
    assert sources[0]["error"] == ("e\\udcff" * 900)[: len(sources[0]["error"] or "")] != ""


# ---------------------------------------------------------------------------------------------------- no, and again
async def test_failures_back_off_with_jitter_within_bounds_and_without_hurry(agent: Agent) -> None:
    agent.hub.answers = lambda _: aiohttp.ServerDisconnectedError()
    await agent.put()
    await agent.go(300)
    waits = [later - earlier for earlier, later in zip(agent.hub.times, agent.hub.times[1:], strict=False)]
    for number, wait in enumerate(waits):
        backoff = min(MAX_BACKOFF_S, 2.0**number)
        assert 0.75 * backoff <= wait <= 1.25 * backoff
    assert len({round(wait / min(MAX_BACKOFF_S, 2.0**number), 3) for number, wait in enumerate(waits)}) > 3
    asked = len(agent.hub.asked)
    await agent.put(3)
    await agent.clock.parked(1)
    assert len(agent.hub.asked) == asked, "what is new makes no failure come earlier"


def date(seconds: float) -> str:
    return formatdate(START + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7.0, 8.75),
        (date(40), 40.0, 50.0),
        ("0", 0.5, 0.625),
        (date(-99), 0.5, 0.625),
        ("1e9", LONGEST_WAIT_S, 1.25 * LONGEST_WAIT_S),
        (date(1e8), LONGEST_WAIT_S, 1.25 * LONGEST_WAIT_S),
        ("soon", 0.75, 1.25),
        ("1e999", 0.75, 1.25),
        ("-3", 0.75, 1.25),
    ],
)
async def test_retry_after_is_respected_in_both_forms_and_bounded(
    agent: Agent, header: str, least: float, most: float
) -> None:
    agent.hub.answers = lambda _: Response(429, b'{"error": "busy"}', {"Retry-After": header})
    await agent.put()
    await agent.go(400)
    first, second, *_ = agent.hub.times
    assert least <= second - first <= most
    assert agent.error == "the hub answered 429: busy"
    assert agent.shipped == {}


@pytest.mark.parametrize(
    "answer",
    [
        yes(0),
        yes(-5),
        yes(taken=True),
        yes("7"),
        yes(7.0),
        yes(None),
        yes(10**30),
        Response(200, b""),
        Response(200, b"<html>login</html>"),
        Response(200, b"[" * 100_000),
        Response(200, b"\xff"),
        Response(204, b""),
        Response(302, b"", {"Location": "http://elsewhere/"}),
        Response(409, b'{"taken": 0, "error": "shipment 1 is the next one"}'),
        Response(409, b'{"taken": true}'),
        Response(413, b"{}"),
        Response(400, b'{"error": ["x"]}', {"Retry-After": "0"}),
        Response(429, b"{}", {"Retry-After": "0"}),
        Response(500, b"{}"),
    ],
    ids=lambda answer: f"{answer.status} {answer.body[:20]!r}",
)
async def test_no_answer_but_yes_deletes_anything_or_makes_the_agent_hurry(agent: Agent, answer: Response) -> None:
    agent.hub.answers = lambda _: answer
    await agent.put(3)
    await agent.go(10)
    assert len(agent.hub.asked) <= 21, "two a second at most"
    assert agent.error
    assert (await agent.store.shipments.oldest(1 << 20, START)).waiting.shipments == 3
    agent.hub.answers = None
    await agent.go(60)
    assert (agent.hub.judged, agent.error) == ([1, 2, 3], "")


async def test_a_request_that_is_too_large_or_fails_is_halved(agent: Agent) -> None:
    agent.hub.answers = lambda one: Response(413, b"{}") if len(one["shipments"]) > 30 else None
    await agent.put(100)
    await agent.go(60)
    assert agent.hub.judged == list(range(1, 101))
    counts = [len(numbers) for _, numbers in agent.hub.asked]
    assert counts[:2] == [100, 50]
    await agent.go(60)
    assert agent.link._hub._request_bytes == REQUEST_BYTES


async def test_a_slow_way_gets_small_requests_through(agent: Agent) -> None:
    agent.hub.answers = lambda one: TimeoutError() if len(one["shipments"]) > 20 else None
    await agent.put(100)
    await agent.go(200)
    assert agent.hub.judged == list(range(1, 101))


async def test_an_answer_that_was_lost_costs_nothing(agent: Agent) -> None:
    def lose(delivery: Delivery) -> Exception:
        agent.hub.judge(delivery, [shipment["number"] for shipment in delivery["shipments"]])
        return aiohttp.ServerDisconnectedError()

    agent.hub.answers = lose
    await agent.put(3)
    await agent.go(5)
    agent.hub.answers = None
    await agent.put(1)
    await agent.go(60)
    assert agent.hub.judged == [1, 2, 3, 4]
    assert agent.shipped == {4: 1}


async def test_a_hub_that_has_more_than_the_agent_knew_is_believed(agent: Agent) -> None:
    await agent.put(5)
    agent.hub.answers = lambda _: Response(409, b'{"taken": 3}')
    await agent.go(0)
    assert agent.shipped[3] >= 1
    agent.hub.answers = None
    agent.hub.epoch, agent.hub.taken = agent.hub.said[0]["epoch"], 3
    await agent.go(60)
    assert agent.hub.judged == [4, 5]


async def test_a_yes_to_a_part_goes_on_behind_it(agent: Agent) -> None:
    await agent.put(6)
    parts = iter([2, 4])
    agent.hub.answers = lambda one: yes(taken) if (taken := next(parts, None)) else yes(one["shipments"][-1]["number"])
    await agent.go()
    assert agent.hub.asked == [(0.0, [1, 2, 3, 4, 5, 6]), (0.0, [3, 4, 5, 6]), (0.0, [5, 6])]
    assert agent.shipped == {2: 1, 4: 1, 6: 1}
    assert agent.link.delivered() == {"hub": 6}


async def test_an_outbox_that_is_older_than_the_hub_knows_goes_on_as_a_new_one(agent: Agent) -> None:
    await agent.put(2)
    first = (await agent.store.shipments.oldest(1, START)).epoch
    agent.hub.answers = lambda one: yes(7) if one["epoch"] == first else None
    await agent.go()
    assert "restored from a copy" in agent.error
    await agent.go(5)
    assert (agent.hub.judged, agent.error) == ([1, 2], "")
    assert agent.hub.epoch > first


async def test_a_damaged_shipment_is_given_up_when_it_is_refused(agent: Agent) -> None:
    await agent.put(3)
    await agent.store._call(
        agent.store._database._sql.execute, "UPDATE shipment SET extracts = x'5b375d' WHERE number = 2"
    )
    agent.hub.post = refusing(agent.hub)  # type: ignore[method-assign]
    await agent.go(60)
    assert agent.hub.judged == [1, 3]
    assert agent.store.notices == ("rows of the database that cannot be read are left out: 1 of shipment",)


def refusing(hub: FakeHub) -> Any:
    """As a hub refuses what it cannot read, and counts what the agent no longer has."""

    @asynccontextmanager
    async def post(url: str, *, data: bytes, **_: object) -> AsyncIterator[Response]:
        delivery = json.loads(zlib.decompress(data))
        if any(shipment["extracts"] == [7] for shipment in delivery["shipments"]):
            yield Response(400, b"{}")
            return
        numbers = [shipment["number"] for shipment in delivery["shipments"]]
        hub.judged += numbers
        yield yes((*numbers, delivery["oldest"] - 1)[-1 if not numbers else len(numbers) - 1])

    return post


async def test_a_hub_that_was_away_for_hours_gets_everything_in_order(agent: Agent) -> None:
    agent.hub.answers = lambda _: aiohttp.ServerDisconnectedError()
    for _ in range(12):
        await agent.put(5)
        await agent.go(600)
    assert len(agent.hub.asked) < 7200 / (0.75 * MAX_BACKOFF_S) + 10
    (reason,) = agent.link.stuck()
    assert reason.startswith("receiver hub has taken nothing for 7")
    assert "60 shipments wait" in reason
    (health,) = agent.link.health()
    assert (health.pending, health.oldest_pending_at) == (60, START)
    agent.hub.answers = None
    await agent.go(2 * MAX_BACKOFF_S)
    assert agent.hub.judged == list(range(1, 61))
    assert (agent.link.stuck(), agent.error) == ((), "")


async def test_it_is_stuck_only_after_a_minute(agent: Agent) -> None:
    agent.hub.answers = lambda _: aiohttp.ServerDisconnectedError()
    await agent.go(STUCK_S - 1)
    assert agent.link.stuck() == ()
    await agent.go(1)
    assert len(agent.link.stuck()) == 1


async def test_a_disk_that_refuses_is_waited_out(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    await agent.put(2)
    oldest = agent.store.shipments.oldest

    async def refuse(*_: object) -> None:
        raise StoreUnavailable("full")

    monkeypatch.setattr(agent.store.shipments, "oldest", refuse)
    await agent.go(10)
    assert (agent.hub.asked, agent.error) == ([], "the outbox cannot be read: full")
    monkeypatch.setattr(agent.store.shipments, "oldest", oldest)
    await agent.go(20)
    assert agent.hub.judged == [1, 2]


# ---------------------------------------------------------------------------------------------------- token
async def test_a_token_that_changes_is_taken_up(agent: Agent) -> None:
    await agent.go()
    agent.token.write_text("secret-2\nsecret-1\n")
    await agent.go(HEARTBEAT_S)
    assert agent.hub.tokens == ["Bearer secret-1", "Bearer secret-2"]


@pytest.mark.parametrize(
    "content", [None, b"", b"  \n\t\r\n", b"\x1c\x1f\n", b"\xff\xfe", b"a\0b", "schlüssel".encode()]
)
async def test_a_token_file_that_holds_none_is_an_error_that_names_it(agent: Agent, content: bytes | None) -> None:
    agent.token.unlink()
    if content is not None:
        agent.token.write_bytes(content)
    await agent.put()
    await agent.go(10)
    assert str(agent.token) in agent.error
    assert "schl" not in agent.error
    assert agent.hub.asked == []
    agent.token.write_text("secret-3")
    await agent.go(60)
    assert (agent.hub.judged, agent.error) == ([1], "")


# ---------------------------------------------------------------------------------------------------- clocks
@pytest.mark.parametrize("ahead", [-90.0, 0.0, 90.0])
@pytest.mark.parametrize(("there", "back"), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.2, 3.0)])
async def test_the_clocks_are_compared_right_within_the_way_there_and_back(
    agent: Agent, ahead: float, there: float, back: float
) -> None:
    agent.hub.ahead_s, agent.hub.there_s, agent.hub.back_s = ahead, there, back
    assert agent.link.offset_s is None
    await agent.go(35)
    assert agent.link.offset_s == pytest.approx(ahead, abs=(there + back) / 2 + 1e-6)
    assert agent.hub.said[0]["offset_s"] is None
    assert agent.hub.said[-1]["offset_s"] == pytest.approx(ahead, abs=(there + back) / 2 + 1e-6)


async def test_the_shortest_exchange_tells_best(agent: Agent) -> None:
    agent.hub.ahead_s, agent.hub.back_s = 5.0, 2.0
    await agent.go()
    assert agent.link.offset_s == pytest.approx(4.0)
    agent.hub.back_s = 0.0
    await agent.go(HEARTBEAT_S + 5)
    assert agent.link.offset_s == pytest.approx(5.0)
    agent.hub.back_s = 2.0
    await agent.go(2 * HEARTBEAT_S)
    assert agent.link.offset_s == pytest.approx(5.0)


async def test_a_clock_that_was_set_is_found_out_at_the_next_exchange(agent: Agent) -> None:
    agent.hub.ahead_s, agent.hub.there_s = 5.0, 0.1
    await agent.go(2 * HEARTBEAT_S)
    for ahead in (95.0, -85.0):
        agent.hub.ahead_s = ahead
        await agent.go(HEARTBEAT_S + 1)
        assert agent.link.offset_s == pytest.approx(ahead, abs=0.06)


@pytest.mark.parametrize("now", [True, "x", None, [1], 7])
async def test_a_time_that_is_none_is_not_compared(agent: Agent, now: Any) -> None:
    agent.hub.answers = lambda _: yes(0, now)
    await agent.go(HEARTBEAT_S)
    assert agent.link.offset_s is None
    assert agent.error == ""


async def test_a_clock_that_jumps_holds_nothing_up_for_long(agent: Agent) -> None:
    agent.hub.answers = lambda _: aiohttp.ServerDisconnectedError()
    await agent.put(2)
    await agent.go(100)
    agent.hub.answers = None
    agent.clock.move(1e6)
    await agent.clock.parked(1)
    assert agent.hub.judged == [1, 2]


# ---------------------------------------------------------------------------------------------------- the end
async def test_drain_sends_what_waits_and_ends(agent: Agent) -> None:
    await agent.go()
    await agent.put(3)
    await agent.link.drain(5.0)
    assert agent.task is not None
    await agent.task
    assert agent.hub.judged == [1, 2, 3]


async def test_drain_tries_once_more_where_the_hub_was_away_and_does_not_wait(agent: Agent) -> None:
    agent.hub.answers = lambda _: aiohttp.ServerDisconnectedError()
    await agent.put(3)
    await agent.go(100)
    asked, now = len(agent.hub.asked), agent.clock.now()
    await agent.link.drain(30.0)
    assert (len(agent.hub.asked), agent.clock.now()) == (asked + 1, now)
    assert (await agent.store.shipments.oldest(1 << 20, START)).waiting.shipments == 3


async def test_drain_cancels_a_request_that_takes_longer_than_the_grace(agent: Agent) -> None:
    started = asyncio.Event()

    @asynccontextmanager
    async def hang(*_: object, **__: object) -> AsyncIterator[Response]:
        started.set()
        await asyncio.Event().wait()
        yield yes(0)

    agent.hub.post = hang  # type: ignore[method-assign]
    await agent.put(1)
    (loop,) = agent.link.loops()
    agent.task = asyncio.create_task(loop)
    await started.wait()
    draining = asyncio.create_task(agent.link.drain(5.0))
    await agent.clock.parked(1)
    agent.clock.move(4.9)
    await asyncio.sleep(0)
    assert not draining.done()
    agent.clock.move(0.2)
    await draining
    assert agent.task.cancelled() or agent.task.cancelling()


# ---------------------------------------------------------------------------------------------------- a real way
class Script(ScriptedServer):
    """Answers what it was told to, and no more."""

    async def accept(self, request: Any, body: bytes) -> Answer:
        raise AssertionError


async def once(agent: Agent, url: str) -> str:
    """The error of one turn over a real connection."""
    async with open_session() as session:
        link = Link(agent.store, session, Way(url, "n1", str(agent.token)), agent.clock, list)
        await link._hub.turn()
        return link.health()[0].last_error or ""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(200, "<html>sign in</html>"), "the hub answered 200, with nothing that a hub says"),
        (Answer(302, headers={"Location": "http://127.0.0.1:1/"}), "the hub answered 302"),
        (Answer(drop=True), "the connection"),
        (Answer(200, "x" * 200_000), "the answer ended too early or is too long"),
    ],
)
async def test_what_is_no_hub_is_said_in_words(agent: Agent, answer: Answer, words: str) -> None:
    await agent.put()
    async with Script(answer) as server:
        assert words in await once(agent, server.url)
        assert server.requests == 1
    assert (await agent.store.shipments.oldest(1 << 20, START)).waiting.shipments == 1


async def raw(answer: Callable[[asyncio.StreamWriter], Any]) -> tuple[asyncio.Server, str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, str(URL.build(scheme="http", host="127.0.0.1", port=server.sockets[0].getsockname()[1]))


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + bytes(65536) + b"\r\n")
        await writer.drain()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


async def noise(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x15\x03\x01\x00\x02\x02\x16" * 10)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (endless, "the answer ended too early or is too long"),
        (drip, "no answer within"),
        (noise, "the answer is no HTTP"),
    ],
)
async def test_an_answer_without_end_or_sense_is_given_up(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, answer: Callable[[asyncio.StreamWriter], Any], words: str
) -> None:
    monkeypatch.setattr("verlwatch.shell.notifiers._http.TIMEOUT_S", 0.5)
    await agent.put()
    server, url = await raw(answer)
    async with server:
        assert words in await once(agent, url)


async def test_a_hub_that_does_not_listen_is_said_in_words(agent: Agent) -> None:
    assert (await once(agent, "http://127.0.0.1:1/")).startswith("cannot connect to 127.0.0.1:1: ")
