"""The bounded joint between reading and judging: when it is full the tail waits, and the files are the buffer."""

from __future__ import annotations

import asyncio
from collections import deque

from verlwatch.core.types import Chunk


class Inbox:
    """Chunks in order, bounded by bytes and number.  One consumer; all calls in the loop's thread."""

    def __init__(self, max_bytes: int = 1 << 20, max_chunks: int = 1024) -> None:
        self.bytes = 0
        self.closed = False
        self._max_bytes = max_bytes
        self._max_chunks = max_chunks
        self._chunks: deque[Chunk] = deque()
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()

    def __len__(self) -> int:
        return len(self._chunks)

    async def put(self, chunk: Chunk) -> None:
        """Waits while the inbox is full.  An empty one takes a chunk of any size.

        Raises:
            RuntimeError: the inbox is closed.
        """
        while self._chunks and not self.closed and self._full(chunk):
            self._drained.clear()
            await self._drained.wait()
        if self.closed:
            raise RuntimeError("the inbox is closed: nothing may be read after the end of the stream")
        self._chunks.append(chunk)
        self.bytes += len(chunk.data)
        self._filled.set()

    async def get(self, max_chunks: int = 64, *, timeout_s: float | None = None) -> list[Chunk] | None:
        """All chunks that are there, up to ``max_chunks``; waits for the first one.

        Empty if none came within ``timeout_s``; None at the end of the stream: closed and everything taken.
        """
        if not self._chunks and not self.closed:
            self._filled.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._filled.wait()
            except TimeoutError:
                return []
        if not self._chunks:
            return None
        taken = [self._chunks.popleft() for _ in range(min(max_chunks, len(self._chunks)))]
        self.bytes -= sum(len(chunk.data) for chunk in taken)
        self._drained.set()
        return taken

    def close(self) -> None:
        """The end of the stream; what is in it can still be taken."""
        self.closed = True
        self._filled.set()
        self._drained.set()

    def _full(self, chunk: Chunk) -> bool:
        return len(self._chunks) >= self._max_chunks or self.bytes + len(chunk.data) > self._max_bytes
