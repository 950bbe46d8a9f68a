"""TLS between agent and hub: who is believed, who is not, and what is said of it."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.certificates import Authority, Pair
from tests.fakes.clock import VirtualClock
from tests.shell.http.fake import FakeSource
from verlwatch.fields import Secret
from verlwatch.shell.fleet import tls
from verlwatch.shell.fleet.hub import PATH, Hub
from verlwatch.shell.fleet.link import Link, Way
from verlwatch.shell.http.server import Server, start
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.notifiers import open_session
from verlwatch.shell.store import Store


class Made(NamedTuple):
    """Certificates for all tests."""

    ours: Authority
    theirs: Authority
    hub: Pair
    expired: Pair
    elsewhere: Pair
    agent: Pair
    stranger: Pair
    locked: Pair


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("certificates")
    ours, theirs = Authority(folder, "ours"), Authority(folder, "theirs")
    return Made(
        ours,
        theirs,
        ours.issue("hub"),
        ours.issue("expired", days=-1),
        ours.issue("elsewhere", "DNS:hub.example.org"),
        ours.issue("agent"),
        theirs.issue("stranger"),
        ours.issue("locked", password="open sesame"),
    )


Serve = Callable[[ssl.SSLContext | None], Awaitable[Server]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """A hub that needs no judge: it knows a newer outbox than anybody has whom TLS lets through."""
    servers = []

    async def serve(context: ssl.SSLContext | None) -> Server:
        hub = Hub(Inbox(), VirtualClock(), {"n1": [Secret("of-n1")]}, ())
        hub._agents["n1"].epoch = 2**62
        servers.append(await start(FakeSource(), ("127.0.0.1", 0), tls=context, posts={PATH: hub.answer}))
        return servers[-1]

    yield serve
    for server in servers:
        await server.stop()


GREETED = "the hub answered 409: the outbox of this agent is older"
"""What this hub says to everybody whom TLS lets through."""


async def said(folder: Path, url: str, context: ssl.SSLContext | None) -> str:
    (folder / "token").write_text("of-n1")
    store = await Store.open(folder / "state")
    try:
        async with open_session() as session:
            way = Way(url.rstrip("/") + PATH, "n1", str(folder / "token"), context)
            link = Link(store, session, way, VirtualClock(), list)
            await link._hub.turn()
            return link.health()[0].last_error or ""
    finally:
        await store.close()


async def test_an_agent_believes_its_own_authority(made: Made, serve: Serve, tmp_path: Path) -> None:
    server = await serve(tls.server(made.hub.certificate, made.hub.key, None))
    assert server.url.startswith("https://127.0.0.1:")
    assert (await said(tmp_path, server.url, tls.client(made.ours.certificate, None, None))).startswith(GREETED)
    named = server.url.replace("127.0.0.1", "localhost")
    assert (await said(tmp_path, named, tls.client(made.ours.certificate, None, None))).startswith(GREETED)


@pytest.mark.parametrize(
    ("shown", "authority"), [("hub", "theirs"), ("hub", None), ("expired", "ours"), ("elsewhere", "ours")]
)
async def test_a_certificate_that_is_not_the_hubs_is_refused(
    made: Made, serve: Serve, tmp_path: Path, shown: str, authority: str | None
) -> None:
    pair: Pair = getattr(made, shown)
    server = await serve(tls.server(pair.certificate, pair.key, None))
    believed: str | None = getattr(made, authority).certificate if authority else None
    error = await said(tmp_path, server.url, tls.client(believed, None, None))
    assert error.startswith("the certificate of 127.0.0.1 is not trusted; ")


async def test_a_hub_may_ask_for_the_certificate_of_an_agent(made: Made, serve: Serve, tmp_path: Path) -> None:
    server = await serve(tls.server(made.hub.certificate, made.hub.key, made.ours.certificate))
    ours = made.ours.certificate
    right = tls.client(ours, made.agent.certificate, made.agent.key)
    assert (await said(tmp_path, server.url, right)).startswith(GREETED)
    for context in (
        tls.client(ours, None, None),
        tls.client(ours, made.stranger.certificate, made.stranger.key),
        tls.client(ours, made.expired.certificate, made.expired.key),
    ):
        error = await said(tmp_path, server.url, context)
        assert error.startswith(("the connection", "cannot connect"))
    assert (await said(tmp_path, server.url, right)).startswith(GREETED)


async def test_a_key_may_stand_in_the_file_of_its_certificate(made: Made, serve: Serve, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_text(Path(made.agent.key).read_text() + Path(made.agent.certificate).read_text())
    server = await serve(tls.server(made.hub.certificate, made.hub.key, made.ours.certificate))
    error = await said(tmp_path, server.url, tls.client(made.ours.certificate, str(both), None))
    assert error.startswith(GREETED)


async def test_plain_http_and_tls_do_not_meet(made: Made, serve: Serve, tmp_path: Path) -> None:
    encrypted = await serve(tls.server(made.hub.certificate, made.hub.key, None))
    plain = await serve(None)
    error = await said(tmp_path, encrypted.url.replace("https:", "http:"), None)
    assert error.startswith(("the connection", "the answer is no HTTP"))
    error = await said(tmp_path, plain.url.replace("http:", "https:"), tls.client(made.ours.certificate, None, None))
    assert error.startswith(("the connection", "cannot connect"))
    assert (await said(tmp_path, plain.url, None)).startswith(GREETED)


def test_old_versions_of_tls_are_not_spoken(made: Made) -> None:
    for context in (
        tls.server(made.hub.certificate, made.hub.key, None),
        tls.client(None, None, None),
        tls.client(made.ours.certificate, None, None),
    ):
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    for context in (tls.client(None, None, None), tls.client(made.ours.certificate, None, None)):
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize(
    ("certificate", "key", "authority", "words"),
    [
        ("absent", "hub.key", None, "absent cannot be read: No such file"),
        ("hub.pem", "absent", None, "absent cannot be read: No such file"),
        ("hub.pem", "locked.key", None, "the key without a password"),
        ("locked.pem", "locked.key", None, "the key without a password"),
        ("hub.pem", "agent.key", None, "are no certificate and its key"),
        ("hub.key", "hub.pem", None, "are no certificate and its key"),
        ("junk", "hub.key", None, "both must be PEM"),
        ("empty", "hub.key", None, "both must be PEM"),
        ("folder", "hub.key", None, "folder cannot be read: Is a directory"),
        ("fifo", "hub.key", None, "fifo cannot be read"),
        ("hub.pem", "hub.key", "absent", "absent cannot be read: No such file"),
        ("hub.pem", "hub.key", "junk", "junk holds no certificate"),
        ("hub.pem", "hub.key", "empty", "empty holds no certificate"),
        ("hub.pem", "hub.key", "hub.key", "hub.key holds no certificate"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_remedy(
    made: Made, certificate: str, key: str, authority: str | None, words: str
) -> None:
    folder = Path(made.hub.certificate).parent
    (folder / "junk").write_bytes(b"\xff\0junk")
    (folder / "empty").write_bytes(b"")
    (folder / "folder").mkdir(exist_ok=True)
    if not (folder / "fifo").exists():
        os.mkfifo(folder / "fifo")
    trusted = str(folder / authority) if authority else None
    with pytest.raises(tls.TlsError, match=words):
        tls.server(str(folder / certificate), str(folder / key), trusted)
    with pytest.raises(tls.TlsError, match=words):
        tls.client(trusted, str(folder / certificate), str(folder / key))
