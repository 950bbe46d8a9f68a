"""A leak on one card is told within four steps, through the real binding of NVML; with its host through a hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.daemon.gpu_rig import GPUS, RUN, START, Watchers
from tests.daemon.harness import Sink
from tests.fakes.nvml import FakeNvml, cards, loaded
from verlwatch.app import App

ONSET = 10
LEAK_GB = 1.1


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Iterator[FakeNvml]:
    with loaded(made_up := FakeNvml(*cards(getattr(request, "param", GPUS)))):
        yield made_up


def leaking(leak: int) -> Any:
    """28 GiB, 40 more while it generates, and one rank that grows from a step on."""

    def used(rank: int, step: int, generates: bool) -> float:
        grown = LEAK_GB * max(0, step - ONSET + 1) if rank == leak else 0.0
        return 28.0 + 0.02 * rank + (40.0 if generates else 0.0) + grown

    return used


def told(sink: Sink) -> list[dict[str, Any]]:
    return [body for _, _, body in sink.received]


async def first_told(watchers: Watchers, judging: App, sink: Sink, rank: int) -> dict[str, Any]:
    """Trains until people are told, which must be of this rank and within four steps of the leak."""
    while not told(sink) and watchers.step < ONSET + 4:
        await watchers.train(judging, leaking(rank))
    (message,) = told(sink)
    assert ONSET <= watchers.step < ONSET + 4
    assert (message["rule"], message["phase"]) == ("memory_offset_change", f"memory rank {rank}")
    assert f"rank {rank} holds " in message["title"]
    assert f"since step {ONSET}, growing 1.1 GB a step, full in " in message["title"]
    return message


async def test_a_leak_on_one_card_is_told_within_four_steps(
    tmp_path: Path, driver: FakeNvml, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchers = Watchers(tmp_path, driver, {"": 0}, monkeypatch)
    settings = {
        "runs": [{"name": RUN, "logs": [str(watchers.log)], "from": "beginning"}],
        "receivers": [{"name": "hook", "type": "webhook", "url": sink.url}],
    }
    watchers.log.touch()
    async with watchers.app("one", **settings) as app:
        while watchers.step < ONSET - 1:
            await watchers.train(app, leaking(5))
        assert told(sink) == []
        message = await first_told(watchers, app, sink, 5)
        assert message["scope"] == [
            {"label": "host", "value": "node-0"},
            {"label": "gpu", "value": "5"},
            {"label": "rank", "value": "5"},
        ]
        (run,) = app._overview.status().runs
        assert (len(run.gpus), run.ranks_compared, run.ranks_hint) == (GPUS, True, "")
        offsets = {card.rank: card.offset_gb or 0.0 for card in run.gpus}
        assert max(offsets, key=lambda rank: offsets[rank]) == "5"
        assert {card.actor for card in run.gpus} == {"WorkerDict"}
        rows = await app._store.gpus.stretch(RUN, START, watchers.clock.now(), 1000)
        assert len(rows) == 6 * watchers.step
        assert [cell.rank for cell in rows[-1].cells] == [str(rank) for rank in range(GPUS)]


@pytest.mark.parametrize("driver", [2 * GPUS], indirect=True)
async def test_through_agents_and_a_hub_the_leaking_rank_is_named_with_its_host(
    tmp_path: Path, driver: FakeNvml, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchers = Watchers(tmp_path, driver, {"node-1": 0, "node-2": GPUS}, monkeypatch)
    watchers.log.touch()
    agents = []
    for name in ("node-1", "node-2"):
        (token := tmp_path / f"{name}.token").write_text(f"token-of-{name}\n")
        token.chmod(0o600)
        agents.append({"name": name, "token_file": str(token)})
    receivers = [{"name": "hook", "type": "webhook", "url": sink.url}]
    run = {"name": RUN, "from": "beginning"}
    other = tmp_path / "worker.log"
    other.touch()
    async with watchers.app("hub", hub={"agents": agents}, receivers=receivers) as hub:
        ships = [{"hub": watchers.url(hub), **agent} for agent in agents]
        async with (
            watchers.app("a", agent=ships[0], runs=[{**run, "logs": [str(watchers.log)]}]) as first,
            watchers.app("b", agent=ships[1], runs=[{**run, "logs": [str(other)]}]) as second,
        ):
            await watchers.agree(first, second)
            message = await first_told(watchers, hub, sink, GPUS + 3)
            assert message["scope"] == [
                {"label": "host", "value": "node-2"},
                {"label": "gpu", "value": "3"},
                {"label": "rank", "value": str(GPUS + 3)},
            ]
            (of_hub,) = hub._overview.status().runs
            assert [card.host for card in of_hub.gpus] == ["node-1"] * GPUS + ["node-2"] * GPUS
            async with aiohttp.ClientSession(watchers.url(hub)) as session:
                async with session.get(f"/api/v1/runs/{RUN}/gpus", params={"since": START}) as answer:
                    hosts = (await answer.json())["hosts"]
                async with session.get("/metrics") as answer:
                    told_to_prometheus = await answer.text()
        assert [host["host"] for host in hosts] == ["node-1", "node-2"]
        assert [card["rank"] for card in hosts[1]["cards"]] == [str(rank) for rank in range(GPUS, 2 * GPUS)]
        assert hosts[1]["used_gb"][-1][3] > hosts[1]["used_gb"][-1][2] + 3 * LEAK_GB
        series = 'verlwatch_gpu_memory_used_bytes{gpu="3",host="node-2",rank="11",run="ppo"} '
        assert series in told_to_prometheus
