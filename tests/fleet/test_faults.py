"""Nine hosts, and what may happen between them: in the end the hub has what it has when nothing happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SOAK
from tests.fleet.faults import FAULTS, Fault
from tests.fleet.fleet import RUNS, Fleet, outcome
from tests.fleet.network import Network
from tests.fleet.undisturbed import judge

SKEWS = {"n1": 90.0, "n2": -90.0, "n6": 90.0}


async def begun(fleet: Fleet) -> None:
    """The driver is heard first; what if not is told in test_joining."""
    fleet.write(0.02, ["n1"])
    await fleet.settled()


async def weathered(
    faults: tuple[Fault, ...], network: Network, folder: Path, skews: dict[str, float] | None = None
) -> Fleet:
    """A fleet whose files grew while one fault after the other held."""
    async with Fleet(network, folder, skews) as fleet:
        await begun(fleet)
        shares = len(faults) + 2
        fleet.write(1 / shares)
        await fleet.settled()
        for number, fault in enumerate(faults, start=2):
            async with fault(fleet):
                fleet.write(number / shares)
            lost_nothing(await fleet.settled())
        fleet.write(1.0)
        status = await fleet.settled()
        one_of_each(status)
        for name, skew_s in fleet.skews.items():
            (agent,) = (agent for agent in status["agents"] if agent["name"] == name)
            assert agent["skew_s"] == pytest.approx(skew_s, abs=5.0)
        await fleet.stop()
    return fleet


def lost_nothing(status: dict[str, Any]) -> None:
    assert {(agent["lost"], agent["thinned"]) for agent in status["agents"]} == {(0, 0)}


def one_of_each(status: dict[str, Any]) -> None:
    """Files on four hosts are one run, in one attempt."""
    assert sorted((run["name"], run["attempt"], run["steps_seen"]) for run in status["runs"]) == [
        (name, 1, 300) for name in RUNS
    ]


async def same_as_undisturbed(fleet: Fleet, folder: Path) -> None:
    folder.mkdir()
    told = await judge(folder / "state")
    assert len(told) > 20
    assert fleet.told() == told
    assert fleet.read()
    weathered, calm = outcome(fleet.folder / "hub-state"), outcome(folder / "state")
    for part, expected in calm.items():
        assert unlike(weathered[part], expected) == "", part


def unlike(one: str, other: str) -> str:
    """Where two texts first differ, in short."""
    if one == other:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{one[max(0, at - 200) : at + 80]}\ninstead of\n{other[max(0, at - 200) : at + 80]}"


async def test_a_fleet_that_everything_happens_to_ends_as_one_that_nothing_happens_to(
    network: Network, tmp_path: Path
) -> None:
    fleet = await weathered(FAULTS, network, tmp_path / "storm", SKEWS)
    await same_as_undisturbed(fleet, tmp_path / "calm")


@pytest.mark.skipif(not SOAK, reason="all faults are tried above, in turn; each by itself, and long, with make soak")
@pytest.mark.parametrize(
    "faults", [(), *((fault,) for fault in FAULTS)], ids=lambda faults: faults[0].__name__ if faults else "nothing"
)
async def test_a_fleet_that_one_thing_happens_to_for_long_ends_as_one_that_nothing_happens_to(
    faults: tuple[Fault, ...], network: Network, tmp_path: Path
) -> None:
    fleet = await weathered(faults, network, tmp_path / "storm")
    await same_as_undisturbed(fleet, tmp_path / "calm")
