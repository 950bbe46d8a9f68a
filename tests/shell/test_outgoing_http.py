"""Outgoing HTTP: trouble in plain words, TLS verified, redirects refused, no secret anywhere."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import ssl
import subprocess
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.fakes import slack as fake_slack
from tests.fakes import webhook as fake_webhook
from tests.fakes._server import Answer, ScriptedServer
from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from tests.fakes.slack import FakeSlack
from tests.fakes.webhook import FakeWebhook
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.notifiers import DeliveryError, Notifier, TransientError, _http, open_session, sample_message
from verlwatch.shell.notifiers._http import proxy_for, retry_after
from verlwatch.shell.notifiers.slack import SlackConfig, SlackNotifier
from verlwatch.shell.notifiers.webhook import WebhookConfig, WebhookNotifier
from verlwatch.shell.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SECRETS = (fake_slack.TOKEN.rpartition("/")[2], fake_webhook.KEY, FakeWebhook.path.rpartition("/")[2])
NOON = 1_767_268_800.0  # 2026-01-01 12:00:00 UTC


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


def notifiers(urls: tuple[str, str], session: aiohttp.ClientSession, folder: Path) -> dict[str, Notifier]:
    """Both notifiers with everything secret that they can have."""
    files = {"slack": urls[0], "hook": urls[1], "key": fake_webhook.KEY}
    for name, content in files.items():
        (folder / name).write_text(content)
    slack = SlackConfig(name="slack", type="slack", webhook_url_file=str(folder / "slack"))
    hook = WebhookConfig(name="hook", type="webhook", url_file=str(folder / "hook"), secret_file=str(folder / "key"))
    return {"slack": SlackNotifier(slack, session), "hook": WebhookNotifier(hook, session)}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("30", 30.0),
        ("1.2", 2.0),
        (" 7 ", 7.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thursday, 01-Jan-26 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:59:00 GMT", 0.0),
        ("Thu, 01 Jan 2026 12:00:30 -0000", 30.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("Thu, 99 Jan 2026 12:00:30 GMT", None),
        ("9" * 400, None),
    ],
)
def test_retry_after_has_two_forms(text: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": text}, NOON) == seconds


def test_a_date_is_rounded_up_to_whole_seconds() -> None:
    assert retry_after({"Retry-After": "Thu, 01 Jan 2026 12:00:30 GMT"}, NOON + 0.25) == 30.0


@pytest.mark.parametrize("ours_is_ahead_s", [-300.0, 0.0, 300.0])
def test_a_date_is_by_the_clock_of_who_sent_it(ours_is_ahead_s: float) -> None:
    headers = {"Date": "Thu, 01 Jan 2026 12:00:00 GMT", "Retry-After": "Thu, 01 Jan 2026 12:00:30 GMT"}
    assert retry_after(headers, NOON + ours_is_ahead_s) == 30.0
    assert retry_after({**headers, "Date": "noon"}, NOON + ours_is_ahead_s) == max(0.0, 30.0 - ours_is_ahead_s)


@pytest.mark.parametrize(
    ("environment", "configured", "expected"),
    [
        ({}, None, None),
        ({}, "http://mine:1", "http://mine:1"),
        ({"https_proxy": "http://env:2"}, None, "http://env:2"),
        ({"https_proxy": "http://env:2"}, "http://mine:1", "http://mine:1"),
        ({"https_proxy": "env:2"}, None, "http://env:2"),
        ({"http_proxy": "http://env:2"}, None, None),
        ({"all_proxy": "http://env:2"}, None, "http://env:2"),
        ({"https_proxy": "socks5://env:2"}, None, None),
        ({"https_proxy": "http://env:2", "no_proxy": "slack.com"}, None, None),
        ({"https_proxy": "http://env:2", "no_proxy": "example.com"}, None, "http://env:2"),
    ],
)
def test_the_proxy_is_the_configured_one_or_that_of_the_environment(
    environment: dict[str, str], configured: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for("https://hooks.slack.com/services/x", configured) == expected


# ---------------------------------------------------------------------------------------------------- trouble
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def errors(urls: tuple[str, str], session: aiohttp.ClientSession, folder: Path) -> list[DeliveryError]:
    """What each notifier raises when it sends there."""
    raised = []
    for notifier in notifiers(urls, session, folder).values():
        with pytest.raises(DeliveryError) as caught:
            await notifier.send(notifier.render(sample_message(), "k"), "k")
        raised.append(caught.value)
    return raised


async def test_a_refused_connection_names_host_port_and_reason(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    port = free_port()
    for error in await errors((f"http://127.0.0.1:{port}/x",) * 2, session, tmp_path):
        assert str(error) == f"cannot connect to 127.0.0.1:{port}: Connect call failed ('127.0.0.1', {port})"
        assert isinstance(error, TransientError)


async def test_an_unknown_host_is_named(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    for error in await errors(("http://receiver.invalid/x",) * 2, session, tmp_path):
        assert str(error).startswith("cannot connect to receiver.invalid:80: ")
        assert isinstance(error, TransientError)


async def test_a_receiver_that_does_not_answer_is_given_up_on_for_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_http, "TIMEOUT_S", 0.05)
    hang = Answer(hang=True)
    async with open_session() as session, FakeSlack(hang) as slack, FakeWebhook(hang) as hook:
        for error in await errors((slack.url, hook.url), session, tmp_path):
            assert str(error) == "no answer within 0.05 s"
            assert isinstance(error, TransientError)


async def test_a_certificate_that_nobody_trusts_is_refused(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    options = ["-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *options, *names], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    async with FakeSlack(tls=tls) as slack, FakeWebhook(tls=tls) as hook:
        for error in await errors((slack.url, hook.url), session, tmp_path):
            assert str(error).startswith("the certificate of 127.0.0.1 is not trusted; ")
            assert isinstance(error, TransientError)
        assert slack.requests + hook.requests == 0


@pytest.mark.parametrize("proxy", ["http://a..b:1", f"http://{'a' * 64}:1", "http://[::1", "http://1.2.3.4.5:1"])
async def test_a_host_that_cannot_exist_is_trouble_in_words(
    proxy: str, session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    for error in await errors(("http://receiver.example/x",) * 2, session, tmp_path):
        assert "has a host that can be neither a name nor an address" in str(error)
        assert isinstance(error, TransientError)


async def test_an_answer_that_does_not_end_is_not_kept(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeSlack(Answer(200, "x" * 1_000_000)) as slack, FakeWebhook() as hook:
        with pytest.raises(TransientError, match="ended too early or is too long"):
            await notifiers((slack.url, hook.url), session, tmp_path)["slack"].send({"text": "t"}, "k")


def test_an_answer_that_is_no_text_is_trouble_in_words() -> None:
    with pytest.raises(TransientError, match="the answer is no text"), _http.network_errors():
        b"\xff".decode()


@pytest.mark.parametrize("kind", [aiohttp.ClientConnectionError, aiohttp.NonHttpUrlRedirectClientError, ValueError])
def test_trouble_without_words_of_its_own_shows_its_kind_and_not_its_text(kind: type[Exception]) -> None:
    with pytest.raises(TransientError) as caught, _http.network_errors():
        raise kind("https://hooks.example.org/canary")
    assert str(caught.value) == f"the request failed: {kind.__name__}"


async def test_no_redirect_is_followed(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeWebhook() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            for place in (elsewhere.url, "http://a..b/", "http://[::1"):
                away = Answer(status, headers={"Location": place})
                async with FakeSlack(away) as slack, FakeWebhook(away) as hook:
                    for error in await errors((slack.url, hook.url), session, tmp_path):
                        assert "redirect" in str(error)
        assert elsewhere.requests == 0


# ---------------------------------------------------------------------------------------------------- secrets
class Everything(logging.Handler):
    """Keeps every record, formatted with its traceback."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> Everything:
    """A handler on every logger there is or will be, all of them at DEBUG."""
    handler = Everything()
    root = logging.getLogger()
    known = [each for each in logging.Logger.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    names = ("slack_sdk", "slack_sdk.webhook.async_client", "aiohttp.client", "verlwatch.silenced.slack_sdk")
    for logger in [root, *known, *map(logging.getLogger, names)]:
        monkeypatch.setattr(logger, "level", logging.DEBUG)
        monkeypatch.setattr(logger, "handlers", [*logger.handlers, handler])
        monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logging.root.manager, "disable", 0)
    logging.root.manager._clear_cache()  # type: ignore[attr-defined]
    return handler


def traces(error: BaseException | None) -> list[str]:
    """Everything that an error shows of itself and of those behind it."""
    if error is None:
        return []
    return [str(error), repr(error), *traces(error.__cause__)]


async def test_no_secret_is_in_any_error_log_repr_or_row(
    everything: Everything, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asyncio.get_running_loop().set_debug(True)
    seen: list[Any] = []
    store = await Store.open(tmp_path / "state")
    clock = VirtualClock()
    scripts = [
        [],
        [Answer(429, headers={"Retry-After": "Thu, 01 Jan 2026 12:00:30 GMT"})],
        [Answer(302, headers={"Location": "/services/elsewhere"})],
        [Answer(404, f"no such hook: {fake_slack.TOKEN} {fake_webhook.KEY} {FakeWebhook.path}")],
        [Answer(500, f"<html>{fake_slack.TOKEN} {FakeWebhook.path}</html>")],
        [Answer(drop=True)],
    ]
    async with open_session() as session:
        for n, script in enumerate(scripts):
            servers: tuple[ScriptedServer, ScriptedServer] = (FakeSlack(*script), FakeWebhook(*script))
            async with servers[0], servers[1]:
                receivers = notifiers((servers[0].url, servers[1].url), session, tmp_path)
                seen += await deliver_once(f"k{n}", receivers, store, clock)
        closed = (f"http://127.0.0.1:{free_port()}{FakeSlack.path}", f"http://receiver.invalid{FakeWebhook.path}")
        seen += await deliver_once("closed", notifiers(closed, session, tmp_path), store, clock)
    await store.close()
    database = b"".join(file.read_bytes() for file in (tmp_path / "state").iterdir())
    shown = "\n".join([*map(str, seen), *everything.lines, *capfd.readouterr(), database.decode("latin-1")])
    assert [secret for secret in SECRETS if secret in shown] == []
    assert "message not taken" in shown


async def deliver_once(key: str, receivers: dict[str, Notifier], store: Store, clock: VirtualClock) -> list[Any]:
    """Sends a message to both, directly and through the outbox; everything that a program might print of it."""
    seen: list[Any] = [repr(receivers)]
    for notifier in receivers.values():
        payload = notifier.render(sample_message(), key)
        try:
            await notifier.send(payload, key)
        except DeliveryError as error:
            seen += [payload, *traces(error)]
    await store.commit(outcome(*(notification(key, key, receiver=name) for name in receivers)), clock.now())
    deliver = Deliver(store, receivers, clock)
    async with asyncio.TaskGroup() as group:
        for loop in deliver.loops():
            group.create_task(loop)
        await clock.parked(2)
        await clock.advance(120.0, parked=2)
        await clock.parked(2)
        seen += [deliver.health(), deliver.stuck(), repr(deliver)]
        await deliver.drain(0.0)
    return [*seen, await store.outbox.stats()]
