"""The inbox is bounded, in order, and ends."""

from __future__ import annotations

import asyncio

import pytest

from verlwatch.core.types import Chunk
from verlwatch.shell.inbox import Inbox, Item


def chunk(offset: int, size: int = 10) -> Chunk:
    return Chunk("train.log", 0, offset, b"x" * size)


def offsets(items: list[Item] | None) -> list[int]:
    return [item.offset for item in items or [] if isinstance(item, Chunk)]


async def test_everything_that_is_there_is_taken_at_once_and_in_order() -> None:
    inbox = Inbox()
    for offset in range(5):
        await inbox.put(chunk(offset))
    assert offsets(await inbox.get(3)) == [0, 1, 2]
    assert offsets(await inbox.get()) == [3, 4]
    assert inbox.bytes == len(inbox) == 0


@pytest.mark.parametrize("inbox", [Inbox(max_bytes=25), Inbox(max_items=2)], ids=["bytes", "chunks"])
async def test_a_full_inbox_makes_the_reader_wait(inbox: Inbox) -> None:
    await inbox.put(chunk(0))
    await inbox.put(chunk(1))
    third = asyncio.ensure_future(inbox.put(chunk(2)))
    await asyncio.sleep(0)
    assert not third.done()
    assert offsets(await inbox.get(1)) == [0]
    await third
    assert offsets(await inbox.get()) == [1, 2]


async def test_an_empty_inbox_takes_a_chunk_of_any_size() -> None:
    inbox = Inbox(max_bytes=5)
    await inbox.put(chunk(0, 100))
    assert inbox.bytes == 100


async def test_waiting_for_a_chunk_ends_when_one_comes_or_time_is_up() -> None:
    inbox = Inbox()
    assert await inbox.get(timeout_s=0) == []
    waiting = asyncio.ensure_future(inbox.get(timeout_s=10))
    await asyncio.sleep(0)
    await inbox.put(chunk(7))
    assert offsets(await waiting) == [7]


async def test_a_closed_inbox_gives_what_is_left_and_then_the_end() -> None:
    inbox = Inbox()
    await inbox.put(chunk(0))
    inbox.close()
    assert offsets(await inbox.get()) == [0]
    assert await inbox.get() is None
    with pytest.raises(RuntimeError, match="closed"):
        await inbox.put(chunk(1))


async def test_closing_ends_every_waiting() -> None:
    inbox = Inbox(max_items=1)
    taker = asyncio.ensure_future(inbox.get())
    await asyncio.sleep(0)
    inbox.close()
    assert await taker is None
