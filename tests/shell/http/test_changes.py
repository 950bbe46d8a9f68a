"""Silences and acceptance by HTTP: what may be asked, and that it is answered once it is committed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.core.training import Training
from verlwatch.core.engine import Engine
from verlwatch.core.gather import Gatherer
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk
from verlwatch.fields import Secret
from verlwatch.shell.http import changes
from verlwatch.shell.http.changes import Changes, silence_of
from verlwatch.shell.http.server import Server, start
from verlwatch.shell.inbox import Inbox, Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.shell.http.fake import FakeSource

    Ask = Callable[..., Awaitable[tuple[int, Any]]]

TOKEN = "canary-token-81f3"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SILENCES = "/api/v1/silences"
NOW = 1000.0


class StandingClock:
    """It is always NOW."""

    def now(self) -> float:
        return NOW

    async def wait(self, event: asyncio.Event, until: float | None) -> None:
        """Waits for the event alone."""
        await event.wait()


class Judging:
    """Judges what the inbox holds, as the judge does; ``commits`` is cleared where the disk is full."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.engine: Engine | Gatherer = Engine()
        self.commits = asyncio.Event()
        self.commits.set()

    async def run(self) -> None:
        while (items := await self.inbox.get()) is not None:
            for item in items:
                assert isinstance(item, Request)
                assert isinstance(self.engine, Engine)
                outcome = item.work(self.engine, NOW)
                await self.commits.wait()
                if not item.answer.done():
                    item.answer.set_result(outcome is not None)


@pytest.fixture
async def judging() -> AsyncIterator[Judging]:
    judging = Judging()
    task = asyncio.ensure_future(judging.run())
    yield judging
    judging.commits.set()
    judging.inbox.close()
    await task


@pytest.fixture
async def server(source: FakeSource, judging: Judging, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    token = Secret(TOKEN) if "guarded" in request.fixturenames else None
    actions = Changes(judging.inbox, StandingClock(), judging.engine).actions()
    server = await start(source, ("127.0.0.1", 0), token, actions=actions)
    yield server
    await server.stop()


@pytest.fixture
def guarded() -> None:
    """The server has a token."""


@pytest.fixture
def ask(server: Server, client: aiohttp.ClientSession) -> Ask:
    async def send(method: str, path: str, **how: Any) -> tuple[int, Any]:
        async with client.request(method, server.url.rstrip("/") + path, **how) as response:
            return response.status, await response.json()

    return send


async def test_a_silence_is_made_and_removed(ask: Ask, judging: Judging) -> None:
    asked = {"run": "prod-*", "phase": "gen", "for": "2h", "comment": "known", "author": "ada"}
    code, made = await ask("POST", SILENCES, json=asked)
    assert code == 200
    assert made == {
        "id": made["id"], "run": "prod-*", "rule": "*", "phase": "gen", "host": "*", "rank": "*",
        "starts_at": NOW, "ends_at": NOW + 7200.0, "comment": "known", "author": "ada",
        "covers": {"runs": [], "incidents": 0},
    }  # fmt: skip
    assert isinstance(judging.engine, Engine)
    assert [silence.id for silence in judging.engine.silences] == [made["id"]]
    assert await ask("DELETE", f"{SILENCES}/{made['id']}") == (200, {"removed": made["id"]})
    assert list(judging.engine.silences) == []


async def test_what_is_not_there_is_not_found(ask: Ask) -> None:
    for method, path in (("DELETE", f"{SILENCES}/s1"), ("POST", "/api/v1/incidents/1a2b3c4d/accept")):
        code, said = await ask(method, path, **({"json": {}} if method == "POST" else {}))
        assert code == 404
        assert "is called" in said["error"]


@pytest.mark.usefixtures("guarded")
async def test_both_need_the_bearer_token(ask: Ask, judging: Judging) -> None:
    password = aiohttp.encode_basic_auth("ada", TOKEN)
    for how in ({}, {"headers": {"Authorization": "Bearer wrong"}}, {"headers": {"Authorization": password}}):
        assert (await ask("POST", SILENCES, json={"run": "a"}, **how))[0] == 401
        assert (await ask("DELETE", f"{SILENCES}/s1", **how))[0] == 401
    assert isinstance(judging.engine, Engine)
    assert list(judging.engine.silences) == []
    assert (await ask("POST", SILENCES, json={"run": "a"}, headers=BEARER))[0] == 200


async def test_a_page_of_another_site_cannot_silence_anything(ask: Ask) -> None:
    form = {"Content-Type": "text/plain"}
    assert (await ask("POST", SILENCES, data='{"run": "*x"}', headers=form))[0] == 415
    rebound = {"Host": "evil.example"}
    assert (await ask("POST", SILENCES, json={"run": "a"}, headers=rebound))[0] == 421
    assert (await ask("DELETE", f"{SILENCES}/s1", headers=rebound))[0] == 421


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "that would silence everything"),
        ({"comment": "all"}, "that would silence everything"),
        ({"run": "**"}, "that would silence everything"),
        ({"run": "?*", "phase": "*?", "host": "**"}, "that would silence everything"),
        ({"run": ""}, "run: must be a text of 1 to 200"),
        ({"run": 0}, "run: must be a text of 1 to 200"),
        ({"run": "a", "comment": 0}, "comment: must be a text"),
        ({"run": "a", "for": "-1h"}, "for: must be a number with a unit"),
        ({"run": "a", "for": "soon"}, "for: must be a number with a unit"),
        ({"run": "a", "for": "0s"}, "for: must be more than 0s"),
        ({"run": "a", "for": "31d"}, "at most 30d"),
        ({"run": ["a"]}, "run: must be a text"),
        ({"run": "a\x1b[31m"}, "printable"),
        ({"run": "a" * 201}, "200"),
        ({"run": "a", "untill": "5"}, "unknown: untill"),
    ],
)
async def test_what_is_wrong_with_a_silence_is_said(ask: Ask, asked: dict[str, Any], words: str) -> None:
    code, said = await ask("POST", SILENCES, json=asked)
    assert code == 400
    assert words in said["error"]


def test_what_fits_every_name_is_the_same_as_a_star() -> None:
    silence = silence_of({"run": "?*", "phase": "gen", "rank": "?"}, NOW)
    assert (silence.run, silence.phase, silence.rank) == ("*", "gen", "?")


async def test_a_silence_says_what_it_covers_at_present(ask: Ask, judging: Judging) -> None:
    training = Training().steps(1, 60).steps(61, 80, gen=80.0)
    assert isinstance(judging.engine, Engine)
    judging.engine.feed(Chunk("train.log", 1, 0, "".join(training.lines).encode()), NOW)
    _, made = await ask("POST", SILENCES, json={"run": "tr*"})
    assert made["covers"] == {"runs": ["train"], "incidents": 1}
    _, made = await ask("POST", SILENCES, json={"run": "tr*", "phase": "ref"})
    assert made["covers"] == {"runs": ["train"], "incidents": 0}
    _, made = await ask("POST", SILENCES, json={"run": "other"})
    assert made["covers"] == {"runs": [], "incidents": 0}


def test_without_a_time_it_lasts_until_the_end_of_the_run() -> None:
    assert silence_of({"run": "a"}, NOW).ends_at is None


async def test_there_is_a_most_of_silences(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "SILENCES_MOST", 2)
    codes = [(await ask("POST", SILENCES, json={"run": name}))[0] for name in "abc"]
    assert codes == [200, 200, 404]


async def test_what_is_not_committed_is_not_said_to_be_done(
    ask: Ask, judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "ANSWER_S", 0.05)
    judging.commits.clear()
    code, said = await ask("POST", SILENCES, json={"run": "a"})
    assert code == 503
    assert "not committed in time" in said["error"]


async def test_a_daemon_that_stops_says_so(ask: Ask, judging: Judging) -> None:
    judging.inbox.close()
    assert (await ask("POST", SILENCES, json={"run": "a"}))[0] == 503


async def test_an_agent_has_nothing_to_silence(judging: Judging) -> None:
    actions = Changes(judging.inbox, StandingClock(), Gatherer(Settings())).actions()
    with pytest.raises(ValueError, match="ask its hub"):
        await actions["POST", SILENCES]({"run": "a"})


async def test_the_silences_in_force_are_listed(ask: Ask) -> None:
    assert await ask("GET", SILENCES) == (200, [])
    code, incidents = await ask("GET", "/api/v1/incidents")
    assert code == 200
    assert {"id", "state", "held"} <= incidents[0].keys()
