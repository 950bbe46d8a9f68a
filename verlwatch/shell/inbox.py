"""The bounded joint between reading and judging: when it is full the tail waits, and the files are the buffer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from verlwatch.core.engine import Engine
from verlwatch.core.fleet import AgentReport
from verlwatch.core.types import Chunk, Cursor, Extract, Outcome

RECORD_BYTES = 4096
"""What a record counts for: about what the line of a step has."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """What an agent says of itself and has read, with the cursor to commit; None where nothing is new."""

    report: AgentReport
    cursor: Cursor | None = None
    extracts: tuple[Extract, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What a person asks for: a change of the engine, and where its answer goes once that is committed.

    ``work`` gives None where there is nothing to change; the answer is whether there was.
    """

    work: Callable[[Engine, float], Outcome | None]
    answer: asyncio.Future[bool]


Item = Chunk | Extract | Parcel | Request
"""An Extract by itself holds what was seen beside the logs: a process, the memory of a host or of a GPU."""


class Inbox:
    """What is to be judged, in order, bounded by bytes and number.  One consumer; all calls in the loop's thread."""

    def __init__(self, max_bytes: int = 1 << 20, max_items: int = 1024) -> None:
        self.bytes = 0
        self.closed = False
        self._max_bytes = max_bytes
        self._max_items = max_items
        self._items: deque[Item] = deque()
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    async def put(self, item: Item) -> None:
        """Waits while the inbox is full.  An empty one takes an item of any size.

        Raises:
            RuntimeError: the inbox is closed.
        """
        while self._items and not self.closed and self._full(item):
            self._drained.clear()
            await self._drained.wait()
        if self.closed:
            raise RuntimeError("the inbox is closed: nothing may be read after the end of the stream")
        self._items.append(item)
        self.bytes += _size(item)
        self._filled.set()

    def offer(self, extract: Extract) -> bool:
        """Takes what has no position and may be missed; whether there was room for it."""
        if self.closed or self._full(extract):
            return False
        self._items.append(extract)
        self.bytes += _size(extract)
        self._filled.set()
        return True

    async def get(self, max_items: int = 64, *, timeout_s: float | None = None) -> list[Item] | None:
        """All that is there, up to ``max_items``; waits for the first one.

        Empty if none came within ``timeout_s``; None at the end of the stream: closed and everything taken.
        """
        if not self._items and not self.closed:
            self._filled.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._filled.wait()
            except TimeoutError:
                return []
        if not self._items:
            return None
        taken = [self._items.popleft() for _ in range(min(max_items, len(self._items)))]
        self.bytes -= sum(map(_size, taken))
        self._drained.set()
        return taken

    def close(self) -> None:
        """The end of the stream; what is in it can still be taken."""
        self.closed = True
        self._filled.set()
        self._drained.set()

    def _full(self, item: Item) -> bool:
        return len(self._items) >= self._max_items or self.bytes + _size(item) > self._max_bytes


def _size(item: Item) -> int:
    if isinstance(item, Chunk):
        return len(item.data)
    if isinstance(item, Request):
        return 0
    extracts = (item,) if isinstance(item, Extract) else item.extracts
    return RECORD_BYTES * sum(len(extract.records) for extract in extracts)
