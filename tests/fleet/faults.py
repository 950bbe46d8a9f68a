"""What goes wrong between hosts.  Each fault is a context in which files grow; after it, all must come right."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.conftest import SOAK
from tests.fleet.fleet import FILES, HUB, Fleet

HOLD_S = 150.0 if SOAK else 1.5
KILLS = 50 if SOAK else 3
"""Besides those that `one_way_loss` kills."""
DELAY_S, LOSS = (0.5, 0.2) if SOAK else (0.03, 0.2)

DEAF = ("n5", "n7")
MANY = 4
"""Agents of whom something must come through a lossy way; with `make soak` all of it must."""

Fault = Callable[[Fleet], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def partition(fleet: Fleet) -> AsyncIterator[None]:
    """Nothing comes through between the hub and the agents."""
    fleet.network.cut(HUB)
    yield
    await asyncio.sleep(HOLD_S)
    fleet.network.mend(HUB)


@asynccontextmanager
async def one_way_loss(fleet: Fleet) -> AsyncIterator[None]:
    """The hub hears the agents and commits, they do not hear that it has; two are killed before they do."""
    hub = fleet.network.hosts[HUB]
    before = {agent["name"]: agent["taken"] for agent in (await fleet.hub.status())["agents"]}
    hub.ip("route add blackhole 10.77.0.0/25")
    yield
    await fleet.hub.until(lambda s: all(a["taken"] > before[a["name"]] for a in s["agents"] if a["name"] in DEAF))
    await asyncio.sleep(HOLD_S)
    for name in DEAF:
        await fleet.kill(name)
    hub.ip("route del blackhole 10.77.0.0/25")
    await fleet.hub.until(lambda s: all(a["repeated"] > 0 for a in s["agents"] if a["name"] in DEAF))


@asynccontextmanager
async def long_and_lossy(fleet: Fleet) -> AsyncIterator[None]:
    """All takes DELAY_S longer each way, a fifth of the frames is lost; it comes through even so."""
    before = {agent["name"]: agent["taken"] for agent in (await fleet.hub.status())["agents"]}
    fleet.network.slow(HUB, DELAY_S, LOSS)
    yield
    if SOAK:
        await fleet.settled()
    await fleet.hub.until(lambda s: sum(a["taken"] > before[a["name"]] for a in s["agents"]) >= MANY)
    fleet.network.even()


@asynccontextmanager
async def hub_killed(fleet: Fleet) -> AsyncIterator[None]:
    """SIGKILL of the hub while deliveries come in; it is gone for a while."""
    yield
    await asyncio.sleep(0.1)
    await fleet.hub.kill()
    await asyncio.sleep(HOLD_S / 2)
    await fleet.start(HUB)


@asynccontextmanager
async def agents_killed(fleet: Fleet) -> AsyncIterator[None]:
    """SIGKILL of agents, any of them, at any moment."""
    seed = random.Random(20250402)
    yield
    for _ in range(KILLS):
        await asyncio.sleep(seed.uniform(0.0, 0.2))
        await fleet.kill(seed.choice(list(FILES)))


@asynccontextmanager
async def full_disk(fleet: Fleet) -> AsyncIterator[None]:
    """The hub's disk is full: what comes in cannot be committed, and is not said to be."""
    fleet.hub.fill_disk()
    yield
    await fleet.hub.until(lambda s: not s["store"]["ok"])
    await asyncio.sleep(HOLD_S)
    fleet.hub.free_disk()


@asynccontextmanager
async def tokens_changed(fleet: Fleet) -> AsyncIterator[None]:
    """New tokens without a pause; then newer ones that the hub has first: those who have the old ones are refused."""
    fleet.give_tokens("token-of-{0}\nnew-of-{0}", "new-of-{0}")
    fleet.give_tokens("newer-of-{0}", "new-of-{0}")
    yield
    for name in ("n1", "n5", "n8"):
        await fleet.daemons[name].until(lambda s: "answered 401" in (s["receivers"][0]["last_error"] or ""))
    fleet.give_tokens("newer-of-{0}", "newer-of-{0}")


FAULTS: tuple[Fault, ...] = (
    partition, one_way_loss, long_and_lossy, hub_killed, agents_killed, full_disk, tokens_changed,
)  # fmt: skip
