"""What is looked after beside the flow of data."""

from __future__ import annotations

import asyncio

import structlog

from verlwatch.shell import _memory
from verlwatch.shell.overview import Overview
from verlwatch.shell.store import Store

_log = structlog.get_logger(__name__)


async def keep_place(store: Store, every_s: float) -> None:
    """Notices within seconds that the state directory was deleted, and puts it back where that is possible."""
    while True:
        await asyncio.sleep(every_s)
        gone = store.gone
        if await store.keep_place():
            _log.warning("the state directory was deleted and has been put back", file=str(store.path))
        elif store.gone not in {None, gone}:
            _log.error("the state directory is gone", error=store.gone)


async def look_around(overview: Overview, every_s: float) -> None:
    """Refreshes what the status tells; a backlog that has been read gives back the memory that it took."""
    was_behind = True
    while True:
        await asyncio.sleep(every_s)
        overview.refresh()
        is_behind = overview.is_behind
        if was_behind and not is_behind:
            _memory.give_back()
        was_behind = is_behind
