"""The table of shipments: what an agent has read and its hub has not yet committed.

Each is one commit's extracts, or a part of them.  Numbers grow by one and are never given twice; the epoch names the
life of the table, so that a hub can tell a new one, whose numbers begin anew, from a gap.

Where the shipments take more than they may, samples go, of the oldest first, and are counted; events never do.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from verlwatch.core.types import Extract
from verlwatch.shell.fleet.wire import MOST_SHIPMENTS, is_whole, pack_extracts, thinned

Row = tuple[int, int, bytes]
"""Number, samples left out for want of room, packed extracts."""
Within = Callable[..., Awaitable[Any]]
"""Runs a function that takes the connection first, in a transaction, with the arguments behind it."""

_THIN_AT_ONCE, _THIN_BYTES = 200, 4 << 20
_SPARE = 16
"""Thinning goes on until this part of the room is free, so that it is not begun again with each commit."""


class Waiting(NamedTuple):
    """How many ``shipments`` wait, in how many bytes, and since when the oldest does."""

    shipments: int = 0
    bytes: int = 0
    since: float = 0.0


class Oldest(NamedTuple):
    """The oldest shipments; ``number`` is that of the first, or of the next one where nothing waits."""

    epoch: int
    number: int
    rows: list[Row]
    waiting: Waiting


class Shipments:
    """The table, for those who wait for it; raises as `Store` does."""

    def __init__(self, within: Within, left_out: Counter[str]) -> None:
        self._within = within
        self._left_out = left_out
        self._bytes = 0
        self._in_vain = False  # the last thinning: it left more than it should

    def added(self, size: int) -> None:
        """Notes what a commit has put into the table."""
        self._bytes += size

    def exceed(self, room: int) -> bool:
        """Whether they take more than ``room`` bytes, as far as is known, and thinning may change that."""
        return self._bytes > room and not self._in_vain

    async def waiting(self) -> Waiting:
        """What waits."""
        waiting: Waiting = await self._within(waiting_now)
        return waiting

    async def oldest(self, limit: int, now: float) -> Oldest:
        """The first of about ``limit`` bytes, without a gap in their numbers."""
        found: Oldest = await self._within(oldest, limit, now)
        self._note(found.waiting)
        return found

    async def shipped(self, number: int, now: float) -> Waiting | None:
        """Forgets what the hub has committed, up to ``number``; what still waits.

        None if no such number was ever given: this table is older than what the hub knows of it, restored from a copy.
        It then lives on under a new epoch, and nothing is forgotten.
        """
        waiting: Waiting | None = await self._within(shipped, number, now)
        if waiting is not None:
            self._note(waiting)
        return waiting

    async def give_up_unreadable(self, rows: Sequence[Row]) -> int:
        """Forgets, and counts as left out, those of ``rows`` that no hub can read, as a bad disk may leave them."""
        numbers = [(number,) for number, _, extracts in rows if not is_whole(extracts)]
        await self._within(give_up, numbers)
        self._left_out["shipment"] += len(numbers)
        return len(numbers)

    async def thin(self, room: int) -> int:
        """Leaves samples, not events, out of the oldest where all take more than ``room`` bytes; how many."""
        total = 0
        waiting = await self._within(waiting_now)
        self._in_vain = False
        if waiting.bytes > room:
            goal = room - room // _SPARE
            while (count := await self._within(thin, goal)) is not None:
                total += count
            waiting = await self._within(waiting_now)
            self._in_vain = waiting.bytes > goal
        self._bytes = waiting.bytes
        return total

    def _note(self, waiting: Waiting) -> None:
        self._in_vain = self._in_vain and waiting.bytes >= self._bytes
        self._bytes = waiting.bytes


def put(sql: sqlite3.Connection, extracts: Sequence[Extract], now: float) -> int:
    """Adds shipments, inside the caller's transaction; their bytes."""
    size = 0
    for packed in pack_extracts(extracts):
        sql.execute("INSERT INTO shipment (created_at, samples, thinned, extracts) VALUES (?, ?, ?, ?)", (now, *packed))
        size += len(packed.extracts)
    return size


def oldest(sql: sqlite3.Connection, limit: int, now: float) -> Oldest:
    """See `Shipments.oldest`."""
    sql.execute("INSERT INTO shipping (epoch) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM shipping)", (_epoch(now),))
    (epoch,) = sql.execute("SELECT epoch FROM shipping").fetchone()
    rows: list[Row] = []
    for row in sql.execute("SELECT number, thinned, extracts FROM shipment ORDER BY number LIMIT ?", (MOST_SHIPMENTS,)):
        limit -= len(row[2])
        if rows and (limit < 0 or row[0] != rows[-1][0] + 1):
            break
        rows.append(row)
    return Oldest(epoch, rows[0][0] if rows else _last(sql) + 1, rows, waiting_now(sql))


def shipped(sql: sqlite3.Connection, number: int, now: float) -> Waiting | None:
    """See `Shipments.shipped`."""
    if number > _last(sql):
        sql.execute("UPDATE shipping SET epoch = max(epoch + 1, ?)", (_epoch(now),))
        return None
    sql.execute("DELETE FROM shipment WHERE number <= ?", (number,))
    return waiting_now(sql)


def give_up(sql: sqlite3.Connection, numbers: Sequence[tuple[int]]) -> None:
    """Forgets some shipments, in the middle too: the hub counts them as lost."""
    sql.executemany("DELETE FROM shipment WHERE number = ?", numbers)


def waiting_now(sql: sqlite3.Connection) -> Waiting:
    """What waits."""
    return Waiting(
        *sql.execute(
            "SELECT count(*), coalesce(sum(length(extracts)), 0), coalesce(min(created_at), 0.0) FROM shipment"
        ).fetchone()
    )


def thin(sql: sqlite3.Connection, goal: int) -> int | None:
    """Leaves samples out of a few of the oldest while all take over ``goal`` bytes; how many, None: nothing is left."""
    excess = waiting_now(sql).bytes - goal
    left, left_out, looked_at = _THIN_BYTES, 0, False
    for number, samples, extracts in sql.execute(
        "SELECT number, samples, extracts FROM shipment WHERE samples > 0 ORDER BY number LIMIT ?", (_THIN_AT_ONCE,)
    ).fetchall():
        if excess <= 0 or left <= 0:
            break
        looked_at = True
        left -= len(extracts)
        try:
            rest = thinned(extracts)
        except (ValueError, TypeError, KeyError, AttributeError):  # damaged: it is given up when the hub refuses it
            sql.execute("UPDATE shipment SET samples = 0 WHERE number = ?", (number,))
            continue
        sql.execute(
            "UPDATE shipment SET samples = 0, thinned = thinned + ?, extracts = ? WHERE number = ?",
            (samples, rest, number),
        )
        excess -= len(extracts) - len(rest)
        left_out += samples
    return left_out if looked_at else None


def _epoch(now: float) -> int:
    return max(1, round(now * 1000))


def _last(sql: sqlite3.Connection) -> int:
    """The last number that was given: a damaged row may have a higher one than was noted."""
    noted = "SELECT coalesce(max(CAST(seq AS INTEGER)), 0) FROM sqlite_sequence WHERE name = 'shipment'"
    highest = "SELECT coalesce(max(number), 0) FROM shipment"
    return max(int(sql.execute(query).fetchone()[0]) for query in (noted, highest))
