"""Who is refused, and what every answer carries."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.shell.http.fake import FakeSource, status
from verlwatch.fields import Secret
from verlwatch.status import SourceStatus

if TYPE_CHECKING:
    from tests.shell.http.conftest import Get, Serve
    from verlwatch.shell.http.server import Server

EVERY_PATH = [
    "/",
    "/healthz",
    "/readyz",
    "/api/v1/status",
    "/api/v1/agents",
    "/metrics",
    "/static/style.css",
    "/nothing",
]


async def raw(server: Server, request: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of the answer to bytes a polite client would not send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request.encode())
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode().rstrip()
    first, *lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    body = await reader.readexactly(int(headers["Content-Length"]))
    writer.close()
    return int(first.split()[1]), headers, body.decode()


@pytest.mark.parametrize("path", EVERY_PATH)
async def test_every_answer_is_protected(path: str, server: Server, client: aiohttp.ClientSession) -> None:
    async with client.get(server.url.rstrip("/") + path) as response:
        assert response.headers["Content-Security-Policy"] == "default-src 'self'"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["Cache-Control"] == "no-store"
        assert "Server" not in response.headers
        assert "Set-Cookie" not in response.headers
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_even_the_answer_to_garbage_is_protected_and_names_no_software(server: Server) -> None:
    code, headers, _ = await raw(server, "GAR BAGE\r\n\r\n")
    assert code == 400
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in headers


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST", "localhost.", "localhost:1", "127.0.0.1:9878"]
)
@pytest.mark.parametrize("path", ["/", "/healthz"])
async def test_the_loopback_names_are_served(path: str, host: str, get: Get) -> None:
    assert (await get(path, headers={"Host": host}))[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:9878", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.2", "[::2]"],
)
@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/api/v1/status", "/nothing"])
async def test_a_rebound_name_is_refused_and_told_what_to_do(path: str, host: str, get: Get) -> None:
    code, body = await get(path, headers={"Host": host})
    assert code == 421
    assert "http.allowed_hosts" in body["error"]


@pytest.mark.parametrize("hosts", ["", "Host: \r\n", "Host: [::1\r\n", "Host: a b\r\n"])
async def test_a_missing_or_malformed_host_is_refused(hosts: str, server: Server) -> None:
    code, _, body = await raw(server, f"GET / HTTP/1.0\r\n{hosts}\r\n")
    assert code in {400, 421}
    assert "qwen" not in body


async def test_two_hosts_are_refused(server: Server) -> None:
    code, _, body = await raw(server, "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
    assert code in {400, 421}
    assert "qwen" not in body


async def test_an_allowed_name_is_served(serve: Serve, client: aiohttp.ClientSession) -> None:
    server = await serve(allowed_hosts=("watch.example.org", "Other.Example.org:8443"))
    for host in ("watch.example.org", "WATCH.example.org:443", "other.example.org"):
        async with client.get(server.url, headers={"Host": host}) as response:
            assert response.status == 200, host


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/", "/api/v1/status"])
async def test_nothing_but_reading_is_possible(path: str, method: str, server: Server) -> None:
    code, headers, body = await raw(server, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    if method == "BREW":
        assert code in {400, 405}
    else:
        assert (code, headers["Allow"]) == (405, "GET, HEAD")
        assert "only GET and HEAD" in body


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/api/v1/status"])
async def test_head_is_get_without_a_body(path: str, server: Server, client: aiohttp.ClientSession) -> None:
    async with client.head(server.url.rstrip("/") + path) as response:
        assert response.status == 200
        assert await response.read() == b""
        assert int(response.headers["Content-Length"]) > 0


async def test_a_large_body_is_refused_unread(server: Server) -> None:
    code, headers, body = await raw(server, "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n")
    assert code == 413
    assert "65536 bytes" in body
    assert headers["X-Content-Type-Options"] == "nosniff"


async def test_a_header_without_end_is_refused(server: Server) -> None:
    code, _, _ = await raw(server, f"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: {'a' * 20_000}\r\n\r\n")
    assert code == 400


TOKEN = "canary-token-1a2b"


@pytest.fixture
async def locked(serve: Serve) -> Server:
    return await serve(token=Secret(TOKEN))


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anyone:{password}".encode()).decode()


@pytest.mark.parametrize("path", ["/", "/api/v1/status", "/metrics", "/static/style.css", "/nothing"])
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Token {TOKEN}",
        TOKEN,
        basic("wrong"),
        "Basic !",
        "Basic",
    ],
)
async def test_without_the_token_nothing_is_told(
    path: str, authorization: str | None, locked: Server, client: aiohttp.ClientSession
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    async with client.get(locked.url.rstrip("/") + path, headers=headers) as response:
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Basic ")
        body = await response.text()
    assert "Authorization: Bearer" in body
    assert TOKEN not in body


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic(TOKEN)])
async def test_the_token_opens_as_bearer_or_as_a_browsers_password(
    authorization: str, locked: Server, client: aiohttp.ClientSession
) -> None:
    async with client.get(locked.url, headers={"Authorization": authorization}) as response:
        assert response.status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/-/healthy", "/-/ready"])
async def test_probes_need_no_token(path: str, locked: Server, client: aiohttp.ClientSession) -> None:
    async with client.get(locked.url.rstrip("/") + path) as response:
        assert response.status in {200, 503}


async def test_without_the_token_what_is_not_ready_is_named_without_paths_hosts_and_errors(
    locked: Server, client: aiohttp.ClientSession, source: FakeSource
) -> None:
    blind = [SourceStatus(source=f"/home/ada/{n}.log", run="qwen", state="gone", readable=n > 1) for n in range(3)]
    reasons = [
        *("source /home/ada/0.log: permission denied", "source /home/ada/1: x.log: gone"),
        *("store: /home/ada/state: disk full", "config: /etc/ada.yaml:1:1: bad", "receiver ops: hooks.example: no"),
        *("run qwen: gen is no longer judged: 'ada'", "run qwen: ref is no longer judged: 'ada'"),
    ]
    source.now = replace(status(), ready=False, not_ready=tuple(reasons), sources=tuple(blind))
    url = locked.url.rstrip("/") + "/readyz"
    async with client.get(url) as response:
        assert response.status == 503
        assert await response.json() == {
            "ready": False,
            "not_ready": ["run qwen: 2 of 3 logs cannot be read", "store", "config", "receiver ops", "run qwen"],
        }
    async with client.get(url, headers={"Authorization": f"Bearer {TOKEN}"}) as response:
        assert (await response.json())["not_ready"] == reasons


async def test_the_token_does_not_open_for_a_rebound_name(locked: Server, client: aiohttp.ClientSession) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
    async with client.get(locked.url, headers=headers) as response:
        assert response.status == 421
