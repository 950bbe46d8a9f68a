"""PagerDuty gets what it documents; an incident is one alert from its opening to its end."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes._server import Answer
from tests.fakes.pagerduty import BODY, ROUTING_KEY, FakePagerDuty, problems
from tests.shell.notifier_messages import (
    DIED,
    EMPTY,
    ESCALATED,
    FINISHED,
    HUGE,
    MESSAGES,
    OPENED,
    RESOLVED,
    RUN_ENDED,
    STARTED_AGAIN,
    everywhere,
)
from tests.shell.refusals import refused
from verlwatch.shell.notifiers import PermanentError, TransientError, in_language, open_session
from verlwatch.shell.notifiers.pagerduty import PagerDutyConfig, PagerDutyNotifier, alert_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


def notifier(url: str, session: aiohttp.ClientSession, folder: Path, **settings: Any) -> PagerDutyNotifier:
    (folder / "key").write_text(f"{settings.pop('key', ROUTING_KEY)}\n")
    files = {"routing_key_file": str(folder / "key")}
    config = PagerDutyConfig.model_validate({"name": "pd", "type": "pagerduty", "url": url, **files, **settings})
    return PagerDutyNotifier(config, session)


def whole(payload: dict[str, Any]) -> dict[str, Any]:
    return {"routing_key": ROUTING_KEY, **payload}


# ---------------------------------------------------------------------------------------------------- rendering
SENT = [message for message in (*MESSAGES.values(), HUGE, EMPTY) if message.reason != "finished"]


@pytest.mark.parametrize("message", [*SENT, in_language(OPENED, "zh")])
def test_every_event_is_within_the_limits(message: Any) -> None:
    payload = whole(PagerDutyNotifier.render(message, "k" * 300))
    assert problems(payload) == []
    assert len(orjson.dumps(payload)) <= BODY


@given(text=st.text(max_size=400))
def test_no_text_whatever_breaks_an_event(text: str) -> None:
    message = replace(everywhere(text), incident=text or "i", title=text or "t", facts=((text, text),))
    assert problems(whole(PagerDutyNotifier.render(message, "k"))) == []


def test_an_id_that_is_too_long_is_hashed_and_stays_its_own() -> None:
    keys = {alert_key(f"{'x' * 254}{end}") for end in ("", "a", "aa", "ab")}
    assert len(keys) == 4
    assert max(map(len, keys)) == 255


def test_a_link_is_one_only_if_it_is_a_url() -> None:
    assert PagerDutyNotifier.render(OPENED, "k")["links"] == [{"href": OPENED.link, "text": "status page"}]
    shown = PagerDutyNotifier.render(ESCALATED, "k")
    assert "links" not in shown
    assert shown["payload"]["custom_details"]["status_page"] == " ".join(ESCALATED.link.split())


# ---------------------------------------------------------------------------------------------------- sending
async def test_an_incident_is_one_alert_that_ends(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakePagerDuty() as pagerduty:
        service = notifier(pagerduty.url, session, tmp_path)
        for message in (OPENED, replace(OPENED, reason="updated"), ESCALATED):
            await service.send(PagerDutyNotifier.render(message, "k"), "k")
        assert pagerduty.alerts == {"7e57c0de": "triggered"}
        await service.send(PagerDutyNotifier.render(RESOLVED, "k"), "k")
    assert pagerduty.alerts == {"7e57c0de": "resolved"}
    assert pagerduty.opened == 1
    assert [event["payload"]["severity"] for event in pagerduty.events] == ["warning", "warning", "critical", "warning"]


@pytest.mark.parametrize("closed_as", ["resolved", "accepted", "run ended", "expired"])
def test_however_an_incident_ends_its_alert_ends(closed_as: Any) -> None:
    message = replace(RUN_ENDED, reason=closed_as, closed_as=closed_as)
    assert PagerDutyNotifier.render(message, "k")["event_action"] == "resolve"


async def test_a_death_calls_somebody_until_the_run_goes_on(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakePagerDuty() as pagerduty:
        service = notifier(pagerduty.url, session, tmp_path)
        await service.send(PagerDutyNotifier.render(DIED, "k"), "k")
        assert pagerduty.alerts == {"0ddba115": "triggered"}
        await service.send(PagerDutyNotifier.render(STARTED_AGAIN, "k"), "k")
    assert pagerduty.alerts == {"0ddba115": "resolved"}
    details = pagerduty.events[0]["payload"]["custom_details"]
    assert pagerduty.events[0]["payload"]["class"] == "device_oom"
    assert "recent" not in details


async def test_that_a_run_has_finished_calls_nobody(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakePagerDuty() as pagerduty:
        await notifier(pagerduty.url, session, tmp_path).send(PagerDutyNotifier.render(FINISHED, "k"), "k")
        assert pagerduty.requests == 0


@pytest.mark.parametrize("message", SENT)
async def test_pagerduty_takes_every_event(message: Any, session: aiohttp.ClientSession, tmp_path: Path) -> None:
    payload = PagerDutyNotifier.render(message, "k")
    async with FakePagerDuty() as pagerduty:
        await notifier(pagerduty.url, session, tmp_path).send(payload, "k")
    assert pagerduty.events == [whole(payload)]


@pytest.mark.parametrize(
    ("answer", "error", "text", "wait"),
    [
        (Answer(400, '{"status": "invalid event"}'), PermanentError, "400; check that routing_key_file", None),
        (Answer(403), PermanentError, "403; check", None),
        (Answer(404), PermanentError, "404; check", None),
        (Answer(307, "", {"Location": "/x"}), PermanentError, "307; redirects are not followed", None),
        (Answer(429), TransientError, "429, too many events", 120.0),
        (Answer(429, "", {"Retry-After": "300"}), TransientError, "429, too many events", 300.0),
        (Answer(500), TransientError, "500", None),
        (Answer(503, "", {"Retry-After": "7"}), TransientError, "503", 7.0),
        (Answer(200, "<html>"), TransientError, "200 but PagerDuty's yes is 202", None),
        (Answer(202, "<html>"), TransientError, "202 with the status success; is a proxy", None),
        (Answer(202, '{"status": "queued"}'), TransientError, "202 with the status success", None),
        (Answer(202, "[]"), TransientError, "202 with the status success", None),
        (Answer(drop=True), TransientError, "closed without an answer", None),
    ],
)
async def test_each_answer_is_read_as_it_is_meant(
    answer: Answer,
    error: type[Exception],
    text: str,
    wait: float | None,
    session: aiohttp.ClientSession,
    tmp_path: Path,
) -> None:
    async with FakePagerDuty(answer) as pagerduty:
        sending = notifier(pagerduty.url, session, tmp_path).send(PagerDutyNotifier.render(OPENED, "k"), "k")
        await refused(sending, error, text, wait, ROUTING_KEY)
        assert pagerduty.requests == 1


async def test_a_wrong_routing_key_is_told(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakePagerDuty() as pagerduty:
        service = notifier(pagerduty.url, session, tmp_path, key="short")
        with pytest.raises(PermanentError, match="32 characters of an Events API v2 integration key"):
            await service.send(PagerDutyNotifier.render(OPENED, "k"), "k")


async def test_a_proxy_is_used(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakePagerDuty() as proxy:
        there = "http://events.pagerduty.invalid/v2/enqueue"
        service = notifier(there, session, tmp_path, proxy=proxy.url.removesuffix(FakePagerDuty.path))
        await service.send(PagerDutyNotifier.render(OPENED, "k"), "k")
        assert proxy.requests == 1


# ---------------------------------------------------------------------------------------------------- the fake
def test_the_fake_refuses_what_pagerduty_refuses() -> None:
    good = whole(PagerDutyNotifier.render(OPENED, "k"))
    payload = good["payload"]
    bad = [
        {**good, "routing_key": "short"},
        {**good, "event_action": "shout"},
        {**good, "dedup_key": "x" * 256},
        {**good, "more": 1},
        {**good, "links": [{"href": "ssh node"}]},
        {**good, "payload": {**payload, "summary": "x" * 1025}},
        {**good, "payload": {**payload, "summary": ""}},
        {**good, "payload": {**payload, "source": ""}},
        {**good, "payload": {**payload, "severity": "bad"}},
        {**good, "payload": {**payload, "timestamp": "2026-01-01T00:00:00"}},
    ]
    assert problems(json.loads(json.dumps(good))) == []
    assert [bool(problems(event)) for event in bad] == [True] * len(bad)
