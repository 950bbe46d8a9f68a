"""The generic webhook: what docs/WEBHOOK.md promises to receivers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from tests.fakes._server import Answer
from tests.fakes.json_schema import violations
from tests.fakes.webhook import KEY, SCHEMA, FakeWebhook
from tests.shell.notifier_messages import EMPTY, HOSTILE, HUGE, MESSAGES, OPENED
from verlwatch.fields import SecretError
from verlwatch.shell.notifiers import PermanentError, TransientError, open_session, sample_message
from verlwatch.shell.notifiers.webhook import WebhookConfig, WebhookNotifier

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import aiohttp

DOCUMENT = Path(__file__).parents[2] / "docs" / "WEBHOOK.md"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


def notifier(url: str, session: aiohttp.ClientSession, folder: Path, *, key: str | None = KEY) -> WebhookNotifier:
    (folder / "key").write_text(f"{key}\n")
    secret_file = None if key is None else str(folder / "key")
    return WebhookNotifier(WebhookConfig(name="hook", type="webhook", url=url, secret_file=secret_file), session)


@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY])
def test_every_body_is_what_the_schema_says(message: Any) -> None:
    assert violations(json.loads(json.dumps(WebhookNotifier.render(message, "k"))), SCHEMA) == []


def test_the_schema_describes_and_requires_every_property() -> None:
    assert SCHEMA["required"] == list(SCHEMA["properties"])
    assert set(WebhookNotifier.render(OPENED, "k")) == set(SCHEMA["required"])


def test_a_number_that_is_not_finite_is_null() -> None:
    payload = WebhookNotifier.render(HOSTILE, "k")
    assert (payload["ratio"], payload["before"], payload["after"]) == (None, None, None)


def test_the_document_shows_the_body_of_the_sample_message() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert json.loads(example) == WebhookNotifier.render(sample_message(), "sample-1767225600-1")


async def test_the_document_s_check_accepts_what_is_sent_and_nothing_else(
    session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 - the document's own example
    body = b'{"a":1}'
    headers = notifier("http://127.0.0.1/", session, tmp_path)._headers(body, "k")
    old = {**headers, "X-Verlwatch-Timestamp": str(int(headers["X-Verlwatch-Timestamp"]) - 1000)}
    check = names["is_genuine"]
    assert check(KEY, headers, body) is True
    assert (check("other", headers, body), check(KEY, headers, body + b" "), check(KEY, old, body)) == (False,) * 3


@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE])
async def test_a_receiver_that_verifies_takes_every_message(
    message: Any, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    payload = WebhookNotifier.render(message, "7e57c0de-1")
    async with FakeWebhook() as hook:
        for _ in range(2):
            await notifier(hook.url, session, tmp_path).send(payload, "7e57c0de-1")
    assert hook.received == [("7e57c0de-1", payload)] * 2


async def test_a_wrong_key_is_refused_by_the_receiver(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeWebhook() as hook:
        with pytest.raises(PermanentError, match="the receiver answered 401"):
            await notifier(hook.url, session, tmp_path, key="wrong").send(WebhookNotifier.render(OPENED, "k"), "k")


async def test_without_a_key_nothing_is_signed(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeWebhook(key=None) as hook:
        await notifier(hook.url, session, tmp_path, key=None).send(WebhookNotifier.render(OPENED, "k"), "k")
    assert len(hook.received) == 1


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_every_2xx_is_a_yes(status: int, session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeWebhook(Answer(status)) as hook:
        await notifier(hook.url, session, tmp_path).send(WebhookNotifier.render(OPENED, "k"), "k")
        assert hook.requests == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(301, headers={"Location": "/x"}), PermanentError),
        (Answer(304), PermanentError),
        (Answer(308, headers={"Location": "/x"}), PermanentError),
        (Answer(400), PermanentError),
        (Answer(401), PermanentError),
        (Answer(404), PermanentError),
        (Answer(410), PermanentError),
        (Answer(422), PermanentError),
        (Answer(408), TransientError),
        (Answer(429), TransientError),
        (Answer(500), TransientError),
        (Answer(599), TransientError),
        (Answer(drop=True), TransientError),
    ],
)
async def test_every_other_answer_is_final_or_tried_again(
    answer: Answer, error: type[Exception], session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    async with FakeWebhook(answer) as hook:
        with pytest.raises(error):
            await notifier(hook.url, session, tmp_path).send(WebhookNotifier.render(OPENED, "k"), "k")
        assert hook.requests == 1


async def test_retry_after_is_passed_on(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeWebhook(Answer(503, headers={"Retry-After": "7"})) as hook:
        with pytest.raises(TransientError) as caught:
            await notifier(hook.url, session, tmp_path).send(WebhookNotifier.render(OPENED, "k"), "k")
    assert (str(caught.value), caught.value.retry_after) == ("the receiver answered 503", 7.0)


async def test_a_configured_proxy_is_used(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeWebhook() as proxy:
        url = "http://receiver.invalid" + FakeWebhook.path
        config = WebhookConfig(name="hook", type="webhook", url=url, proxy=proxy.url.removesuffix(FakeWebhook.path))
        with pytest.raises(PermanentError, match="401"):
            await WebhookNotifier(config, session).send(WebhookNotifier.render(OPENED, "k"), "k")
        assert proxy.requests == 1


@pytest.mark.parametrize("urls", [{}, {"url": "https://a.example/", "url_file": "/etc/url"}])
def test_exactly_one_url_is_needed(urls: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="needs either url or url_file"):
        WebhookConfig.model_validate({"name": "hook", "type": "webhook", **urls})


async def test_a_secret_file_without_a_url_in_it_says_so_without_showing_it(
    session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    (tmp_path / "url").write_text("canary-not-a-url")
    config = WebhookConfig(name="hook", type="webhook", url_file=str(tmp_path / "url"))
    with pytest.raises(SecretError) as caught:
        WebhookNotifier(config, session)
    assert "must be a URL with a host" in str(caught.value)
    assert "canary" not in str(caught.value)
