"""The table of shipments: what an agent has read and its hub has not yet committed.

Each is one commit's extracts.  Numbers grow by one and are never given twice; the epoch names the life of the table, so
that a hub can tell a new one, whose numbers begin anew, from a gap.

Where the shipments take more than they may, samples go, of the oldest first, and are counted; events never do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from verlwatch.core.types import Extract, Samples
from verlwatch.shell.fleet.wire import pack_extracts, thinned

Row = tuple[int, int, bytes]
"""Number, samples left out for want of room, packed extracts."""

_THIN_AT_ONCE = 200


def put(sql: sqlite3.Connection, extracts: Sequence[Extract], now: float) -> None:
    """Adds a shipment, inside the caller's transaction."""
    if extracts:
        samples = sum(isinstance(record, Samples) for extract in extracts for record in extract.records)
        sql.execute(
            "INSERT INTO shipment (created_at, samples, extracts) VALUES (?, ?, ?)",
            (now, samples, pack_extracts(extracts)),
        )


def oldest(sql: sqlite3.Connection, limit: int, now: float) -> tuple[int, int, list[Row]]:
    """The epoch, the number of the oldest shipment or of the next one, and of the oldest about ``limit`` bytes."""
    sql.execute(
        "INSERT INTO shipping (epoch) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM shipping)", (max(1, round(now * 1000)),)
    )
    (epoch,) = sql.execute("SELECT epoch FROM shipping").fetchone()
    rows: list[Row] = []
    for row in sql.execute("SELECT number, thinned, extracts FROM shipment ORDER BY number"):
        limit -= len(row[2])
        if rows and limit < 0:
            break
        rows.append(row)
    if rows:
        return epoch, rows[0][0], rows
    (last,) = sql.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'shipment'").fetchone()
    return epoch, last + 1, []


def shipped(sql: sqlite3.Connection, number: int) -> None:
    """Forgets what the hub has committed: everything up to ``number``."""
    sql.execute("DELETE FROM shipment WHERE number <= ?", (number,))


def waiting(sql: sqlite3.Connection) -> tuple[int, float]:
    """How many shipments wait, and since when the oldest does."""
    count, since = sql.execute("SELECT count(*), coalesce(min(created_at), 0) FROM shipment").fetchone()
    return count, since


def thin(sql: sqlite3.Connection, room: int) -> int:
    """One slice of leaving samples out of the oldest shipments while all take over ``room`` bytes; how many."""
    (total,) = sql.execute("SELECT coalesce(sum(length(extracts)), 0) FROM shipment").fetchone()
    left_out = 0
    for number, samples, extracts in sql.execute(
        "SELECT number, samples, extracts FROM shipment WHERE samples > 0 ORDER BY number LIMIT ?", (_THIN_AT_ONCE,)
    ).fetchall():
        if total <= room:
            break
        rest = thinned(extracts)
        sql.execute(
            "UPDATE shipment SET samples = 0, thinned = thinned + ?, extracts = ? WHERE number = ?",
            (samples, rest, number),
        )
        total -= len(extracts) - len(rest)
        left_out += samples
    return left_out
