"""Alertmanager: an open incident is an alert until it ends, shown by a real one as well as by a strict fake."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
import pytest

from tests.fakes._server import Answer
from tests.fakes.alertmanager import TOKEN, FakeAlertmanager, violations
from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from tests.shell.notifier_messages import (
    DIED,
    EMPTY,
    ESCALATED,
    FINISHED,
    HOSTILE,
    HUGE,
    MESSAGES,
    OPENED,
    RESOLVED,
    STARTED_AGAIN,
)
from tests.tools import need
from verlwatch.fields import SecretError
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.notifiers import DeliveryError, PermanentError, TransientError, open_session
from verlwatch.shell.notifiers.alertmanager import AlertmanagerConfig, AlertmanagerNotifier
from verlwatch.shell.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from verlwatch.core.types import Message, Notification


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


def notifier(url: str, session: aiohttp.ClientSession, token_file: Path | None = None) -> AlertmanagerNotifier:
    token = str(token_file) if token_file else None
    return AlertmanagerNotifier(AlertmanagerConfig(name="am", type="alertmanager", url=url, token_file=token), session)


# ---------------------------------------------------------------------------------------------------- rendering
SENT = [message for message in (*MESSAGES.values(), HUGE, EMPTY) if message.reason != "finished"]


@pytest.mark.parametrize("message", [*SENT, replace(RESOLVED, opened_at=5e9)])
def test_every_alert_is_valid(message: Message) -> None:
    assert violations(AlertmanagerNotifier.render(message, "k")) == []


def test_an_open_incident_has_no_end_and_a_closed_one_has() -> None:
    assert "endsAt" not in AlertmanagerNotifier.render(OPENED, "k")
    assert AlertmanagerNotifier.render(RESOLVED, "k")["endsAt"] == "2026-01-01T00:00:00.000Z"


def test_labels_are_what_routes_and_silences_match() -> None:
    assert AlertmanagerNotifier.render(replace(OPENED, run="qwen~2  *a* <b>"), "k")["labels"] == {
        "alertname": "phase_spike",
        "run": "qwen~2  *a* <b>",
        "phase": "gen",
        "severity": "warning",
        "incident": "7e57c0de",
    }


def test_places_are_labels_as_far_as_they_are_known() -> None:
    ranks = tuple(("rank", str(rank)) for rank in (0, 1, 2, 3, 7))
    labels = AlertmanagerNotifier.render(replace(DIED, scope=(("host", "node-1"), *ranks, ("gpu", "3"))), "k")["labels"]
    assert labels == {
        "alertname": "device_oom",
        "run": "qwen2-7b-grpo",
        "phase": "run",
        "severity": "critical",
        "incident": "0ddba115",
        "host": "node-1",
        "rank": "0-3, 7",
        "gpu": "3",
    }


def test_nothing_that_is_passed_on_mentions_anybody() -> None:
    alert = AlertmanagerNotifier.render(HOSTILE, "k")
    for text in (*alert["labels"].values(), *alert["annotations"].values()):
        assert not any(sign in text for sign in ("\x1b", "\u202e", "\udcff"))
    assert "<" not in "".join(alert["annotations"].values())
    assert "@here" not in "".join(alert["annotations"].values())
    assert "generatorURL" not in alert


# ---------------------------------------------------------------------------------------------------- sending
async def deliver(
    store: Store, receiver: AlertmanagerNotifier, is_open: set[str], seconds: float, *rows: Notification
) -> None:
    """Delivers ``rows`` and what is repeated in so many seconds."""
    clock = VirtualClock()
    await store.commit(outcome(*rows), clock.now())
    async with asyncio.TaskGroup() as group:
        loops = Deliver(store, {"slack": receiver}, clock, open_incidents=lambda: is_open)
        group.create_task(loops.loops()[0])
        await clock.advance(seconds)
        await loops.drain(0.0)


async def test_an_open_incident_is_repeated_every_minute_also_by_a_process_that_took_over_until_it_is_closed(
    session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    store = await Store.open(tmp_path / "state")
    async with FakeAlertmanager() as fake:
        await deliver(store, notifier(fake.url, session), {"i1"}, 119.0, notification("k1", message=OPENED))
        alert = AlertmanagerNotifier.render(OPENED, "k1")
        assert fake.received == [[alert]] * 3  # itself, the start, a minute later
        await deliver(store, notifier(fake.url, session), {"i1"}, 61.0)
        assert fake.received[3:] == [[alert]] * 2
        await deliver(store, notifier(fake.url, session), set(), 300.0, notification("k2", message=RESOLVED))
        assert fake.received[5:] == [[AlertmanagerNotifier.render(RESOLVED, "k2")]]
    await store.close()


async def test_an_alert_whose_labels_change_ends_when_the_next_one_begins(
    session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    store = await Store.open(tmp_path / "state")
    rows = [notification("k1", message=OPENED), notification("k2", message=ESCALATED)]
    async with FakeAlertmanager() as fake:
        await deliver(store, notifier(fake.url, session), set(), 1.0, *rows)
    ((first,), (ended, second)) = fake.received
    assert (ended["labels"], "endsAt" in ended) == (first["labels"], True)
    assert (second["labels"]["severity"], "endsAt" in second) == ("critical", False)
    await store.close()


async def test_a_death_is_an_alert_until_the_run_goes_on_and_that_one_has_finished_is_none(
    session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    store = await Store.open(tmp_path / "state")
    rows = [notification(f"k{n}", message=message) for n, message in enumerate((DIED, STARTED_AGAIN, FINISHED))]
    async with FakeAlertmanager() as fake:
        await deliver(store, notifier(fake.url, session), set(), 1.0, *rows)
    assert ["endsAt" in alert for alerts in fake.received for alert in alerts] == [False, True]
    assert (await store.outbox.stats())["slack"].pending == 0
    await store.close()


async def test_many_alerts_are_repeated_in_few_requests(session: aiohttp.ClientSession) -> None:
    places = [orjson.dumps(AlertmanagerNotifier.render(OPENED, f"k{n}")).decode() for n in range(100)]
    async with FakeAlertmanager() as fake:
        await notifier(fake.url, session).resend([*places, "", "[]", "{", '{"labels":1}'])
    assert [len(alerts) for alerts in fake.received] == [64, 36]


@pytest.mark.parametrize("tail", ["", "/", "/api/v2/alerts", "/api/v2/alerts/"])
async def test_the_path_is_added_where_it_is_missing(tail: str, session: aiohttp.ClientSession) -> None:
    async with FakeAlertmanager() as fake:
        await notifier(fake.url + tail, session).send(AlertmanagerNotifier.render(OPENED, "k"), "k")
        assert len(fake.received) == 1


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (Answer(400, '"bad"'), PermanentError, "400: it did not understand"),
        (Answer(401), PermanentError, "401; set token_file"),
        (Answer(403), PermanentError, "403; set token_file"),
        (Answer(404), PermanentError, "404; is url its address"),
        (Answer(302, "", {"Location": "/x"}), PermanentError, "302; redirects are not followed"),
        (Answer(204), TransientError, "204 but Alertmanager's yes is 200"),
        (Answer(429), TransientError, "429"),
        (Answer(503), TransientError, "503"),
        (Answer(drop=True), TransientError, "closed without an answer"),
    ],
)
async def test_each_answer_is_read_as_it_is_meant(
    answer: Answer, error: type[Exception], text: str, session: aiohttp.ClientSession
) -> None:
    async with FakeAlertmanager(answer) as fake:
        with pytest.raises(error, match=text):
            await notifier(fake.url, session).send(AlertmanagerNotifier.render(OPENED, "k"), "k")


async def test_a_token_is_sent_and_nowhere_to_be_read(
    session: aiohttp.ClientSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with caplog.at_level(logging.DEBUG):
        async with FakeAlertmanager(Answer(500, TOKEN), Answer(400, TOKEN), token=TOKEN) as fake:
            receiver = notifier(fake.url, session, tmp_path / "token")
            told = [repr(vars(receiver))]
            for _ in range(2):
                with pytest.raises(DeliveryError) as caught:
                    await receiver.send(AlertmanagerNotifier.render(OPENED, "k"), "k")
                told.append(repr(caught.value))
            await receiver.send(AlertmanagerNotifier.render(OPENED, "k"), "k")
            assert len(fake.received) == 1
    assert "canary" not in "".join((*told, caplog.text))


@pytest.mark.parametrize("token", ["two\nlines", "n\u00e9e", "a\x07"])
async def test_a_file_that_holds_no_token_is_named_and_not_shown(
    token: str, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(SecretError, match="token: holds what can be no bearer token") as caught:
        notifier("http://127.0.0.1:1", session, tmp_path / "token")
    assert token not in str(caught.value)


# ---------------------------------------------------------------------------------------------------- the real one
CONFIG = """
global: {resolve_timeout: 2s}
route: {receiver: nobody, group_wait: 1h}
receivers: [{name: nobody}]
"""


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[str]:
    """A real Alertmanager on a free port of loopback; its URL."""
    template = "/usr/share/prometheus/alertmanager/default.tmpl"
    program = need("prometheus-alertmanager", package="prometheus-alertmanager", reads=template)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    (tmp_path / "am.yml").write_text(CONFIG)
    arguments = (f"--config.file={tmp_path}/am.yml", f"--storage.path={tmp_path}/am", "--cluster.listen-address=")
    with (tmp_path / "am.log").open("wb") as log:
        running = subprocess.Popen([program, *arguments, f"--web.listen-address={address}"], stdout=log, stderr=log)
    try:
        yield f"http://{address}"
    finally:
        running.terminate()
        running.wait(10)


@asynccontextmanager
async def asking(url: str) -> AsyncIterator[Any]:
    """The alerts that Alertmanager shows, once it is up."""
    async with aiohttp.ClientSession() as client:

        async def shown() -> dict[str, str]:
            async with client.get(f"{url}/api/v2/alerts") as answer:
                return {each["labels"]["severity"]: each["status"]["state"] for each in await answer.json()}

        async with asyncio.timeout(20):
            while True:
                try:
                    await shown()
                    break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)
        yield shown


async def until(shown: Any, wanted: dict[str, str]) -> None:
    async with asyncio.timeout(20):
        while await shown() != wanted:
            await asyncio.sleep(0.05)


async def test_a_real_alertmanager_shows_the_alert_its_silence_its_escalation_and_its_end(
    alertmanager: str, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    amtool = need("amtool", package="prometheus-alertmanager")
    now = time.time()
    opened, worse, over = (
        replace(message, incident="7e57c0de", opened_at=now - 60, at=now) for message in (OPENED, ESCALATED, RESOLVED)
    )
    store = await Store.open(tmp_path / "state")
    receiver = notifier(alertmanager, session)
    async with asking(alertmanager) as shown:
        await deliver(store, receiver, {"i1"}, 1.0, notification("k1", message=opened))
        await until(shown, {"warning": "active"})
        silence = ("silence", "add", "incident=7e57c0de", "--author=a", "--comment=c", "--duration=1h")
        subprocess.run([amtool, f"--alertmanager.url={alertmanager}", *silence], check=True, capture_output=True)
        await until(shown, {"warning": "suppressed"})
        await deliver(store, receiver, {"i1"}, 1.0, notification("k2", message=worse))
        await until(shown, {"critical": "suppressed"})
        await asyncio.sleep(1.5)  # of the 2 s after which it would be taken for resolved
        await deliver(store, receiver, {"i1"}, 1.0)
        await asyncio.sleep(1.0)
        assert await shown() == {"critical": "suppressed"}
        closing = replace(over, severity="critical", rule=worse.rule, at=time.time())
        await deliver(store, receiver, set(), 1.0, notification("k3", message=closing))
        assert await shown() == {}
        assert await store.places.of("slack") == {}
    await store.close()


async def test_a_real_alertmanager_forgets_what_is_not_repeated(
    alertmanager: str, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    async with asking(alertmanager) as shown:
        alert = AlertmanagerNotifier.render(replace(OPENED, opened_at=time.time()), "k")
        await notifier(alertmanager, session).send(alert, "k")
        await until(shown, {"warning": "active"})
        await until(shown, {})
