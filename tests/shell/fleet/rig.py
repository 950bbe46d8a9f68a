"""A hub as it runs: its HTTP server on loopback, its inbox, a judge and a real database."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from tests.shell.http.fake import FakeSource
from verlwatch.core.engine import RECALL, Engine
from verlwatch.core.types import Extract, Origin, Samples, Writer
from verlwatch.fields import Secret
from verlwatch.shell.clock import Clock, SystemClock
from verlwatch.shell.fleet.hub import PATH, Hub
from verlwatch.shell.fleet.wire import pack_delivery, pack_extracts
from verlwatch.shell.http.server import Server, start
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.judge import Judge
from verlwatch.shell.store import Store

EPOCH = 1_700_000_000_000
TOKENS = {"n1": ("of-n1",), "n2": ("of-n2",)}
N1 = "of-n1"


def samples(step: int, source: str = "a.log") -> Samples:
    origin = Origin(source, 1, step * 100, Writer("TaskRunner", 7, ""), "step_metrics")
    return Samples(origin, step, {"timing_s/gen": 40.0 + step % 3, "timing_s/step": 60.0 + step % 3})


def shipment(step: int, run: str = "r") -> bytes:
    """The packed extracts of one step."""
    (packed,) = pack_extracts([Extract("a.log", run, (samples(step),))])
    return packed.extracts


def delivery(*numbers: int, agent: str = "n1", run: str = "r", **head: Any) -> bytes:
    """A delivery of shipments, each of which holds the step of its number."""
    about = {
        "agent": agent, "software": "0", "epoch": EPOCH, "oldest": (*numbers, 1)[0], "waiting": len(numbers),
        "sent_at": 1e6, "offset_s": None, "sources": [], **head,
    }  # fmt: skip
    return pack_delivery(about, [(number, 0, shipment(number, run)) for number in numbers])


class Rig:
    """A hub of two agents.  Nothing is judged before `judge`."""

    def __init__(self, folder: Path, clock: Clock | None = None, inbox: Inbox | None = None) -> None:
        self.folder = folder
        self.clock = clock or SystemClock()
        self._inbox = inbox
        self._judging: asyncio.Task[None] | None = None

    async def start(self, tokens: Mapping[str, Sequence[str]] = TOKENS) -> None:
        self.store = await Store.open(self.folder, durable=True)
        self.inbox = Inbox() if self._inbox is None else self._inbox
        self.engine = Engine()
        self.engine.restore(await self.store.load(RECALL))
        secrets = {name: [Secret(text) for text in texts] for name, texts in tokens.items()}
        self.hub = Hub(self.inbox, self.clock, secrets, self.engine.cursors)
        self.server: Server = await start(FakeSource(), ("127.0.0.1", 0), posts={PATH: self.hub.answer})
        self.url = self.server.url.rstrip("/") + PATH
        self.client = aiohttp.ClientSession()

    def judge(self) -> None:
        """From now on what comes is judged and committed."""
        judge = Judge(self.engine, self.store, self.inbox, SystemClock(), self.hub.committed)
        self._judging = asyncio.create_task(judge.run())

    async def stop(self) -> None:
        await self.client.close()
        self.inbox.close()
        if self._judging is not None:
            await self._judging
            self._judging = None
        await self.server.stop()
        await self.store.close()

    async def post(
        self, body: bytes, token: str | None = N1, *, packed: bool = True, **headers: str
    ) -> tuple[int, dict[str, Any], Mapping[str, str]]:
        """Status, answer and headers of the answer."""
        about = {"Content-Type": "application/json"} | ({"Content-Encoding": "deflate"} if packed else {})
        about |= {"Authorization": f"Bearer {token}"} if token is not None else {}
        about |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = zlib.compress(body, 1) if packed else body
        async with self.client.post(self.url, data=io.BytesIO(data), headers=about) as response:
            return response.status, json.loads(await response.read()), response.headers

    async def takes(self, *numbers: int, **head: Any) -> tuple[int, int | None]:
        """Status, and up to which number the hub says that it has everything."""
        status, answer, _ = await self.post(delivery(*numbers, **head), f"of-{head.get('agent', 'n1')}")
        return status, answer.get("taken")

    async def steps(self, run: str = "r") -> list[int]:
        return [row.step for row in await self.store.steps(run)]

    def tables(self) -> list[str]:
        """Everything in the database, as statements."""
        connection = sqlite3.connect(f"file:{self.folder / 'state.db'}?mode=ro", uri=True)
        try:
            return list(connection.iterdump())
        finally:
            connection.close()
