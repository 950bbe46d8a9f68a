"""The outbox for people: what waits, what was given up, sending it again, letting go of it.

The same through HTTP while a daemon runs, and on its database while none does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from typing import Any

from verlwatch.core.types import Json
from verlwatch.shell._outbox import Outbox
from verlwatch.shell.clock import Clock
from verlwatch.shell.http._actions import Actions

PATH = "/api/v1/outbox"


class Letters:
    """What a person may do.

    ``receivers`` names those configured; ``wake`` is called when something has changed.
    """

    def __init__(
        self, outbox: Outbox, clock: Clock, receivers: Callable[[], Collection[str]], wake: Callable[[], None]
    ) -> None:
        self._outbox = outbox
        self._clock = clock
        self._receivers = receivers
        self._wake = wake

    def actions(self) -> Actions:
        """By method and path."""
        return {
            ("GET", PATH): self._list,
            ("POST", f"{PATH}/retry"): self._retry,
            ("POST", f"{PATH}/drop"): self._drop,
        }

    async def _list(self, _: Json) -> Mapping[str, Any]:
        return {"letters": [asdict(letter) for letter in await self._outbox.letters()]}

    async def _retry(self, asked: Json) -> Mapping[str, Any]:
        """``{"ids": [1, 2]}`` or ``{"all": true}``."""
        ids = None if asked.get("all") is True else _ids(asked)
        retried = await self._outbox.revive(ids, self._receivers(), self._clock.now())
        self._wake()
        return retried._asdict()

    async def _drop(self, asked: Json) -> Mapping[str, Any]:
        """``{"ids": [1, 2]}``, or ``{"all": true}`` for all dead letters, with a ``receiver`` for those of one."""
        now = self._clock.now()
        if asked.get("all") is True:
            dropped = await self._outbox.drop_dead(_receiver(asked), now)
            self._wake()
            return {"dropped": dropped, "unknown": []}
        found = {row_id: await self._outbox.drop(row_id, now) for row_id in _ids(asked)}
        self._wake()
        return {
            "dropped": [row_id for row_id, was_there in found.items() if was_there],
            "unknown": [row_id for row_id, was_there in found.items() if not was_there],
        }


def _receiver(asked: Json) -> str | None:
    name = asked.get("receiver")
    if name is not None and not isinstance(name, str):
        raise ValueError('"receiver" must be the name of a receiver')
    return name


def _ids(asked: Json) -> list[int]:
    ids = asked.get("ids")
    if not isinstance(ids, list) or not all(type(one) is int and 0 < one < 1 << 63 for one in ids):
        raise ValueError('"ids" must be a list of the numbers that the outbox lists')
    return ids
