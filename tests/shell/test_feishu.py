"""Feishu gets what it documents, and each of its codes is read as it is meant."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.feishu import BODY, SECRET, TOKEN, FakeFeishu, problems, refusal, texts
from tests.shell.notifier_messages import EMPTY, HOSTILE, HUGE, MESSAGES, OPENED, everywhere
from tests.shell.refusals import refused
from verlwatch.shell.notifiers import PermanentError, TransientError, in_language, open_session
from verlwatch.shell.notifiers.feishu import FeishuConfig, FeishuNotifier, sign, with_keyword

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp

    from tests.fakes._server import Answer

TEXTS = st.text(st.sampled_from("&<>@`*[](){}| \n\x1b[m\u202e😀a所") | st.characters(), max_size=400)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


def notifier(url: str, session: aiohttp.ClientSession, folder: Path, **settings: Any) -> FeishuNotifier:
    (folder / "url").write_text(f"{url}\n")
    (folder / "secret").write_text(f"{SECRET}\n")
    files = {"webhook_url_file": str(folder / "url")}
    config = FeishuConfig.model_validate({"name": "feishu", "type": "feishu", **files, **settings})
    return FeishuNotifier(config, session)


# ---------------------------------------------------------------------------------------------------- rendering
@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY, in_language(OPENED, "zh")])
def test_every_card_is_within_the_limits_and_free_of_foreign_markup(message: Any) -> None:
    payload = with_keyword(FeishuNotifier.render(message, "k" * 300), "报警" * 32)
    assert problems(payload["card"]) == []
    assert len(orjson.dumps({"timestamp": "1" * 10, "sign": "s" * 44, **payload})) <= BODY


@given(text=TEXTS, evidence=st.lists(TEXTS, max_size=30))
def test_no_text_whatever_breaks_a_card(text: str, evidence: list[str]) -> None:
    message = replace(everywhere(text), evidence=tuple(evidence), advice=tuple(evidence), facts=((text, text),))
    payload = FeishuNotifier.render(message, "k")
    assert problems(payload["card"]) == []
    assert len(orjson.dumps(payload)) <= BODY


def test_a_hostile_text_mentions_nobody() -> None:
    hostile = replace(HOSTILE, facts=(('<at user_id="all">', "<at id=all></at>"),))
    for tag, text in texts(FeishuNotifier.render(hostile, "k")["card"]):
        assert tag == "plain_text" or "<" not in text


@pytest.mark.parametrize(
    ("changes", "colour"),
    [
        ({"severity": "critical"}, "red"),
        ({"severity": "warning"}, "orange"),
        ({"severity": "info"}, "blue"),
        ({"closed_as": "resolved"}, "green"),
        ({"closed_as": "accepted"}, "green"),
        ({"closed_as": "run ended"}, "grey"),
    ],
)
def test_the_title_has_the_colour_of_how_things_stand(changes: dict[str, Any], colour: str) -> None:
    assert FeishuNotifier.render(replace(OPENED, **changes), "k")["card"]["header"]["template"] == colour


def test_of_many_lines_as_many_are_shown_as_fit() -> None:
    card = FeishuNotifier.render(replace(OPENED, evidence=("报" * 300,) * 40), "k")["card"]
    (shown,) = [text for _, text in texts(card) if text.startswith("报")]
    assert shown.split("\n")[-1] == "… and 30 more"


# ---------------------------------------------------------------------------------------------------- sending
@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY])
async def test_feishu_takes_every_message(message: Any, session: aiohttp.ClientSession, tmp_path: Path) -> None:
    payload = FeishuNotifier.render(message, "k")
    async with FakeFeishu() as feishu:
        await notifier(feishu.url, session, tmp_path).send(payload, "k")
    assert feishu.received == [payload]


def test_the_signature_is_that_of_an_empty_text_with_time_and_secret_as_the_key() -> None:
    expected = base64.b64encode(hmac.new(b"1599360473\nsecret", b"", hashlib.sha256).digest()).decode()
    assert sign("secret", 1_599_360_473) == expected


async def test_a_bot_that_checks_signature_and_keyword_takes_what_has_them(
    session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    payload = FeishuNotifier.render(OPENED, "k")
    async with FakeFeishu(secret=SECRET, keyword="报警") as feishu:
        plain = notifier(feishu.url, session, tmp_path)
        with pytest.raises(PermanentError, match="19021: the signature was refused; put the bot's signing secret"):
            await plain.send(payload, "k")
        signed = notifier(feishu.url, session, tmp_path, secret_file=str(tmp_path / "secret"))
        with pytest.raises(PermanentError, match="19024: the message lacks the bot's keyword; set keyword"):
            await signed.send(payload, "k")
        whole = notifier(feishu.url, session, tmp_path, secret_file=str(tmp_path / "secret"), keyword="报警")
        await whole.send(payload, "k")
    assert [text for _, text in texts(feishu.received[0]["card"])][-1] == "报警"


def test_a_keyword_that_the_message_has_is_not_added() -> None:
    payload = FeishuNotifier.render(OPENED, "k")
    assert with_keyword(payload, "verlwatch") == payload == with_keyword(payload, None)
    assert with_keyword(payload, "plain_text") != payload  # it stands in the card's form only


@pytest.mark.parametrize(
    ("answer", "error", "text", "wait"),
    [
        (refusal(9499, "too many request"), TransientError, "code 9499: too many messages", 60.0),
        (refusal(9499, "Bad Request"), PermanentError, "code 9499: Feishu did not understand", None),
        (refusal(11232, "frequency limited"), TransientError, "code 11232: too many messages", 60.0),
        (refusal(19001, "param invalid"), PermanentError, "code 19001: the webhook URL is wrong", None),
        (refusal(19021, "sign match fail"), PermanentError, "code 19021: the signature was refused", None),
        (refusal(19022, "Ip Not Allowed"), PermanentError, "code 19022: this host's IP address", None),
        (refusal(19024, "Key Words Not Found"), PermanentError, "code 19024: the message lacks", None),
        (refusal(4711, SECRET), PermanentError, "code 4711; its documentation", None),
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
    async with FakeFeishu(answer) as feishu:
        sending = notifier(feishu.url, session, tmp_path).send(FeishuNotifier.render(OPENED, "k"), "k")
        await refused(sending, error, text, wait, TOKEN, SECRET)


async def test_a_wrong_url_is_told(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeFeishu() as feishu:
        with pytest.raises(PermanentError, match="19001"):
            await notifier(feishu.url + "x", session, tmp_path).send(FeishuNotifier.render(OPENED, "k"), "k")


async def test_each_bot_has_a_proxy_of_its_own(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeFeishu() as proxy:
        there = f"http://open.feishu.invalid{FakeFeishu.path}"
        bot = notifier(there, session, tmp_path, proxy=proxy.url.removesuffix(FakeFeishu.path))
        await bot.send(FeishuNotifier.render(OPENED, "k"), "k")
        assert proxy.requests == 1


def test_full_and_half_hours_are_avoided_by_each_bot_for_itself(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    moments = set()
    for n in range(20):
        bot = notifier(f"https://open.feishu.cn/open-apis/bot/v2/hook/{n}", session, tmp_path)
        for hour in (1_800_000_000.0, 1_800_001_800.0):
            late = bot.not_before(hour) - hour
            assert 10.0 <= late < 30.0
            assert {bot.not_before(hour + d) - hour for d in (-5.0, -0.1, 0.0, 3.0, 9.9)} == {late}
            assert [bot.not_before(hour + d) - hour for d in (-5.1, late, 900.0)] == pytest.approx([-5.1, late, 900.0])
            moments.add(late)
    assert len(moments) > 5


# ---------------------------------------------------------------------------------------------------- the fake
def test_the_fake_refuses_what_feishu_refuses() -> None:
    good = FeishuNotifier.render(OPENED, "k")["card"]
    div = {"tag": "div", "text": {"tag": "lark_md", "content": "x"}}
    bad = [
        {**good, "header": {**good["header"], "template": "pink"}},
        {**good, "header": {"template": "red", "title": {"tag": "plain_text", "content": ""}}},
        {**good, "elements": []},
        {**good, "elements": [{"tag": "marquee"}]},
        {**good, "elements": [{"tag": "div", "fields": []}]},
        *({**good, "elements": [{**div, "text": {"tag": "lark_md", "content": text}}]} for text in BAD_MARKDOWN),
    ]
    assert problems(json.loads(json.dumps(good))) == []
    assert [bool(problems(card)) for card in bad] == [True] * len(bad)


BAD_MARKDOWN = (
    "<at id=all></at>",
    "@所有人",
    "[x](https://evil.example)",
    "**open",
    "`code`",
    "&#60;at",
    "\x1b[1m",
    "",
)
