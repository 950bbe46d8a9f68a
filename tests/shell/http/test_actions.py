"""Who may change something, and how what is asked is answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from verlwatch.fields import Secret
from verlwatch.shell.http.server import Server, start
from verlwatch.shell.store import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.shell.http.fake import FakeSource
    from verlwatch.core.types import Json

    Post = Callable[..., Awaitable[tuple[int, Any]]]

TOKEN = "canary-token-81f3"
JSON = {"Content-Type": "application/json"}
BEARER = {**JSON, "Authorization": f"Bearer {TOKEN}"}


class Desk:
    """Notes what was asked, and answers it."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.error: Exception | None = None

    async def do(self, asked: Json) -> Any:
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        self.asked.append(asked)
        return {"done": len(self.asked)}


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def server(source: FakeSource, desk: Desk, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    token = Secret(TOKEN) if "guarded" in request.fixturenames else None
    actions = {("GET", "/api/v1/things"): desk.do, ("POST", "/api/v1/things/drop"): desk.do}
    server = await start(source, ("127.0.0.1", 0), token, actions=actions)
    yield server
    await server.stop()


@pytest.fixture
def guarded() -> None:
    """The server has a token."""


@pytest.fixture
def post(server: Server, client: aiohttp.ClientSession) -> Post:
    async def ask(body: bytes | str, headers: dict[str, str], method: str = "POST") -> tuple[int, Any]:
        url = f"{server.url}api/v1/things{'/drop' if method == 'POST' else ''}"
        async with client.request(method, url, data=body or None, headers=headers) as response:
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            return response.status, await response.json()

    return ask


async def test_what_is_asked_in_json_is_done_and_answered(post: Post, desk: Desk) -> None:
    assert await post('{"ids": [1]}', JSON) == (200, {"done": 1})
    assert await post("", {}, "GET") == (200, {"done": 2})
    assert desk.asked == [{"ids": [1]}, {}]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),  # what a form of another page can send
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({**JSON, "Host": "evil.example"}, 421),
    ],
)
async def test_a_page_of_another_site_changes_nothing(
    headers: dict[str, str], status: int, post: Post, desk: Desk
) -> None:
    code, answer = await post("{}", headers)
    assert (code, list(answer), desk.asked) == (status, ["error"], [])


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize(
    "headers",
    [
        JSON,
        {**JSON, "Authorization": "Bearer wrong"},
        {**JSON, "Authorization": aiohttp.encode_basic_auth("me", TOKEN)},  # a browser would send it by itself
    ],
)
async def test_only_the_bearer_token_allows_a_change(headers: dict[str, str], post: Post, desk: Desk) -> None:
    code, answer = await post("{}", headers)
    assert (code, desk.asked) == (401, [])
    assert TOKEN not in str(answer)
    assert (await post("{}", BEARER))[0] == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"[1]", 400), (b"{", 400), (b"\xff\xfe", 400), (b'{"a":"' + b"x" * 70_000 + b'"}', 413)],
)
async def test_a_body_that_is_no_small_json_object_is_refused(body: bytes, status: int, post: Post, desk: Desk) -> None:
    code, answer = await post(body, JSON)
    assert (code, list(answer), desk.asked) == (status, ["error"], [])


async def test_a_body_without_a_length_is_bounded(server: Server, client: aiohttp.ClientSession, desk: Desk) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 10_000
            await asyncio.sleep(0)

    try:
        async with client.post(f"{server.url}api/v1/things/drop", data=endless(), headers=JSON) as response:
            assert response.status == 413
    except aiohttp.ClientOSError:
        pass  # it was closed while we were still sending
    assert desk.asked == []


@pytest.mark.parametrize(
    ("error", "status"), [(ValueError("no such number"), 400), (StoreUnavailable("the disk is full"), 503)]
)
async def test_a_no_says_why(error: Exception, status: int, post: Post, desk: Desk) -> None:
    desk.error = error
    assert await post("{}", JSON) == (status, {"error": str(error)})
