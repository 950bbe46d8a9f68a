"""The Slack app: one message an incident, edited in place, with a thread; every answer is read as it is meant."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from tests.fakes._server import Answer
from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from tests.fakes.slack import problems, texts
from tests.fakes.slack_bot import CHANNEL, NAME, TOKEN, FakeSlackBot, key_of, no
from tests.shell.notifier_messages import EMPTY, ESCALATED, FINISHED, HOSTILE, HUGE, MESSAGES, OPENED, RESOLVED
from verlwatch.fields import SecretError
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.notifiers import DeliveryError, PermanentError, TransientError, open_session
from verlwatch.shell.notifiers import _slack_api as api
from verlwatch.shell.notifiers.slack_bot import SlackBotConfig, SlackBotNotifier
from verlwatch.shell.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp

    from verlwatch.core.types import Message, Notification

LIFE = (("k1", OPENED), ("k2", ESCALATED), ("k3", RESOLVED))


class Memory:
    """A place in memory, with all that it ever held."""

    def __init__(self) -> None:
        self.notes: list[str] = [""]

    async def read(self) -> str:
        return self.notes[-1]

    async def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slack's second is none where its limit is not what is tested."""
    monkeypatch.setattr(SlackBotNotifier, "MIN_INTERVAL_S", 0.0)


@asynccontextmanager
async def bot(
    session: aiohttp.ClientSession, folder: Path, monkeypatch: pytest.MonkeyPatch, channel: str = CHANNEL, **fake: Any
) -> AsyncIterator[tuple[FakeSlackBot, SlackBotNotifier]]:
    (folder / "token").write_text(f"{TOKEN}\n")
    async with FakeSlackBot(**fake) as slack:
        monkeypatch.setattr(api, "URL", slack.url)
        config = SlackBotConfig(name="bot", type="slack_bot", token_file=str(folder / "token"), channel=channel)
        yield slack, SlackBotNotifier(config, session)


async def tell(notifier: SlackBotNotifier, key: str, message: Message, place: Memory) -> None:
    await notifier.send_at(notifier.render(message, key), key, place)


# ---------------------------------------------------------------------------------------------------- rendering
@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY])
def test_message_and_entry_are_within_the_limits_and_free_of_foreign_markup(message: Message) -> None:
    payload = SlackBotNotifier.render(message, "k" * 300)
    assert problems(payload["message"]) == []
    assert (payload["entry"] is None) == (message.reason == "finished")
    assert problems(payload["entry"] or payload["message"]) == []
    assert len(payload["message"]["metadata"]["event_payload"]["incident"]) <= 300


def test_a_hostile_text_mentions_nobody() -> None:
    payload = SlackBotNotifier.render(HOSTILE, "k")
    for text in (*texts(payload["message"]), *texts(payload["entry"])):
        assert not any(sign in text for sign in ("\x1b", "@here", "<!channel", "<@", "<https"))


def test_an_entry_says_why_it_was_sent_first() -> None:
    assert SlackBotNotifier.render(ESCALATED, "k")["entry"]["text"].startswith("🔴 *escalated* · qwen2-7b-grpo")


def test_only_what_calls_for_eyes_again_is_shown_in_the_channel_as_well() -> None:
    broadcast = [SlackBotNotifier.render(message, "k")["entry"]["reply_broadcast"] for _, message in LIFE]
    assert broadcast == [False, True, False]


# ---------------------------------------------------------------------------------------------------- an incident
async def test_an_incident_is_one_message_edited_in_place_with_its_life_in_the_thread(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Memory()
    async with bot(session, tmp_path, monkeypatch, f"#{NAME}") as (slack, notifier):
        for key, message in LIFE:
            await tell(notifier, key, message, place)
        (shown,) = slack.messages.values()
        assert [key_of(each) for each in shown.versions] == ["k1", "k2", "k3"]
        assert [key_of(each) for each in shown.replies] == ["k1", "k2", "k3"]
        assert shown.versions[-1]["text"] == f"✅ {RESOLVED.title}"
        assert [each["text"].split("*")[1] for each in shown.replies] == ["opened", "escalated", "resolved"]


async def test_that_a_run_has_finished_is_a_message_by_itself(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Memory()
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        await tell(notifier, "k1", FINISHED, place)
        await tell(notifier, "k1", FINISHED, place)
    assert slack.calls == ["chat.postMessage"]


async def test_the_series_is_drawn_in_the_thread(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL", reason="needs Pillow: pip install 'verlwatch[images]'")
    place = Memory()
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        await tell(notifier, "k1", OPENED, place)
        await tell(notifier, "k2", replace(OPENED, reason="updated"), place)
        (shown,) = slack.messages.values()
    assert [data[:8] for data in shown.files] == [b"\x89PNG\r\n\x1a\n"]


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"])
async def test_an_image_that_cannot_be_shown_keeps_no_message_back(
    method: str, session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL", reason="needs Pillow: pip install 'verlwatch[images]'")
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        slack.faults[method].append(Answer(500) if method == "upload" else no("missing_scope"))
        await tell(notifier, "k1", OPENED, Memory())
        (shown,) = slack.messages.values()
        assert (len(shown.replies), shown.files) == (1, [])


async def test_an_image_goes_nowhere_but_to_slack(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        elsewhere = '{"ok":true,"file_id":"F1","upload_url":"http://evil.example/upload"}'
        slack.faults["files.getUploadURLExternal"].append(Answer(200, elsewhere))
        with pytest.raises(PermanentError, match="without an address of its own"):
            await notifier._api.upload(b"x", "x.png", "x")


async def test_a_test_of_the_receiver_posts_a_message_of_its_own(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        await notifier.send(notifier.render(OPENED, "sample-1"), "sample-1")
        (shown,) = slack.messages.values()
        assert len(shown.replies) == 1


@pytest.mark.parametrize(
    "word", ["message_not_found", "cant_update_message", "edit_window_closed", "channel_not_found"]
)
async def test_where_nothing_can_be_edited_any_more_the_incident_goes_on_in_a_new_message(
    word: str, session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Memory()
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        await tell(notifier, "k1", OPENED, place)
        slack.faults["chat.update"].append(no(word))
        await tell(notifier, "k2", ESCALATED, place)
        await tell(notifier, "k3", RESOLVED, place)
        first, second = slack.messages.values()
        assert [key_of(each) for each in (*first.versions, *first.replies)] == ["k1", "k1"]
        assert [key_of(each) for each in second.versions] == ["k2", "k3"]
        assert [key_of(each) for each in second.replies] == ["k2", "k3"]


@pytest.mark.parametrize("word", ["cannot_reply_to_message", "thread_not_found", "restricted_action_thread_locked"])
async def test_a_thread_that_takes_nothing_more_is_told_in_a_new_message_and_only_once(
    word: str, session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Memory()
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        slack.faults["chat.postMessage"].append(Answer(503))
        with pytest.raises(TransientError):
            await tell(notifier, "k1", OPENED, place)
        await tell(notifier, "k1", OPENED, place)
        slack.faults["chat.postMessage"].append(no(word))
        await tell(notifier, "k2", ESCALATED, place)
        assert [key_of(shown.versions[-1]) for shown in slack.messages.values()] == ["k2", "k2"]
        slack.faults["chat.postMessage"] += [no(word)]
        await tell(notifier, "k3", RESOLVED, place)
        assert len(slack.messages) == 3


async def test_another_channel_in_the_configuration_gets_a_message_of_its_own(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Memory()
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        await tell(notifier, "k1", OPENED, place)
        notifier._channel = f"#{NAME}"
        await tell(notifier, "k2", ESCALATED, place)
        assert len(slack.messages) == 2


# ---------------------------------------------------------------------------------------------------- interruptions
@pytest.mark.parametrize("kept", range(1, 4))
async def test_what_is_noted_is_not_done_again_whenever_the_rest_was_cut_off(
    kept: int, session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, place = Memory(), Memory()
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        await tell(notifier, "k1", OPENED, whole)
        place.notes = whole.notes[: kept + 1]  # as if killed behind that note
        before = len(slack.calls)
        await tell(notifier, "k1", OPENED, place)
        done_again = slack.calls[before:]
        (shown,) = slack.messages.values()
        assert len(shown.versions) == 1
        assert ("chat.postMessage" in done_again) == (kept < 2)
        assert ("upload" in done_again) == (kept < 3)


async def test_a_kill_between_slack_s_yes_and_the_note_posts_again_with_the_same_id(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Memory()
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        slack.broken["chat.postMessage"].append(Answer(drop=True))
        with pytest.raises(TransientError, match="closed without an answer"):
            await tell(notifier, "k1", OPENED, place)
        await tell(notifier, "k1", OPENED, place)
        assert [key_of(shown.versions[0]) for shown in slack.messages.values()] == ["k1", "k1"]
        assert [len(shown.replies) for shown in slack.messages.values()] == [0, 1]


async def test_the_outbox_edits_across_a_restart_and_never_posts_faster_than_slack_allows(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlackBotNotifier, "MIN_INTERVAL_S", 0.02)

    async def run(store: Store, notifier: SlackBotNotifier, *rows: Notification) -> None:
        clock = VirtualClock()
        await store.commit(outcome(*rows), clock.now())
        async with asyncio.TaskGroup() as group:
            deliver = Deliver(store, {"slack": notifier}, clock)
            group.create_task(deliver.loops()[0])
            await clock.advance(60.0)
            await deliver.drain(0.0)

    async with bot(session, tmp_path, monkeypatch, pace_s=0.019) as (slack, notifier):
        store = await Store.open(tmp_path / "state")
        others = [notification(f"x{n}", f"x{n}", message=replace(OPENED, incident=f"x{n}")) for n in range(3)]
        await run(store, notifier, notification("k1", "i", message=OPENED), *others)
        await store.close()
        store = await Store.open(tmp_path / "state")
        await run(store, notifier, *(notification(key, "i", message=message) for key, message in LIFE[1:]))
        await store.close()
        assert [[key_of(each) for each in shown.versions] for shown in slack.messages.values()] == [
            ["k1", "k2", "k3"],
            ["x0"],
            ["x1"],
            ["x2"],
        ]
        assert slack.calls.count("chat.postMessage") == 4 + 6


# ---------------------------------------------------------------------------------------------------- answers
@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (no("invalid_auth"), PermanentError, "invalid_auth: the bot token is wrong or was revoked; copy the app's"),
        (no("token_revoked"), PermanentError, "token_revoked: the bot token"),
        (no("not_in_channel"), PermanentError, "not_in_channel: the app is not in the channel; invite it"),
        (no("channel_not_found"), PermanentError, "channel_not_found: there is no such channel, or it is private"),
        (no("is_archived"), PermanentError, "is_archived: the channel is archived"),
        (no("missing_scope"), PermanentError, "missing_scope: the app lacks a scope: chat:write"),
        (no("msg_too_long"), PermanentError, "msg_too_long: Slack did not understand"),
        (no("brand_new_error"), PermanentError, "brand_new_error: change what it names"),
        (no(f"<{TOKEN}> is bad"), PermanentError, "with an unknown error"),
        (Answer(403, "<html>"), PermanentError, "403; is a proxy"),
        (Answer(302, "", {"Location": "/x"}), PermanentError, "with 302; is a proxy"),
        (no("ratelimited"), TransientError, "ratelimited"),
        (no("rate_limited"), TransientError, "rate_limited"),
        (no("internal_error"), TransientError, "internal_error"),
        (no("service_unavailable"), TransientError, "service_unavailable"),
        (Answer(200, "<html>log in</html>"), TransientError, "no JSON of Slack's"),
        (Answer(200, '{"ok":"yes"}'), TransientError, "no JSON of Slack's"),
        (Answer(200, '{"ok":true}'), TransientError, "does not say which message it posted"),
        (Answer(200, '{"ok":true,"channel":"C1","ts":null}'), TransientError, "does not say which message"),
        (Answer(429, '{"ok":false,"error":"ratelimited"}'), TransientError, "with 429"),
        (Answer(500), TransientError, "with 500"),
        (Answer(drop=True), TransientError, "closed without an answer"),
    ],
)
async def test_each_answer_is_read_as_it_is_meant(
    answer: Answer,
    error: type[Exception],
    text: str,
    session: aiohttp.ClientSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Memory()
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        slack.faults["chat.postMessage"].append(answer)
        with pytest.raises(error, match=text):
            await tell(notifier, "k1", OPENED, place)
        assert (place.notes, len(slack.calls)) == ([""], 1)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [({"Retry-After": "30"}, 30.0), ({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0), ({}, None)],
)
async def test_retry_after_is_passed_on_in_both_its_forms(
    header: dict[str, str],
    seconds: float | None,
    session: aiohttp.ClientSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        slack.faults["chat.postMessage"].append(Answer(429, '{"ok":false,"error":"ratelimited"}', header))
        with pytest.raises(TransientError) as caught:
            await tell(notifier, "k1", OPENED, Memory())
    assert caught.value.retry_after == seconds


async def test_an_archived_channel_is_no_reason_for_a_new_message(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Memory()
    async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
        await tell(notifier, "k1", OPENED, place)
        slack.faults["chat.update"].append(no("is_archived"))
        with pytest.raises(PermanentError, match="is_archived: the channel is archived"):
            await tell(notifier, "k2", ESCALATED, place)
        assert len(slack.messages) == 1


# ---------------------------------------------------------------------------------------------------- settings
@pytest.mark.parametrize("channel", ["", "#", "two words", "<!channel>", "C1,C2", "x" * 81, "a\x00"])
def test_what_can_be_no_channel_is_refused(channel: str) -> None:
    with pytest.raises(ValidationError, match="write for example C024BE91L"):
        SlackBotConfig(name="bot", type="slack_bot", token_file="/x", channel=channel)


@pytest.mark.parametrize("token", ["https://hooks.slack.com/services/x", "xoxb-1 2", "xoxb-\u00e9", "xoxb-1\nxoxb-2"])
async def test_a_file_that_holds_no_bot_token_is_named_and_not_shown(
    token: str, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(token)
    config = SlackBotConfig(name="bot", type="slack_bot", token_file=str(tmp_path / "token"), channel="C1")
    with pytest.raises(SecretError, match=r"token: holds no Slack token; put the app's") as caught:
        SlackBotNotifier(config, session)
    assert token not in str(caught.value)


async def test_the_token_is_nowhere_to_be_read(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place, told = Memory(), []
    with caplog.at_level(logging.DEBUG):
        async with bot(session, tmp_path, monkeypatch) as (slack, notifier):
            for fault in (no("invalid_auth"), Answer(500, TOKEN), Answer(drop=True), None):
                slack.faults["chat.postMessage"] += [fault] if fault else []
                try:
                    await tell(notifier, "k1", OPENED, place)
                except DeliveryError as error:
                    told.append(repr(error))
    assert len(told) == 3
    assert "Canary" not in "".join((*told, *place.notes, caplog.text, repr(vars(notifier)), repr(vars(notifier._api))))


# ---------------------------------------------------------------------------------------------------- the fake
async def test_the_fake_refuses_what_slack_refuses(
    session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = {**SlackBotNotifier.render(OPENED, "k")["message"], "channel": CHANNEL}
    bad = {
        "channel_not_found": {**good, "channel": "C0"},
        "invalid_blocks": {**good, "text": "<!channel>"},
        "thread_not_found": {**good, "thread_ts": "1.0"},
        "invalid_arguments": {**good, "extra": 1},
        "invalid_metadata_format": {**good, "metadata": {"event_type": "x"}},
    }
    async with bot(session, tmp_path, monkeypatch, pace_s=3600.0) as (slack, notifier):
        for word, arguments in bad.items():
            with pytest.raises(PermanentError, match=word):
                await notifier._api.call("chat.postMessage", arguments)
            slack._posted_at = float("-inf")
        await notifier._api.call("chat.postMessage", good)
        with pytest.raises(TransientError, match="429") as caught:
            await notifier._api.call("chat.postMessage", good)
        assert caught.value.retry_after == 1.0
