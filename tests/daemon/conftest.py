"""Fixtures of the tests that run the real daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.daemon.harness import Daemon, Sink


@pytest.fixture
async def sink() -> AsyncIterator[Sink]:
    async with Sink() as sink:
        yield sink


class Starter:
    """Starts daemons and sees to it that none outlives its test."""

    def __init__(self) -> None:
        self._started: list[Daemon] = []

    async def __call__(
        self,
        *arguments: str | Path,
        env: dict[str, str] | None = None,
        open_files: int | None = None,
        through: tuple[str, ...] = (),
        command: str = "run",
    ) -> Daemon:
        daemon = await Daemon.start(*arguments, env=env, open_files=open_files, through=through, command=command)
        self._started.append(daemon)
        return daemon

    async def end(self) -> None:
        for daemon in self._started:
            if daemon.process.returncode is None:
                await daemon.kill()


@pytest.fixture
async def start() -> AsyncIterator[Starter]:
    starter = Starter()
    yield starter
    await starter.end()
