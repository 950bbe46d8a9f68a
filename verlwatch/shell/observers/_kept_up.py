"""What looks beside the logs must not end the watching of the logs: an observer that raises is shown, and made anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from verlwatch.config import Config
from verlwatch.shell.clock import Clock
from verlwatch.shell.printable import shortened

AGAIN_S = 60.0

log = structlog.get_logger(__name__)


class _Looks(Protocol):
    async def run(self) -> None: ...

    def reconfigure(self, config: Config) -> None: ...

    def notices(self) -> Iterable[str]: ...


class KeptUp:
    """An observer, and after each failure another one; ``make`` gives it by the configuration in force."""

    def __init__(self, make: Callable[[Config], _Looks], clock: Clock, config: Config) -> None:
        self._make, self._clock, self._config = make, clock, config
        self._observer = make(config)
        self._why = ""

    async def run(self) -> None:
        """Looks for ever."""
        while True:
            name = type(self._observer).__name__.lower()
            try:
                await self._observer.run()
            except Exception as error:
                log.exception("an observer failed; it is started again", observer=name)
                self._why = f"the observer of {name} failed and is started again: {shortened(repr(error))}"
            until = self._clock.now() + AGAIN_S
            while (now := self._clock.now()) < until <= now + AGAIN_S:
                await self._clock.wait(asyncio.Event(), until)
            self._observer = self._make(self._config)

    def reconfigure(self, config: Config) -> None:
        """Takes up another configuration."""
        self._config = config
        self._observer.reconfigure(config)

    def notices(self) -> Iterable[str]:
        """What works worse than it could, the last failure too."""
        yield from (self._why,) if self._why else ()
        yield from self._observer.notices()
