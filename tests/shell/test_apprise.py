"""Services that apprise knows get plain text; what goes wrong is told without the URL."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from tests.fakes._server import Answer, ScriptedServer
from tests.shell.notifier_messages import EMPTY, HOSTILE, HUGE, MESSAGES, OPENED
from verlwatch.fields import SecretError
from verlwatch.shell.notifiers import DeliveryError, TransientError, open_session
from verlwatch.shell.notifiers import apprise as channel
from verlwatch.shell.notifiers.apprise import AppriseConfig, AppriseNotifier

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp
    from aiohttp import web

    from verlwatch.core.types import Message

SECRET = "canary-path-77ab"

pytest.importorskip("apprise", reason="needs apprise: pip install 'verlwatch[apprise]'")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # its plugins import what Python is to drop


class FakeService(ScriptedServer):
    """What apprise's ``json://`` sends to: anybody's HTTP endpoint."""

    path = f"/{SECRET}"

    def __init__(self, *script: Answer) -> None:
        super().__init__(*script)
        self.received: list[dict[str, Any]] = []

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        self.received.append(json.loads(body))
        return Answer(200 if request.path.strip("/") == SECRET else 404)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


def notifier(url: str, session: aiohttp.ClientSession, folder: Path) -> AppriseNotifier:
    (folder / "service").write_text(url.replace("http://", "json://"))
    return AppriseNotifier(AppriseConfig(name="rest", type="apprise", service_file=str(folder / "service")), session)


@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY])
async def test_every_message_arrives_as_it_was_rendered(
    message: Message, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    payload = AppriseNotifier.render(message, "k")
    async with FakeService() as service:
        await notifier(service.url, session, tmp_path).send(payload, "k")
    (received,) = service.received
    assert received["title"] == payload["title"]
    assert received["message"] == payload["body"]
    assert len(payload["body"].split("\n")) <= 40


def test_nothing_mentions_anybody() -> None:
    shown = "\n".join(AppriseNotifier.render(HOSTILE, "k").values())
    assert not any(sign in shown for sign in ("<", "@here", "@U123", "\x1b", "\u202e", "`", "*bold*"))


def test_the_type_tells_how_things_stand() -> None:
    messages = (OPENED, replace(OPENED, severity="critical"), MESSAGES["resolved"])
    assert [AppriseNotifier.render(message, "k")["notify_type"] for message in messages] == [
        "warning",
        "failure",
        "success",
    ]


@pytest.mark.parametrize("answer", [Answer(500), Answer(403), Answer(drop=True), Answer(302, "", {"Location": "/x"})])
async def test_whatever_apprise_calls_a_no_is_tried_again(
    answer: Answer, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    async with FakeService(answer) as service:
        with pytest.raises(TransientError, match="did not take the message; apprise does not say why"):
            await notifier(service.url, session, tmp_path).send(AppriseNotifier.render(OPENED, "k"), "k")
        assert service.requests == 1


async def test_a_plugin_that_raises_is_no_end_and_its_text_is_not_told(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: Any) -> bool:
        raise RuntimeError(SECRET)

    receiver = notifier("http://127.0.0.1:1/", session, tmp_path)
    monkeypatch.setattr(receiver._service, "notify", broken)
    with pytest.raises(TransientError, match=r"^apprise failed: RuntimeError$"):
        await receiver.send(AppriseNotifier.render(OPENED, "k"), "k")


async def test_the_url_is_nowhere_to_be_read(
    session: aiohttp.ClientSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = []
    with caplog.at_level(logging.DEBUG):
        async with FakeService(Answer(500, SECRET), Answer(drop=True)) as service:
            receiver = notifier(service.url, session, tmp_path)
            for _ in range(2):
                with pytest.raises(DeliveryError) as caught:
                    await receiver.send(AppriseNotifier.render(OPENED, "k"), "k")
                told.append(repr(caught.value))
    assert "canary" not in "".join((*told, caplog.text, repr(vars(receiver))))


def test_a_file_without_a_service_is_named_and_not_shown(session: Any, tmp_path: Path) -> None:
    (tmp_path / "service").write_text(f"nothing://{SECRET}")
    config = AppriseConfig(name="rest", type="apprise", service_file=str(tmp_path / "service"))
    with pytest.raises(SecretError, match="service: holds no URL of a service that apprise knows") as caught:
        AppriseNotifier(config, session)
    assert SECRET not in str(caught.value)


def test_without_apprise_the_configuration_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "find_spec", lambda _: None)
    with pytest.raises(ValidationError, match=r"pip install 'verlwatch\[apprise\]'"):
        AppriseConfig(name="rest", type="apprise", service_file="/x")
