"""DingTalk gets what it documents, and each of its codes is read as it is meant."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.dingtalk import BODY, SECRET, TOKEN, FakeDingTalk, problems, refusal
from tests.shell.notifier_messages import EMPTY, HOSTILE, HUGE, MESSAGES, OPENED, everywhere
from tests.shell.refusals import refused
from verlwatch.shell.notifiers import PermanentError, TransientError, in_language, open_session
from verlwatch.shell.notifiers.dingtalk import DingTalkConfig, DingTalkNotifier, signed, with_keyword

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp

    from tests.fakes._server import Answer

TEXTS = st.text(st.sampled_from("&<>@`*[](){}#| \n\x1b[m\u202e😀a所") | st.characters(), max_size=400)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


def notifier(url: str, session: aiohttp.ClientSession, folder: Path, **settings: Any) -> DingTalkNotifier:
    (folder / "url").write_text(f"{url}\n")
    (folder / "secret").write_text(f"{SECRET}\n")
    files = {"webhook_url_file": str(folder / "url")}
    config = DingTalkConfig.model_validate({"name": "ding", "type": "dingtalk", **files, **settings})
    return DingTalkNotifier(config, session)


# ---------------------------------------------------------------------------------------------------- rendering
@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY, in_language(OPENED, "zh")])
def test_every_message_is_within_the_limits_and_free_of_foreign_markup(message: Any) -> None:
    payload = with_keyword(DingTalkNotifier.render(message, "k" * 300), "报警" * 32)
    assert problems(payload) == []
    assert len(orjson.dumps(payload)) <= BODY


@given(text=TEXTS, evidence=st.lists(TEXTS, max_size=30))
def test_no_text_whatever_breaks_a_message(text: str, evidence: list[str]) -> None:
    message = replace(everywhere(text), evidence=tuple(evidence), advice=tuple(evidence), facts=((text, text),))
    payload = DingTalkNotifier.render(message, "k")
    assert problems(payload) == []
    assert len(orjson.dumps(payload)) <= BODY


def test_a_hostile_text_mentions_nobody() -> None:
    payload = DingTalkNotifier.render(replace(HOSTILE, title="@所有人 @13800000000"), "k")
    assert payload["at"] == {"isAtAll": False}
    assert "@" not in payload["markdown"]["text"] + payload["markdown"]["title"]


def test_the_lock_screen_shows_the_title() -> None:
    assert DingTalkNotifier.render(OPENED, "k")["markdown"]["title"] == f"🟠 {OPENED.title}"


# ---------------------------------------------------------------------------------------------------- sending
@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY])
async def test_dingtalk_takes_every_message(message: Any, session: aiohttp.ClientSession, tmp_path: Path) -> None:
    payload = DingTalkNotifier.render(message, "k")
    async with FakeDingTalk() as ding:
        await notifier(ding.url, session, tmp_path).send(payload, "k")
    assert ding.received == [payload]


def test_the_signature_stands_in_the_url_with_the_milliseconds() -> None:
    for at in range(1_800_000_000_000, 1_800_000_000_050):  # among them signatures with + and /
        query = parse_qs(urlsplit(signed("https://oapi.dingtalk.com/robot/send?access_token=t", "s", at)).query)
        expected = base64.b64encode(hmac.new(b"s", f"{at}\ns".encode(), hashlib.sha256).digest()).decode()
        assert query == {"access_token": ["t"], "timestamp": [str(at)], "sign": [expected]}


async def test_a_robot_that_checks_signature_and_keyword_takes_what_has_them(
    session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    payload = DingTalkNotifier.render(OPENED, "k")
    async with FakeDingTalk(secret=SECRET, keyword="报警") as ding:
        with pytest.raises(PermanentError, match="310000: the message lacks the robot's keyword; set keyword"):
            await notifier(ding.url, session, tmp_path).send(payload, "k")
        with pytest.raises(PermanentError, match="310000: the time in the signature is over an hour away"):
            await notifier(ding.url, session, tmp_path, keyword="报警").send(payload, "k")
        settings = {"keyword": "报警", "secret_file": str(tmp_path / "secret")}
        for _ in range(8):
            await notifier(ding.url, session, tmp_path, **settings).send(payload, "k")
    assert len(ding.received) == 8
    assert ding.received[0]["markdown"]["text"].endswith("\n\n报警")


async def test_a_wrong_secret_is_told(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeDingTalk(secret="another") as ding:
        robot = notifier(ding.url, session, tmp_path, secret_file=str(tmp_path / "secret"))
        with pytest.raises(PermanentError, match="310000: the signature does not match; put the robot's") as caught:
            await robot.send(DingTalkNotifier.render(OPENED, "k"), "k")
    assert SECRET not in str(caught.value)


def test_a_keyword_that_the_message_has_is_not_added() -> None:
    payload = DingTalkNotifier.render(OPENED, "k")
    assert with_keyword(payload, "verlwatch") == payload == with_keyword(payload, None)


@pytest.mark.parametrize(
    ("answer", "error", "text", "wait"),
    [
        (refusal(130101, "send too fast", status=1111), TransientError, "130101: too many messages", 600.0),
        (refusal(410100, "发送速度太快而限流"), TransientError, "410100", 600.0),
        (refusal(-1, "系统繁忙"), TransientError, "-1", None),
        (refusal(300001, "token is not exist"), PermanentError, "300001: the webhook URL is wrong", None),
        (refusal(310000, "ip 1.2.3.4 not in whitelist"), PermanentError, "310000: this host's IP address", None),
        (refusal(310000, "description:ip 不在白名单中"), PermanentError, "310000: this host's IP address", None),
        (refusal(310000, "关键词不匹配"), PermanentError, "310000: the message lacks the robot's keyword", None),
        (refusal(310000, "something new"), PermanentError, "310000: the robot's safety settings refused it", None),
        (refusal(460101, "too big"), PermanentError, "460101: DingTalk did not understand", None),
        (refusal(4711, SECRET), PermanentError, "4711; its documentation", None),
    ],
)
async def test_each_code_is_read_as_it_is_meant(
    answer: Answer,
    error: type[Exception],
    text: str,
    wait: float | None,
    session: aiohttp.ClientSession,
    tmp_path: Path,
) -> None:
    async with FakeDingTalk(answer) as ding:
        sending = notifier(ding.url, session, tmp_path).send(DingTalkNotifier.render(OPENED, "k"), "k")
        await refused(sending, error, text, wait, TOKEN, SECRET)


async def test_a_wrong_token_is_told(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeDingTalk() as ding:
        with pytest.raises(PermanentError, match="300001"):
            await notifier(ding.url + "x", session, tmp_path).send(DingTalkNotifier.render(OPENED, "k"), "k")


async def test_each_robot_has_a_proxy_of_its_own(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeDingTalk() as proxy:
        there = f"http://oapi.dingtalk.invalid{FakeDingTalk.path}"
        robot = notifier(there, session, tmp_path, proxy=proxy.url.removesuffix(FakeDingTalk.path))
        await robot.send(DingTalkNotifier.render(OPENED, "k"), "k")
        assert proxy.requests == 1


# ---------------------------------------------------------------------------------------------------- the fake
def test_the_fake_refuses_what_dingtalk_refuses() -> None:
    good = DingTalkNotifier.render(OPENED, "k")
    bad = [
        {**good, "msgtype": "text"},
        {**good, "more": 1},
        {**good, "at": {"isAtAll": True}},
        {**good, "at": {"atMobiles": ["138"]}},
        {**good, "markdown": {"title": "", "text": "x"}},
        {**good, "markdown": {"title": "x", "text": "![](https://evil.example/a.png)"}},
        {**good, "markdown": {"title": "x", "text": "@所有人"}},
    ]
    assert problems(good) == []
    assert [bool(problems(payload)) for payload in bad] == [True] * len(bad)
