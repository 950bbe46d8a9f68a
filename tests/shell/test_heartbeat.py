"""A ping says that the watcher sees and judges; nothing else does."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes._server import Answer, ScriptedServer
from tests.fakes.clock import VirtualClock
from verlwatch.fields import Secret
from verlwatch.shell.heartbeat import BLIND_S, LOOK_S, Heartbeat, Pulse, blind
from verlwatch.shell.notifiers import open_session
from verlwatch.status import AgentStatus, SourceStatus, Status, StoreStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import aiohttp
    from aiohttp import web

EVERY_S = 60.0
NOW = 1_000_000.0
CANARY = "canary-ping-7c1e"
SOURCE = SourceStatus(source="/logs/a.log", run="r", state="live", readable=True, lag_s=0.0)
SEES = Status(version="1", started_at=NOW, now=NOW, ready=True, sources=(SOURCE,))
LOST = replace(SOURCE, state="unreadable", readable=False, error="permission denied")


class Snitch(ScriptedServer):
    """Counts pings."""

    path = f"/{CANARY}"

    def __init__(self, *script: Answer) -> None:
        super().__init__(*script)
        self.pinged: list[str] = []

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        await asyncio.sleep(0)
        self.pinged.append(f"{request.method} {request.path}")
        return Answer(200)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


class Watcher:
    """A heartbeat, and what keeps it from seeing."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.clock = VirtualClock(NOW)
        self.reasons: list[str] = []
        self.pulse = Pulse(Secret(url), EVERY_S)
        self.heartbeat = Heartbeat(session, self.clock, lambda: iter(self.reasons), self.pulse)

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.heartbeat.run())
        await self.clock.parked(1)
        yield
        task.cancel()
        await asyncio.wait({task})

    def status(self) -> dict[str, Any]:
        status = self.heartbeat.status()
        assert status is not None
        return {"sent": status.sent, "withheld": status.withheld, "error": status.error}


async def test_it_pings_at_once_and_then_in_its_rhythm(session: aiohttp.ClientSession) -> None:
    async with Snitch() as snitch:
        watcher = Watcher(session, snitch.url)
        async with watcher.beating():
            assert snitch.pinged == [f"GET /{CANARY}"]
            await watcher.clock.advance(10 * EVERY_S)
            assert len(snitch.pinged) == 11
            assert watcher.status() == {"sent": 11, "withheld": (), "error": None}


async def test_it_is_withheld_while_the_watcher_is_blind_and_comes_at_once_when_it_sees_again(
    session: aiohttp.ClientSession,
) -> None:
    async with Snitch() as snitch:
        watcher = Watcher(session, snitch.url)
        async with watcher.beating():
            watcher.reasons.append("/logs/a.log: permission denied")
            await watcher.clock.advance(10 * EVERY_S)
            assert watcher.status() == {"sent": 1, "withheld": ("/logs/a.log: permission denied",), "error": None}
            watcher.reasons.clear()
            await watcher.clock.advance(LOOK_S)
            assert len(snitch.pinged) == 2


async def test_a_ping_that_is_not_taken_is_tried_again_sooner_and_told_without_the_url(
    session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Snitch(Answer(500), Answer(302, headers={"Location": "http://127.0.0.1:1/"})) as snitch:
        watcher = Watcher(session, snitch.url)
        async with watcher.beating():
            assert watcher.status() == {"sent": 0, "withheld": (), "error": "the answer to the heartbeat was 500"}
            await watcher.clock.advance(1.0)
            assert watcher.status()["error"] == "the answer to the heartbeat was 302"
            await watcher.clock.advance(2.0)
            assert watcher.status() == {"sent": 1, "withheld": (), "error": None}
        said = f"{watcher.heartbeat.status()} {watcher.pulse} {caplog.text} {''.join(capsys.readouterr())}"
        assert CANARY not in said


async def test_a_reload_changes_where_it_goes_or_ends_it(session: aiohttp.ClientSession) -> None:
    async with Snitch() as first, Snitch() as second:
        watcher = Watcher(session, first.url)
        async with watcher.beating():
            watcher.heartbeat.reconfigure(Pulse(Secret(second.url), EVERY_S))
            await watcher.clock.advance(0.0)
            assert (len(first.pinged), len(second.pinged)) == (1, 1)
            watcher.heartbeat.reconfigure(None)
            await watcher.clock.advance(10 * EVERY_S)
            assert (len(first.pinged), len(second.pinged)) == (1, 1)
            assert watcher.heartbeat.status() is None


@pytest.mark.parametrize(
    ("status", "stalled", "reasons"),
    [
        (SEES, None, []),
        (SEES, "judging has not turned for 95 s", ["judging has not turned for 95 s"]),
        (replace(SEES, sources=()), None, ["no file matches the configured logs"]),
        (replace(SEES, sources=(), role="hub"), None, []),
        (replace(SEES, sources=(SOURCE, LOST)), None, ["/logs/a.log: permission denied"]),
        (replace(SEES, sources=(replace(SOURCE, lag_s=BLIND_S),)), None, []),
        (
            replace(SEES, sources=(replace(SOURCE, lag_s=BLIND_S + 1),)),
            None,
            ["/logs/a.log: judging is 61 s behind"],
        ),
        (replace(SEES, store=StoreStatus(ok=False, error="disk full")), None, ["store: disk full"]),
        (replace(SEES, role="hub", agents=(AgentStatus(name="n1", seen_at=NOW),)), None, []),
        (replace(SEES, role="hub", agents=(AgentStatus(name="n1", seen_at=NOW - 61),)), None, ["agent n1 is silent"]),
    ],
)
def test_what_keeps_the_watcher_from_seeing(status: Status, stalled: str | None, reasons: list[str]) -> None:
    assert list(blind(status, stalled)) == reasons
