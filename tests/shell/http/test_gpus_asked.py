"""What cards held over a stretch of time: bounded, by run, and for whom has the token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
import orjson
import pytest
from yarl import URL

from verlwatch.core.types import GpuCell, GpuRow, Outcome
from verlwatch.fields import Secret
from verlwatch.shell.http import gpus
from verlwatch.shell.http.server import Server, start
from verlwatch.shell.store import Store

if TYPE_CHECKING:
    from tests.shell.http.fake import FakeSource

NOW = 1_728_000_000.0
RUN = "team/llama 8b?"
TOKEN = "canary-token-81f3"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "state")
    yield store
    await store.close()


@pytest.fixture
async def server(source: FakeSource, store: Store, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    token = Secret(TOKEN) if "guarded" in request.fixturenames else None
    actions = gpus.actions(store.gpus, lambda: NOW, lambda: {"empty"})
    server = await start(source, ("127.0.0.1", 0), token, actions=actions)
    yield server
    await server.stop()


@pytest.fixture
def guarded() -> None:
    """The server has a token."""


async def keep(store: Store, *, cards: int = 2, hosts: int = 1, instants: int = 100, run: str = RUN) -> None:
    rows = [
        GpuRow(run, f"n{host}", NOW - 10 * at, tuple(GpuCell(str(gpu), None, 80.0, 28.0 + gpu) for gpu in range(cards)))
        for at in range(instants)
        for host in range(hosts)
    ]
    await store.commit(Outcome(gpus=tuple(rows)), NOW)


async def ask(server: Server, run: str = RUN, **how: Any) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session:
        address = f"{server.url}api/v1/runs/{quote(run, safe='')}/gpus"
        async with session.get(URL(address, encoded=True), **how) as response:
            return response.status, orjson.loads(await response.read())


async def test_the_last_hour_is_told_by_host_and_card(server: Server, store: Store) -> None:
    await keep(store, hosts=2, instants=3)
    code, told = await ask(server)
    assert (code, told["run"], told["since"], told["until"]) == (200, RUN, NOW - 3600, NOW)
    first, second = told["hosts"]
    assert (first["host"], second["host"]) == ("n0", "n1")
    assert first["cards"] == [
        {"gpu": "0", "rank": None, "total_gb": 80.0},
        {"gpu": "1", "rank": None, "total_gb": 80.0},
    ]
    assert first["at"] == [NOW - 20, NOW - 10, NOW]
    assert first["used_gb"] == first["low_gb"] == first["high_gb"] == [[28.0, 29.0]] * 3
    assert first["utilization"] == [[None, None]] * 3


async def test_a_stretch_and_how_many_points_can_be_asked_for(server: Server, store: Store) -> None:
    await keep(store)
    _, told = await ask(server, params={"since": NOW - 500, "until": NOW - 400, "points": 5})
    assert told["hosts"][0]["at"] == [NOW - 480, NOW - 460, NOW - 440, NOW - 420, NOW - 400]


async def test_of_many_cards_there_are_fewer_instants(server: Server, store: Store) -> None:
    await keep(store, cards=64, hosts=32, instants=30)
    _, told = await ask(server, params={"points": 2000, "since": NOW - 300})
    cells = sum(len(row) for host in told["hosts"] for row in host["used_gb"])
    assert 0 < cells <= gpus.MOST_CELLS
    assert all(host["at"][-1] == NOW for host in told["hosts"])


async def test_a_run_without_samples_has_none_and_an_unknown_one_is_told(server: Server) -> None:
    assert (await ask(server, "empty"))[1]["hosts"] == []
    assert await ask(server, "other") == (404, {"error": "there is no run other"})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"since": "yesterday"}, '"since" must be a number from 0 to 100000000000'),
        ({"until": "nan"}, '"until" must be a number from 0 to 100000000000'),
        ({"until": "1e300"}, '"until" must be a number from 0 to 100000000000'),
        ({"points": "2001"}, '"points" must be a number from 0 to 2000'),
        ({"points": "0.5"}, '"since" must lie before "until", and "points" be 1 or more'),
        ({"since": str(NOW), "until": str(NOW)}, '"since" must lie before "until", and "points" be 1 or more'),
    ],
)
async def test_what_cannot_be_answered_is_refused(server: Server, asked: dict[str, str], said: str) -> None:
    assert await ask(server, params=asked) == (400, {"error": said})


@pytest.mark.usefixtures("guarded")
async def test_who_has_no_token_is_told_nothing(server: Server, store: Store) -> None:
    await keep(store)
    code, told = await ask(server)
    assert (code, list(told)) == (401, ["error"])
    code, _ = await ask(server, headers={"Authorization": f"Bearer {TOKEN}"})
    assert code == 200


async def test_nobody_can_change_samples(server: Server) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{server.url}api/v1/runs/r/gpus") as response:
        assert response.status == 405
