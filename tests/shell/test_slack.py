"""Slack gets what it documents, and each of its answers is read as it is meant."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes._server import Answer
from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from tests.fakes.slack import FakeSlack, length, problems, texts
from tests.shell.notifier_messages import EMPTY, HOSTILE, HUGE, MESSAGES, OPENED
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.notifiers import PermanentError, TransientError, in_language, open_session
from verlwatch.shell.notifiers._blocks import entry, escaped
from verlwatch.shell.notifiers.slack import SlackConfig, SlackNotifier
from verlwatch.shell.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp

TEXTS = st.text(st.sampled_from("&<>@`*|! \n\x1b[m\u202e😀ax") | st.characters(), max_size=400)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


def notifier(url: str, session: aiohttp.ClientSession, folder: Path) -> SlackNotifier:
    (folder / "url").write_text(f"{url}\n")
    return SlackNotifier(SlackConfig(name="slack", type="slack", webhook_url_file=str(folder / "url")), session)


# ---------------------------------------------------------------------------------------------------- rendering
@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY, replace(HUGE, link="https://x/" + "&" * 5000)])
def test_every_message_is_within_the_limits_and_free_of_foreign_markup(message: object) -> None:
    assert problems(SlackNotifier.render(message, "k" * 300)) == []  # type: ignore[arg-type]


@given(title=TEXTS, summary=TEXTS, evidence=st.lists(TEXTS, max_size=30), value=TEXTS, link=TEXTS)
def test_no_text_whatever_breaks_a_message(
    title: str, summary: str, evidence: list[str], value: str, link: str
) -> None:
    message = replace(
        OPENED,
        title=title,
        summary=summary,
        evidence=tuple(evidence),
        advice=tuple(evidence),
        facts=((value, value),),
        sparkline=value,
        phase=value,
        run=value,
        link=link,
    )
    assert problems(SlackNotifier.render(message, "k")) == problems(entry(message, "k")) == []


def test_a_hostile_text_mentions_nobody_and_stays_in_its_code_block() -> None:
    payload = SlackNotifier.render(HOSTILE, "k")
    for text in texts(payload):
        assert "@here" not in text
        assert "<!channel" not in text
        assert "<@" not in text
        assert "<https" not in text
        assert "\x1b" not in text
    formatted = [block["text"]["text"] for block in payload["blocks"] if block.get("text", {}).get("type") == "mrkdwn"]
    assert [text.count("```") for text in formatted] == [0, 2, 0]


def test_a_long_text_is_cut_without_breaking_an_entity() -> None:
    for limit in range(10, 20):
        cut = escaped("a&&&&&&&&", limit)
        assert cut.endswith("…")
        assert cut[:-1].replace("&amp;", "").replace("a", "") == ""
        assert length(cut) <= limit
    assert escaped("a&b", 7) == "a&amp;b"


def test_evidence_is_cut_at_300_characters_a_line_and_what_does_not_fit_is_counted() -> None:
    payload = SlackNotifier.render(replace(OPENED, evidence=("x" * 999,) * 20), "k")
    (block,) = [text for text in texts(payload) if text.startswith("```")]
    lines = block.strip("`").split("\n")
    assert [len(line) for line in lines[:-1]] == [300] * 9
    assert lines[-1] == "… and 11 more"


def test_the_lock_screen_shows_the_title() -> None:
    assert SlackNotifier.render(OPENED, "k")["text"] == f"🟠 {OPENED.title}"


def test_a_receiver_that_wants_chinese_gets_chinese_around_the_message_as_well() -> None:
    shown = "\n".join(texts(SlackNotifier.render(in_language(OPENED, "zh"), "k")))
    assert all(word in shown for word in ("最近各步", "建议", "事件 `7e57c0de`", "|状态页>"))
    assert not any(word in shown for word in ("What to try", "the last steps", "incident"))


# ---------------------------------------------------------------------------------------------------- sending
@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY])
async def test_slack_takes_every_message(message: object, session: aiohttp.ClientSession, tmp_path: Path) -> None:
    payload = SlackNotifier.render(message, "k")  # type: ignore[arg-type]
    async with FakeSlack() as slack:
        await notifier(slack.url, session, tmp_path).send(payload, "k")
    assert slack.received == [payload]


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (Answer(400, "invalid_payload"), PermanentError, "400 invalid_payload: Slack did not understand"),
        (Answer(400, "no_text"), PermanentError, "400 no_text"),
        (Answer(403, "invalid_token"), PermanentError, "403 invalid_token: the webhook URL is wrong or was revoked"),
        (Answer(403, "action_prohibited"), PermanentError, "action_prohibited: the workspace forbids"),
        (Answer(404, "channel_not_found"), PermanentError, "channel_not_found: the channel does not exist"),
        (Answer(404, "no_service"), PermanentError, "no_service: the webhook URL is wrong or was revoked"),
        (Answer(404, "no_active_hooks"), PermanentError, "no_active_hooks"),
        (Answer(410, "channel_is_archived"), PermanentError, "channel_is_archived: the channel is archived"),
        (Answer(404, "<html>nowhere</html>"), PermanentError, "404; check that the file holds the URL"),
        (Answer(302, "", {"Location": "/elsewhere"}), PermanentError, "302 with a redirect, which is not followed"),
        (Answer(307, "", {"Location": "/elsewhere"}), PermanentError, "307 with a redirect, which is not followed"),
        (Answer(200, "<html>log in</html>"), TransientError, "200 but not Slack's ok"),
        (Answer(408, ""), TransientError, "Slack answered 408"),
        (Answer(429, "rate_limited"), TransientError, "Slack answered 429"),
        (Answer(500, "rollup_error"), TransientError, "Slack answered 500"),
        (Answer(503, ""), TransientError, "Slack answered 503"),
        (Answer(drop=True), TransientError, "closed without an answer"),
    ],
)
async def test_each_answer_is_read_as_it_is_meant(
    answer: Answer, error: type[Exception], text: str, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    async with FakeSlack(answer) as slack:
        with pytest.raises(error, match=text):
            await notifier(slack.url, session, tmp_path).send(SlackNotifier.render(OPENED, "k"), "k")
        assert slack.requests == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [({"Retry-After": "30"}, 30.0), ({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0), ({}, None)],
)
async def test_retry_after_is_passed_on_in_both_its_forms(
    header: dict[str, str], seconds: float | None, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    async with FakeSlack(Answer(429, "rate_limited", header)) as slack:
        with pytest.raises(TransientError) as caught:
            await notifier(slack.url, session, tmp_path).send(SlackNotifier.render(OPENED, "k"), "k")
    assert caught.value.retry_after == seconds


async def test_a_wrong_path_is_no_service(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeSlack() as slack:
        with pytest.raises(PermanentError, match="no_service"):
            await notifier(slack.url + "x", session, tmp_path).send(SlackNotifier.render(OPENED, "k"), "k")


async def test_a_proxy_of_the_environment_is_used_unless_the_host_is_exempt(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = SlackNotifier.render(OPENED, "k")
    async with FakeSlack() as slack, FakeSlack() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.rpartition("/services")[0])
        await notifier(slack.url, session, tmp_path).send(payload, "k")
        assert (slack.requests, proxy.requests) == (0, 1)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        await notifier(slack.url, session, tmp_path).send(payload, "k")
        assert (slack.requests, proxy.requests) == (1, 1)


async def test_the_outbox_reaches_slack_through_trouble_in_order(
    session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    clock = VirtualClock()
    store = await Store.open(tmp_path / "state")
    await store.commit(outcome(*(notification(f"k{n}", message=OPENED) for n in range(4))), clock.now())
    trouble = [Answer(503), Answer(429, "rate_limited", {"Retry-After": "20"}), Answer(410, "channel_is_archived")]
    async with FakeSlack(*trouble) as slack, asyncio.TaskGroup() as group:
        deliver = Deliver(store, {"slack": notifier(slack.url, session, tmp_path)}, clock)
        group.create_task(deliver.loops()[0])
        await clock.advance(60.0)
        await deliver.drain(0.0)
    assert [payload["blocks"][-1]["block_id"] for payload in slack.received] == ["k1", "k2", "k3"]
    stats = (await store.outbox.stats())["slack"]
    assert (stats.done, stats.dead, stats.pending) == (3, 1, 0)
    await store.close()


# ---------------------------------------------------------------------------------------------------- the fake
def test_the_fake_refuses_what_slack_refuses() -> None:
    good = SlackNotifier.render(OPENED, "k")
    header, section = good["blocks"][0], good["blocks"][1]
    text = header["text"]["text"]
    bad = [
        {**good, "text": ""},
        {**good, "text": "<!channel>"},
        {**good, "text": "a & b"},
        {**good, "blocks": []},
        {**good, "blocks": [section] * 51},
        {**good, "blocks": [{**header, "text": {"type": "plain_text", "text": text + "x" * 150}}]},
        {**good, "blocks": [{**header, "text": {"type": "mrkdwn", "text": "x"}}]},
        {**good, "blocks": [{**section, "text": {"type": "plain_text", "text": "x" * 3001}}]},
        {**good, "blocks": [{**section, "text": {"type": "plain_text", "text": ""}}]},
        {**good, "blocks": [{"type": "section", "fields": [{"type": "mrkdwn", "text": "x"}] * 11}]},
        {**good, "blocks": [{"type": "section", "fields": [{"type": "mrkdwn", "text": "x" * 2001}]}]},
        {**good, "blocks": [{"type": "section"}]},
        {**good, "blocks": [{"type": "marquee"}]},
        {**good, "blocks": [{**section, "block_id": "same"}, {**header, "block_id": "same"}]},
    ]
    assert problems(json.loads(json.dumps(good))) == []
    assert [bool(problems(payload)) for payload in bad] == [True] * len(bad)
