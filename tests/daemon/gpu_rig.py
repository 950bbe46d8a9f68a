"""Whole watchers in this process, on one clock that a test moves, over a driver that is made up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.fakes.clock import VirtualClock
from tests.fakes.nvml import GIB, FakeNvml
from verlwatch.app import App
from verlwatch.config import Config
from verlwatch.shell import observers
from verlwatch.shell.fleet.link import Link
from verlwatch.shell.gpu import Sample
from verlwatch.shell.gpu.nvml import Nvml
from verlwatch.shell.observers.gpus import Gpus

START = 1_000_000.0
EVERY_S = 10.0
GPUS = 8
LIMIT_S = 20.0
RUN = "ppo"
POLL_S = 0.01


def shown(first: int) -> type[Nvml]:
    """NVML of a host that has the eight cards of the driver from ``first`` on: one library serves one process."""

    class Host(Nvml):
        NAME: ClassVar[str] = "nvml"

        def sample(self) -> Sample:
            whole = super().sample()
            own = {str(first + gpu): str(gpu) for gpu in range(GPUS)}
            return whole._replace(cards=tuple(c._replace(gpu=own[c.gpu]) for c in whole.cards if c.gpu in own))

    return Host


class Watchers:
    """Apps on one clock; ``hosts`` maps the name of an agent ("" for a standalone) to its first card."""

    def __init__(self, folder: Path, driver: FakeNvml, hosts: dict[str, int], patch: pytest.MonkeyPatch) -> None:
        self.clock = VirtualClock(START)
        self.driver = driver
        self.folder = folder
        self.log = folder / "train.log"
        self.step = 0
        proc = folder / "proc"
        for rank, card in enumerate(driver.cards):
            pid = 7_000 + rank
            (place := proc / str(pid)).mkdir(parents=True)
            (place / "cmdline").write_bytes(b"ray::WorkerDict.update")
            (place / "environ").write_bytes(b"RANK=%d\0" % rank)
            card.processes = [(pid, GIB)]
        patch.setattr(
            observers,
            "OBSERVERS",
            (
                lambda inbox, clock, config, around: Gpus(
                    inbox,
                    clock,
                    config,
                    around.files,
                    sources=(shown(hosts[config.agent.name or ""]),) if (config.agent.name or "") in hosts else (),
                    host=config.agent.name or "node-0",
                    proc=str(proc),
                ),
            ),
        )

    @asynccontextmanager
    async def app(self, name: str, **settings: Any) -> AsyncIterator[App]:
        """A watcher that runs; stopped at the end."""
        config = Config.model_validate(
            {"state_dir": str(self.folder / f"state-{name}"), "http": {"listen": "127.0.0.1:0"}, **settings}
        )
        app = App(config, None, lambda: config, port_chosen=True)
        app._clock = self.clock
        running = asyncio.ensure_future(app.run())
        try:
            await self.until(
                lambda: running.done() or getattr(getattr(app, "_store", None), "_served", None) is not None
            )
            if running.done():
                await running
            yield app
        finally:
            app._stop_wanted.set()
            while not running.done():
                self.clock.move(0.1)
                await asyncio.sleep(0.01)
            await running

    @staticmethod
    def url(app: App) -> str:
        """Where it serves its status."""
        assert app._store._served is not None
        return app._store._served.url

    async def agree(self, *agents: App) -> None:
        """Returns when each knows that its clock is the hub's: one during which it jumps tells little."""
        await self.until(lambda: all(isinstance(a._deliver, Link) and a._deliver.offset_s is not None for a in agents))

    async def until(self, holds: Callable[[], object], rate: float = 1.0) -> None:
        """Returns when it holds; meanwhile the clock goes ``rate`` times as fast as the real one."""
        async with asyncio.timeout(LIMIT_S):
            while not holds():
                self.clock.move(rate * POLL_S)
                await asyncio.sleep(POLL_S)

    async def train(self, judging: App, used: Callable[[int, int, bool], float], instants: int = 6) -> None:
        """One step: ``used`` gives GiB of a rank at a step, in its first half or not; returns when all is judged."""
        self.step += 1
        for instant in range(instants):
            for rank, card in enumerate(self.driver.cards):
                card.used = round(used(rank, self.step, instant < instants // 2) * GIB)
            at = (self.clock.now() // EVERY_S + 1) * EVERY_S
            self.clock.move(at - self.clock.now())
            await self.until(lambda: self._is_seen(judging, at))  # noqa: B023 - it is called before the next
        whole, half = EVERY_S * instants, EVERY_S * instants / 2
        with self.log.open("a") as log:
            log.write(
                f"step:{self.step} - timing_s/gen:{half} - timing_s/update_actor:{half} - timing_s/step:{whole}\n\n"
            )
        await self.until(lambda: (run := judging._engine.runs.get(RUN)) and run.step == self.step, rate=10.0)
        await self.until(lambda: not any(one.pending for one in judging._overview.status().receivers))

    def _is_seen(self, judging: App, at: float) -> bool:
        run = judging._engine.runs.get(RUN)
        cards = run.hardware.cards.cards if run else {}
        return len(cards) == len(self.driver.cards) and all(
            card.at is not None and abs(card.at - at) <= 1.0 for card in cards.values()
        )
