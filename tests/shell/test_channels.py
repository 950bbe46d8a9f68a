"""What holds for every channel that has limits of its own: a flood stays within them, and no secret is anywhere."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.fakes import dingtalk, feishu, pagerduty, wecom
from tests.fakes._server import Answer
from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from tests.shell import test_outgoing_http as outgoing
from tests.shell.notifier_messages import OPENED
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.notifiers import NOTIFIERS, Notifier, build, open_session
from verlwatch.shell.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp

everything = outgoing.everything


class Channel(NamedTuple):
    """A kind of receiver, its fake, and what its files hold; ``{url}`` stands for the fake's."""

    type: str
    fake: Any
    files: dict[str, str]
    secrets: tuple[str, ...]


CHANNELS = (
    Channel(
        "feishu",
        feishu.FakeFeishu,
        {"webhook_url_file": "{url}", "secret_file": feishu.SECRET},
        (feishu.TOKEN, feishu.SECRET),
    ),
    Channel(
        "dingtalk",
        dingtalk.FakeDingTalk,
        {"webhook_url_file": "{url}", "secret_file": dingtalk.SECRET},
        (dingtalk.TOKEN, dingtalk.SECRET),
    ),
    Channel("wecom", wecom.FakeWeCom, {"webhook_url_file": "{url}"}, (wecom.KEY,)),
    Channel(
        "pagerduty", pagerduty.FakePagerDuty, {"routing_key_file": pagerduty.ROUTING_KEY}, (pagerduty.ROUTING_KEY,)
    ),
)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


@pytest.fixture(params=CHANNELS, ids=lambda channel: channel.type)
def channel(request: pytest.FixtureRequest) -> Channel:
    found: Channel = request.param
    return found


def notifier(channel: Channel, url: str, session: aiohttp.ClientSession, folder: Path, **settings: str) -> Notifier:
    for name, content in channel.files.items():
        (folder / name).write_text(content.format(url=url))
    kind = next(kind for kind in NOTIFIERS if channel.type == kind.TYPE)
    files = {name: str(folder / name) for name in channel.files}
    more = {"url": url} if "url" in kind.Config.model_fields else {}
    config = kind.Config.model_validate({"name": "x", "type": channel.type, **files, **more, **settings})
    return build(config, session)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_200_incidents_at_once_stay_within_the_limits_and_all_are_told(
    channel: Channel, language: str, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    clock = VirtualClock()
    store = await Store.open(tmp_path / "state")
    rows = [
        notification(f"i{n}-1", f"i{n}", receiver="x", message=replace(OPENED, incident=f"i{n}", at=clock.now()))
        for n in range(200)
    ]
    await store.commit(outcome(*rows), clock.now())
    async with channel.fake(now=clock.now) as server, asyncio.TaskGroup() as group:
        there = notifier(channel, server.url, session, tmp_path, language=language)
        deliver = Deliver(store, {"x": there}, clock)
        group.create_task(deliver.loops()[0])
        await clock.advance(600.0)
        await deliver.drain(0.0)
        assert server.limited == 0
    (health,) = deliver.health()
    assert (health.pending, health.dead, health.last_error) == (0, 0, None)
    if channel.type == "pagerduty":
        assert server.alerts == {f"i{n}": "triggered" for n in range(200)}
    else:
        assert 0 < len(server.received) <= 10
        assert "200" in str(server.received)
    await store.close()


async def test_no_secret_is_in_any_error_log_repr_or_row(
    channel: Channel, tmp_path: Path, capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    seen: list[Any] = []
    logs = request.getfixturevalue("everything")
    asyncio.get_running_loop().set_debug(True)
    clock = VirtualClock()
    store = await Store.open(tmp_path / "state")
    said = " ".join(channel.secrets)
    scripts = [
        [],
        [Answer(429, headers={"Retry-After": "5"})],
        [Answer(302, headers={"Location": f"/{said}"})],
        [Answer(404, said)],
        [Answer(400, f'{{"code": 4711, "errcode": 4711, "msg": "{said}", "errmsg": "{said}"}}')],
        [Answer(200, f'{{"code": 19021, "errcode": 310000, "msg": "{said}", "errmsg": "sign not match {said}"}}')],
        [Answer(500, said)],
        [Answer(drop=True)],
    ]
    (tmp_path / "files").mkdir()
    async with open_session() as session:
        for n, script in enumerate(scripts):
            async with channel.fake(*script, now=clock.now) as server:
                seen += await once(f"k{n}", notifier(channel, server.url, session, tmp_path / "files"), store, clock)
        url = f"http://receiver.invalid{channel.fake.path}"
        seen += await once("nowhere", notifier(channel, url, session, tmp_path / "files"), store, clock)
    await store.close()
    database = b"".join(file.read_bytes() for file in (tmp_path / "state").iterdir())
    shown = "\n".join([*map(str, seen), *logs.lines, *capfd.readouterr(), database.decode("latin-1")])
    assert "k0" in shown
    assert [secret for secret in channel.secrets if secret in shown] == []


async def once(key: str, there: Notifier, store: Store, clock: VirtualClock) -> list[Any]:
    """One message is tried for a minute; what can be seen of it."""
    await store.commit(outcome(notification(key, key, receiver="x", message=OPENED)), clock.now())
    deliver = Deliver(store, {"x": there}, clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(deliver.loops()[0])
        await clock.advance(60.0)
        await deliver.drain(0.0)
    return [deliver.health(), deliver.stuck(), repr(there), vars(there)]
