"""What the bots of three chats have in common: text that means nothing to them, sizes, answers."""

# ruff: noqa: RUF001 - look-alikes are what is expected

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes._limits import Limit, foreign_markup
from tests.fakes._server import Answer
from tests.fakes.webhook import FakeWebhook
from tests.shell.notifier_messages import HUGE, OPENED
from verlwatch.shell.notifiers import PermanentError, TransientError, open_session
from verlwatch.shell.notifiers import _chat as chat
from verlwatch.shell.notifiers._blocks import mrkdwn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import aiohttp

TEXTS = st.text(st.sampled_from("&<>@`*[](){}#-+|! \n\x1b[m\u202e😀ax所有人") | st.characters(), max_size=300)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("<!channel>", "＜!channel＞"),
        ('<at user_id="all">所有人</at>', '＜at user_id="all"＞所有人＜/at＞'),
        ("<at id=all></at>", "＜at id=all＞＜/at＞"),
        ("<@zhangsan>", "＜＠zhangsan＞"),
        ("@所有人 @all a@所有人", "＠所有人 ＠all a＠所有人"),
        ("<https://x|y>", "＜https://x|y＞"),
        ("[page](https://evil.example)", "[page］(https://evil.example)"),
        ("![](https://evil.example/a.png)", "![］(https://evil.example/a.png)"),
        ("&lt;at id=all&gt;", "＆lt;at id=all＆gt;"),
        ("**bold** ~~gone~~ `code`", "∗∗bold∗∗ ∼∼gone∼∼ ˋcodeˋ"),
        ("# headline", "＃ headline"),
        ("\x1b[31mred\x1b[0m \u202eover", "red \\u202eover"),
        ("mail@host.example, [rank0]: a < b & c", "mail@host.example, [rank0]: a ＜ b & c"),
    ],
)
def test_what_a_log_says_arrives_as_plain_text(hostile: str, shown: str) -> None:
    assert chat.neutral(hostile) == shown


def test_a_sign_of_a_log_ends_no_quotes_in_a_command_that_people_copy() -> None:
    command = "verlwatch silence add --run 'a`id`$(id)' --for 2h"
    for shown in (chat.neutral(command), mrkdwn(command)):
        assert shown.count("'") == command.count("'")
        assert "`" not in shown


@given(TEXTS)
def test_no_text_whatever_is_markup(text: str) -> None:
    shown = chat.neutral(text)
    assert foreign_markup(shown, {"status page"}) == []
    assert len(shown) <= 300
    assert "**" not in shown


@given(TEXTS, st.integers(3, 400))
def test_a_text_is_cut_between_characters(text: str, limit: int) -> None:
    text = text.encode(errors="ignore").decode()
    shown = chat.cut(text, limit)
    assert len(shown.encode()) <= limit
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))


def test_what_does_not_fit_is_counted_and_the_footer_stays() -> None:
    shown = chat.markdown(replace(OPENED, evidence=("x" * 300,) * 20), "7e57c0de-1", "head", 2000, "\n")
    lines = shown.split("\n")
    assert len(shown.encode()) <= 2000
    assert lines[0] == "head"
    assert lines[-2] == f"… and {23 - sum(line.startswith('> x') for line in lines)} more"
    assert "incident 7e57c0de · message 7e57c0de-1" in lines[-1]
    assert lines[-1].endswith("[status page](http://127.0.0.1:9878/)")


def test_a_head_that_is_too_long_is_cut() -> None:
    assert len(chat.markdown(HUGE, "k", "😀" * 4000, 4096, "\n").encode()) <= 4096


@pytest.mark.parametrize(
    "link", ["https://x/)](https://evil", "ssh -L 1:2:3 node", "javascript:alert(1)", "https://x/ y"]
)
def test_only_a_plain_url_becomes_a_link(link: str) -> None:
    shown = chat.markdown(replace(OPENED, link=link), "k", "head", 4096, "\n")
    assert "](" not in shown
    assert foreign_markup(shown, set()) == []


def test_a_signature_is_what_openssl_computes() -> None:
    expected = base64.b64encode(hmac.new(b"key", b"text", hashlib.sha256).digest()).decode()
    assert chat.signature("key", "text") == expected == "avqQRqlXnK0UOjhMG1ZLmiUNJ9b2pj+fIL86dZTJ4sY="


# ---------------------------------------------------------------------------------------------------- answers
@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (Answer(200, "<html>log in</html>"), TransientError, "200 but not Chat's; is a proxy"),
        (Answer(200, "[]"), TransientError, "200 but not Chat's"),
        (Answer(404, '{"code": 0}'), PermanentError, "404; check that the file"),
        (Answer(400, '{"errcode": 0, "errmsg": "ok"}'), PermanentError, "400; check that the file"),
        (Answer(403, '{"error": "forbidden"}'), PermanentError, "403; check that the file"),
        (Answer(404, "<html>"), PermanentError, "404; check that the file holds the URL of a bot"),
        (Answer(429, "{}"), TransientError, "Chat answered 429"),
        (Answer(502, "{}"), TransientError, "Chat answered 502"),
        (Answer(307, "", {"Location": "/x"}), PermanentError, "redirect"),
        (Answer(drop=True), TransientError, "closed without an answer"),
    ],
)
async def test_what_is_no_answer_of_the_chat_is_told_as_that(
    answer: Answer, error: type[Exception], text: str, session: aiohttp.ClientSession
) -> None:
    async with FakeWebhook(answer) as server:
        with pytest.raises(error, match=text):
            await chat.post(session, server.url, {}, None, "Chat")


async def test_a_code_is_read_whatever_the_status_is(session: aiohttp.ClientSession) -> None:
    async with FakeWebhook(Answer(400, '{"code": 7}')) as server:
        assert await chat.post(session, server.url, {}, None, "Chat") == {"code": 7}


REFUSALS = {5: chat.Refusal("do this"), 6: chat.Refusal(wait_s=60.0), -1: chat.Refusal()}


@pytest.mark.parametrize(
    ("code", "error", "text", "wait"),
    [
        (5, PermanentError, "Chat answered code 5: do this", None),
        (6, TransientError, "Chat answered code 6: too many messages", 60.0),
        (-1, TransientError, "Chat answered code -1", None),
        (7, PermanentError, "Chat answered code 7; its documentation says", None),
        (None, TransientError, "the answer has no code", None),
        (False, TransientError, "the answer has no code", None),
        ("0", TransientError, "the answer has no code", None),
    ],
)
def test_each_code_is_read_as_it_is_meant(code: Any, error: type[Exception], text: str, wait: float | None) -> None:
    with pytest.raises(error, match=text) as caught:
        chat.judge("Chat", code, REFUSALS)
    assert getattr(caught.value, "retry_after", None) == wait


def test_code_0_is_a_yes() -> None:
    chat.judge("Chat", 0, REFUSALS)


# ---------------------------------------------------------------------------------------------------- the fake
def test_the_limit_of_the_fakes_counts_a_sliding_window_and_punishes() -> None:
    times = iter((0.0, 5.0, 9.0, 15.0, 108.0, 109.5))
    limit = Limit(2, 10.0, lambda: next(times), penalty=100.0)
    assert [limit.exceeded() for _ in range(6)] == [False, False, True, True, True, False]
