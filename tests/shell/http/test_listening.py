"""Where the server listens: chosen, taken and forbidden addresses."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from verlwatch.fields import Secret
from verlwatch.shell.http.server import ListenError, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    import aiohttp

    from tests.shell.http.conftest import Serve
    from tests.shell.http.fake import FakeSource


@pytest.fixture
def taken() -> Iterator[int]:
    """A port another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


async def answer(client: aiohttp.ClientSession, url: str) -> int:
    async with client.get(url + "healthz") as response:
        return response.status


async def test_the_url_says_where_a_person_opens_it(serve: Serve, client: aiohttp.ClientSession) -> None:
    server = await serve()
    assert server.url == f"http://127.0.0.1:{server.port}/"
    assert await answer(client, server.url) == 200


async def test_a_default_port_that_is_taken_gives_way_to_a_free_one(
    taken: int, source: FakeSource, client: aiohttp.ClientSession
) -> None:
    server = await start(source, ("127.0.0.1", taken), else_any_port=True)
    try:
        assert server.port != taken
        assert await answer(client, server.url) == 200
    finally:
        await server.stop()


async def test_a_chosen_port_that_is_taken_is_an_error_that_says_what_to_do(taken: int, source: FakeSource) -> None:
    with pytest.raises(ListenError, match=rf"127\.0\.0\.1:{taken}: address already in use; .*ss -ltnp.*http\.listen"):
        await start(source, ("127.0.0.1", taken))


async def test_after_stopping_the_port_is_free_at_once(source: FakeSource, client: aiohttp.ClientSession) -> None:
    first = await start(source, ("127.0.0.1", 0))
    assert await answer(client, first.url) == 200
    await first.stop()
    second = await start(source, ("127.0.0.1", first.port))
    try:
        assert await answer(client, second.url) == 200
    finally:
        await second.stop()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - what is tested
async def test_an_address_others_can_reach_is_refused_without_a_token(host: str, source: FakeSource) -> None:
    with pytest.raises(ListenError, match=r"a token is needed; set http\.token_file, or listen on 127\.0\.0\.1"):
        await start(source, (host, 0))


async def test_with_a_token_every_address_can_be_served(serve: Serve, client: aiohttp.ClientSession) -> None:
    server = await serve(listen=("0.0.0.0", 0), token=Secret("canary"))  # noqa: S104 - what is tested
    assert server.url == f"http://127.0.0.1:{server.port}/"
    assert await answer(client, server.url) == 200


async def test_the_address_a_client_connected_to_is_a_host_of_ours(serve: Serve, client: aiohttp.ClientSession) -> None:
    server = await serve(listen=("0.0.0.0", 0), token=Secret("canary"))  # noqa: S104 - what is tested
    assert await answer(client, f"http://127.0.0.2:{server.port}/") == 200


@pytest.mark.skipif(not has_ipv6(), reason="this host has no IPv6 loopback")
async def test_the_ipv6_loopback_is_served(serve: Serve, client: aiohttp.ClientSession) -> None:
    server = await serve(listen=("::1", 0))
    assert server.url == f"http://[::1]:{server.port}/"
    assert await answer(client, server.url) == 200


async def test_localhost_is_the_loopback(serve: Serve, client: aiohttp.ClientSession) -> None:
    server = await serve(listen=("localhost", 0))
    assert await answer(client, server.url) == 200


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
async def test_an_address_of_another_host_is_an_error_that_says_so(host: str, source: FakeSource) -> None:
    with pytest.raises(ListenError, match=rf"cannot listen on {host}:0: .*must name an address of this host"):
        await start(source, (host, 0), Secret("canary"))
