"""`verlwatch status` asks a daemon that serves HTTPS: whom it believes, and what it shows."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.shell.http.fake import FakeSource
from verlwatch.cli import main
from verlwatch.shell.fleet import tls
from verlwatch.shell.http.server import Server, start
from verlwatch.shell.state_dir import Served, announce, lock

Serve = Callable[..., Awaitable[Server]]
Note = Callable[[str, str], tuple[str, ...]]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``ca.pem``; ``hub.pem`` signed by it for the name localhost; ``self.pem`` by nobody; each with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates")
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "self"):
        openssl("req", "-x509", *new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    openssl("req", *new, "-subj", "/CN=hub", "-keyout", "hub.key", "-out", "hub.csr")
    by_ca = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    openssl("x509", "-req", "-in", "hub.csr", *by_ca, "-extfile", "names", "-out", "hub.pem")
    return folder


@pytest.fixture
async def serve(certificates: Path) -> AsyncIterator[Serve]:
    servers: list[Server] = []

    async def begin(name: str, client_ca: str | None = None) -> Server:
        authority = str(certificates / client_ca) if client_ca else None
        context = tls.server(str(certificates / f"{name}.pem"), str(certificates / f"{name}.key"), authority)
        servers.append(await start(FakeSource(), ("127.0.0.1", 0), tls=context))
        return servers[-1]

    yield begin
    for server in servers:
        await server.stop()


@pytest.fixture
def noted(tmp_path: Path, certificates: Path) -> Iterator[Note]:
    """Notes an address and a certificate as the daemon of a state directory does; the arguments that name it."""
    held: list[int] = []

    def note(url: str, name: str) -> tuple[str, ...]:
        held.append(lock(tmp_path))
        announce(held[0], Served(url, tls.leaf(str(certificates / f"{name}.pem"))))
        return "--state-dir", str(tmp_path)

    yield note
    for descriptor in held:
        os.close(descriptor)


async def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What it prints, wherever; the status of the fake daemon is that it is not ready."""
    assert await asyncio.to_thread(main, ["status", *arguments]) == 1
    said = capsys.readouterr()
    return said.out + said.err


@pytest.mark.parametrize("name", ["hub", "self"])
async def test_the_daemon_of_the_state_directory_is_known_by_its_certificate(
    name: str, serve: Serve, noted: Note, capsys: pytest.CaptureFixture[str]
) -> None:
    server = await serve(name)
    assert "qwen2.5-7b-grpo: running" in await asked(capsys, *noted(server.url, name))


@pytest.mark.parametrize(("shown", "known"), [("self", "hub"), ("hub", "self")])
async def test_whoever_shows_another_certificate_is_not_asked(
    shown: str,
    known: str,
    serve: Serve,
    noted: Note,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = await serve(shown)
    said = await asked(capsys, *noted(server.url, known))
    assert "the certificate of 127.0.0.1 is not trusted" in said


async def test_elsewhere_the_authority_and_the_name_count(
    certificates: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    server = await serve("hub")
    by_name = server.url.replace("127.0.0.1", "localhost")
    ca = ("--ca", str(certificates / "ca.pem"))
    assert "qwen2.5-7b-grpo: running" in await asked(capsys, "--url", by_name, *ca)
    for arguments in (
        ("--url", server.url, *ca),
        ("--url", by_name),
        ("--url", by_name, "--ca", str(certificates / "self.pem")),
    ):
        said = await asked(capsys, *arguments)
        assert "is not trusted" in said
        assert "--ca" in said
        assert said.count("\n") == 1


async def test_a_daemon_that_asks_for_certificates_is_shown_one(
    tmp_path: Path,
    certificates: Path,
    serve: Serve,
    noted: Note,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = await serve("hub", client_ca="ca.pem")
    state = noted(server.url, "hub")
    own = ("--certificate", str(certificates / "hub.pem"), "--key", str(certificates / "hub.key"))
    assert "qwen2.5-7b-grpo: running" in await asked(capsys, *state, *own)
    assert "--certificate" in await asked(capsys, *state)
    configured = tmp_path / "verlwatch.yaml"
    files = "tls_key: hub.key, tls_certificate: hub.pem, client_ca: ca.pem".replace(": ", f": {certificates}/")
    configured.write_text(f"http: {{{files}}}\n")
    assert "qwen2.5-7b-grpo: running" in await asked(capsys, *state, "--config", str(configured))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--ca", "nothing.pem"), "nothing.pem cannot be read: No such file or directory"),
        (("--ca", "hub.key"), "hub.key holds no certificate"),
        (("--certificate", "hub.pem", "--key", "self.key"), "are no certificate and its key"),
    ],
)
async def test_a_file_that_will_not_do_is_named(
    arguments: tuple[str, ...],
    words: str,
    certificates: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(certificates)
    said = await asked(capsys, "--url", "https://localhost:9/", *arguments)
    assert words in said
    assert said.count("\n") == 1
