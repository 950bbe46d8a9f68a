"""A real server on a free port of the loopback and a real client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.shell.http.fake import FakeSource
from verlwatch.shell.http.server import Server, start

if TYPE_CHECKING:
    from verlwatch.fields import Secret


Serve = Callable[..., Awaitable[Server]]
Get = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
async def serve(source: FakeSource) -> AsyncIterator[Serve]:
    started: list[Server] = []

    async def begin(
        *,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        token: Secret | None = None,
        allowed_hosts: tuple[str, ...] = (),
    ) -> Server:
        started.append(await start(source, listen, token, allowed_hosts))
        return started[-1]

    yield begin
    for server in started:
        await server.stop()


@pytest.fixture
async def server(serve: Serve) -> Server:
    return await serve()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def get(server: Server, client: aiohttp.ClientSession) -> Get:
    """Asks for a path and gives the status and the body, JSON parsed."""

    async def ask(path: str, method: str = "GET", **how: Any) -> tuple[int, Any]:
        async with client.request(method, server.url.rstrip("/") + path, **how) as response:
            body = await (response.json() if response.content_type == "application/json" else response.text())
            return response.status, body

    return ask
