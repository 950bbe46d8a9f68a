"""What a hub says of its agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.fakes.clock import VirtualClock
from tests.shell.http.fake import FakeSource
from verlwatch.core.types import Cursor, Outcome
from verlwatch.fields import Secret
from verlwatch.shell.fleet.hub import PATH, Hub
from verlwatch.shell.fleet.wire import pack_delivery
from verlwatch.shell.http.server import start
from verlwatch.shell.inbox import Inbox
from verlwatch.status import AgentStatus

EPOCH = 7
NOW = 1_000_000.0
FILES: tuple[dict[str, Any], ...] = (
    {"source": "/a", "run": "r", "state": "live", "readable": True, "error": None, "lag_bytes": 9, "lag_s": 4.5},
    {"source": "/b", "run": "r", "state": "unreadable", "readable": False, "error": "x", "lag_bytes": 0, "lag_s": None},
)


class Agents:
    """A hub behind its HTTP server, of whose commits the test decides."""

    def __init__(self, hub: Hub, url: str, client: aiohttp.ClientSession) -> None:
        self.hub = hub
        self._url = url
        self._client = client

    async def deliver(self, *numbers: int, by: str = "n1", **head: object) -> int:
        """The status of the answer to a delivery of n1, with the token of ``by``."""
        about = {
            "agent": "n1", "software": "0.3.0", "epoch": EPOCH, "oldest": 1, "waiting": 5, "sent_at": NOW + 12.0,
            "offset_s": None, "sources": FILES, **head,
        }  # fmt: skip
        body = pack_delivery(about, [(number, 0, b"[]") for number in numbers])
        headers = {"Authorization": f"Bearer of-{by}", "Content-Type": "application/json"}
        async with self._client.post(self._url + PATH[1:], data=body, headers=headers) as response:
            return response.status

    async def heard(self) -> None:
        """Returns once a delivery of n1 is being taken."""
        async with asyncio.timeout(10):
            while self.n1.seen_at is None:
                await asyncio.sleep(0.01)

    def commit(self, number: int, epoch: int = EPOCH) -> None:
        self.hub.committed(Outcome(cursors=(Cursor("agent:n1", epoch, number, number),)))

    @property
    def n1(self) -> AgentStatus:
        return self.hub.agents()[0]


@pytest.fixture
async def agents() -> AsyncIterator[Agents]:
    hub = Hub(Inbox(), VirtualClock(NOW), {"n1": [Secret("of-n1")], "n2": [Secret("of-n2")]}, ())
    server = await start(FakeSource(), ("127.0.0.1", 0), posts={PATH: hub.answer})
    async with aiohttp.ClientSession() as client:
        yield Agents(hub, server.url, client)
    await server.stop()


async def test_what_an_agent_says_of_itself_is_shown(agents: Agents) -> None:
    assert agents.n1 == AgentStatus(name="n1")
    delivering = asyncio.create_task(agents.deliver(1, 2, 3))
    await agents.heard()
    assert agents.n1 == AgentStatus(
        name="n1", version="0.3.0", seen_at=NOW, skew_s=12.0, waiting=5, sources=2, unreadable=("/b",), lag_s=4.5
    )
    agents.commit(3)
    assert await delivering == 200
    assert (agents.n1.taken, agents.n1.waiting) == (3, 2)


async def test_what_an_outbox_that_was_made_anew_holds_waits_though_its_numbers_are_low(agents: Agents) -> None:
    agents.commit(900, epoch=EPOCH - 1)
    delivering = asyncio.create_task(agents.deliver(1))
    await agents.heard()
    assert agents.n1.waiting == 5
    agents.commit(1)
    assert await delivering == 200
    assert agents.n1.waiting == 4


async def test_who_has_no_token_of_its_own_is_a_stranger(agents: Agents) -> None:
    assert [await agents.deliver(by=name) for name in ("", "n3", "n2")] == [401, 401, 403]
    assert agents.hub.strangers == 3
    assert [agent.refused for agent in agents.hub.agents()] == [0, 1]
    assert agents.n1.seen_at is None
