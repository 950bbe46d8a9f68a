"""The outbox: messages for receivers, from the commit that decided them until they are taken or given up.

A row is ``pending`` until the receiver has said yes (``done``) or a final no (``dead``, a dead letter), a person has
dropped it (``dropped``), or another row tells of it too (``merged``; ``part_of`` is that row): a digest of several
incidents, or the newest state of its own.

Of each incident only the oldest pending row may be sent, and none while a digest that tells of the incident is pending:
messages of one incident never overtake each other.  ``attempts`` counts the sends that were begun, so that whoever
finds the row after a crash knows whether the receiver may have it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from verlwatch.core.types import Message, Notification
from verlwatch.shell import _rows
from verlwatch.shell._rows import Letter, OutboxRow, OutboxStats

LONGEST_DELAY_S = 86_400.0
"""No row waits longer than this; a later due time was written by a clock that was wrong, and counts as due."""
MOST_MERGED = 1000
"""So many rows are told by one message at most."""
MOST_LISTED = 1000

Within = Callable[..., Awaitable[Any]]
"""Runs a function that takes the connection first, in a transaction, with the arguments behind it."""

_COLUMNS = "id, dedup_key, incident, receiver, reason, message, created_at, due_at, attempts"
_TOLD_BY_ANOTHER = """
    EXISTS (SELECT 1 FROM outbox AS part JOIN outbox AS whole ON whole.id = part.part_of
        WHERE part.receiver = row.receiver AND part.incident = row.incident AND part.part_of IS NOT NULL
        AND whole.status = 'pending' AND whole.id != row.id)
"""
_READY = f"""
    FROM outbox AS row WHERE receiver = :receiver AND status = 'pending' AND NOT {_TOLD_BY_ANOTHER}
    AND NOT EXISTS (
        SELECT 1 FROM outbox AS older WHERE older.receiver = row.receiver AND older.incident = row.incident
        AND older.status = 'pending' AND older.id < row.id)
"""  # noqa: S608 - our own words
_DUE = f"""
    SELECT {_COLUMNS} {_READY} AND (attempts = 0 OR due_at <= :now OR due_at > :now + {LONGEST_DELAY_S})
    ORDER BY id LIMIT :limit
"""
_UNTRIED = f"""
    SELECT {_COLUMNS} FROM outbox AS row WHERE receiver = ? AND status = 'pending' AND attempts = 0
    AND NOT {_TOLD_BY_ANOTHER} AND NOT EXISTS (SELECT 1 FROM outbox AS part WHERE part.part_of = row.id)
    AND NOT EXISTS (
        SELECT 1 FROM outbox AS older WHERE older.receiver = row.receiver AND older.incident = row.incident
        AND older.status = 'pending' AND older.attempts > 0 AND older.id < row.id)
    ORDER BY id LIMIT {MOST_MERGED}
"""  # noqa: S608 - the same
_SUPERSEDED = """
    EXISTS (SELECT 1 FROM outbox AS newer LEFT JOIN outbox AS whole ON whole.id = newer.part_of
        WHERE newer.receiver = row.receiver AND newer.incident = row.incident AND newer.id > row.id
        AND (newer.status = 'done' OR whole.status = 'done'))
"""


class Retried(NamedTuple):
    """What became of dead letters that are to be sent again, by row id.

    ``superseded``: the receiver has taken a newer message of the incident, and an older one would tell what is over.
    ``removed``: of a receiver that is not configured, by its name.  ``unknown``: no dead letter.
    """

    retried: tuple[int, ...]
    superseded: tuple[int, ...]
    removed: dict[str, tuple[int, ...]]
    unknown: tuple[int, ...]


class Outbox:
    """The table, for those who wait for it; raises as `Store` does."""

    def __init__(self, within: Within, left_out: Counter[str]) -> None:
        self._within = within
        self._left_out = left_out

    # ------------------------------------------------------------------------------------------------ to send
    async def due(self, receiver: str, now: float, limit: int) -> list[OutboxRow]:
        """Rows to send now, oldest first; one of an incident only when all its older ones are finished."""
        while True:
            rows, unreadable = _readable(await self._within(_select, _DUE, _wanted(receiver, now, limit)))
            if not unreadable:
                return rows
            for row_id in unreadable:  # what waited for it is due now
                await self._within(_give_up_unreadable, row_id, now)
                self._left_out["outbox"] += 1

    async def next_due(self, receiver: str) -> float | None:
        """When the next row falls due; None if there is none."""
        ((due_at,),) = await self._within(_select, f"SELECT min(due_at) {_READY}", {"receiver": receiver})
        return None if due_at is None else float(due_at)

    async def hold(self, receiver: str) -> float:
        """Until when a receiver that failed wants no message at all (epoch seconds; 0 if none has failed)."""
        query = "SELECT max(due_at) FROM outbox WHERE receiver = ? AND status = 'pending' AND attempts > 0"
        ((until,),) = await self._within(_select, query, (receiver,))
        return float(until or 0.0)

    async def sent(self, receiver: str, since: float, limit: int) -> list[float]:
        """When the receiver last answered, newest first, at most ``limit`` times."""
        query = (
            "SELECT finished_at FROM outbox WHERE receiver = ? AND status IN ('done', 'dead')"
            " AND finished_at > ? ORDER BY finished_at DESC LIMIT ?"
        )
        return [at for (at,) in await self._within(_select, query, (receiver, since, limit))]

    async def begin(self, row_id: int) -> None:
        """The row is being sent: from now on the receiver may have it."""
        await self._within(_update, "UPDATE outbox SET attempts = attempts + 1 WHERE id = ?", (row_id,))

    async def done(self, row_id: int, now: float) -> None:
        """The receiver has said yes."""
        await self._within(_finish, row_id, "done", "", now)

    async def retry(self, row_id: int, at: float, error: str) -> None:
        """The receiver failed; the row falls due again at ``at``."""
        await self._within(_update, "UPDATE outbox SET due_at = ?, error = ? WHERE id = ?", (at, error, row_id))

    async def dead(self, row_id: int, now: float, error: str) -> None:
        """The receiver has said no for good: the row is kept as a dead letter."""
        await self._within(_finish, row_id, "dead", error, now)

    async def bring_forward(self, receiver: str, seconds: float) -> None:
        """Every pending row falls due so much earlier."""
        query = "UPDATE outbox SET due_at = max(0.0, due_at - ?) WHERE receiver = ? AND status = 'pending'"
        await self._within(_update, query, (seconds, receiver))

    # ------------------------------------------------------------------------------------------------ to merge
    async def untried(self, receiver: str) -> list[OutboxRow]:
        """Rows that the receiver cannot have yet, oldest first, as far as none of their incident was tried before."""
        return _readable(await self._within(_select, _UNTRIED, (receiver,)))[0]

    async def of_incident(self, row: OutboxRow) -> list[OutboxRow]:
        """The row and those of its incident that wait behind it, oldest first."""
        query = (
            f"SELECT {_COLUMNS} FROM outbox WHERE receiver = ? AND incident = ? AND status = 'pending' AND id >= ?"  # noqa: S608
            f" ORDER BY id LIMIT {MOST_MERGED}"
        )
        return _readable(await self._within(_select, query, (row.receiver, row.incident, row.id)))[0]

    async def merge(self, parts: Sequence[OutboxRow], notification: Notification, now: float) -> OutboxRow:
        """Puts one row in the place of several, in one transaction."""
        merged: OutboxRow = await self._within(_merge, parts, notification, now)
        return merged

    # ------------------------------------------------------------------------------------------------ for people
    async def stats(self) -> dict[str, OutboxStats]:
        """Counts by receiver, of those that have rows."""
        counted: dict[str, OutboxStats] = await self._within(_stats)
        return counted

    async def letters(self) -> list[Letter]:
        """What is pending or given up, oldest first, at most MOST_LISTED."""
        query = (
            f"SELECT {_COLUMNS}, status, error FROM outbox WHERE status IN ('dead', 'pending')"  # noqa: S608
            f" ORDER BY id LIMIT {MOST_LISTED}"
        )
        return [_letter(*row) for row in await self._within(_select, query, ())]

    async def revive(self, ids: Collection[int] | None, receivers: Collection[str], now: float) -> Retried:
        """Makes dead letters of these receivers pending again (None: all)."""
        retried: Retried = await self._within(_revive, ids, receivers, now)
        return retried

    async def drop(self, row_id: int, now: float) -> bool:
        """Lets go of a row that is pending or dead; whether there was one."""
        query = "UPDATE outbox SET status = 'dropped', finished_at = ? WHERE id = ? AND status IN ('dead', 'pending')"
        return bool(await self._within(_update, query, (now, row_id)))

    async def drop_dead(self, receiver: str | None, now: float) -> list[int]:
        """Lets go of all dead letters, or of one receiver's; their row ids."""
        query = (
            "UPDATE outbox SET status = 'dropped', finished_at = :now WHERE status = 'dead'"
            " AND (:receiver IS NULL OR receiver = :receiver) RETURNING id"
        )
        rows = await self._within(_select, query, {"now": now, "receiver": receiver})
        return sorted(row_id for (row_id,) in rows)

    async def drop_receivers(self, in_force: Collection[str], now: float) -> int:
        """Makes dead letters of the pending rows of all other receivers; how many."""
        count: int = await self._within(_drop_receivers, in_force, now)
        return count


def put(sql: sqlite3.Connection, notification: Notification, now: float, created_at: float | None = None) -> int:
    """Adds a row, inside the caller's transaction, unless there is one of this id; how many were added."""
    return sql.execute(
        "INSERT INTO outbox (dedup_key, receiver, incident, reason, message, created_at, due_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (dedup_key, receiver) DO NOTHING",
        (
            notification.dedup_key,
            notification.receiver,
            notification.incident,
            notification.reason,
            _rows.pack_record(notification.message),
            now if created_at is None else created_at,
            now,
        ),
    ).rowcount


def _wanted(receiver: str, now: float, limit: int) -> dict[str, Any]:
    return {"receiver": receiver, "now": now, "limit": limit}


def _select(sql: sqlite3.Connection, query: str, arguments: Any) -> list[tuple[Any, ...]]:
    return sql.execute(query, arguments).fetchall()


def _update(sql: sqlite3.Connection, query: str, arguments: tuple[Any, ...]) -> int:
    return sql.execute(query, arguments).rowcount


def _finish(sql: sqlite3.Connection, row_id: int, status: str, error: str, now: float) -> None:
    query = "UPDATE outbox SET status = ?, error = ?, finished_at = ? WHERE id = ?"
    sql.execute(query, (status, error, now, row_id))


def _give_up_unreadable(sql: sqlite3.Connection, row_id: int, now: float) -> None:
    """Makes a dead letter of it; what it was to tell of others is told by them."""
    _finish(sql, row_id, "dead", "its message in the database cannot be read", now)
    query = "UPDATE outbox SET status = 'pending', finished_at = NULL, part_of = NULL WHERE part_of = ?"
    sql.execute(query, (row_id,))


def _readable(rows: Iterable[tuple[Any, ...]]) -> tuple[list[OutboxRow], list[int]]:
    """The rows, and the ids of those whose message cannot be read."""
    read: list[OutboxRow] = []
    unreadable: list[int] = []
    for row_id, key, incident, name, reason, blob, *times in rows:
        try:
            read.append(OutboxRow(row_id, key, incident, name, reason, _rows.message(blob), *times))
        except _rows.UNREADABLE:
            unreadable.append(row_id)
    return read, unreadable


def _letter(row_id: int, key: str, incident: str, receiver: str, reason: str, blob: bytes, *rest: Any) -> Letter:
    try:
        message: Message | None = _rows.message(blob)
    except _rows.UNREADABLE:
        message = None
    created_at, due_at, attempts, status, error = rest
    return Letter(
        id=row_id,
        dedup_key=key,
        incident=incident,
        receiver=receiver,
        reason=reason,
        status=status,
        created_at=created_at,
        due_at=due_at if status == "pending" else None,
        attempts=attempts,
        error=error,
        title=message.title if message else "",
    )


def _merge(sql: sqlite3.Connection, parts: Sequence[OutboxRow], notification: Notification, now: float) -> OutboxRow:
    created_at = min(part.created_at for part in parts)
    put(sql, notification, now, created_at)
    ((whole, due_at),) = sql.execute(
        "SELECT id, due_at FROM outbox WHERE dedup_key = ? AND receiver = ?",
        (notification.dedup_key, notification.receiver),
    )
    sql.executemany(
        "UPDATE outbox SET status = 'merged', part_of = ?, finished_at = ? WHERE id = ? AND status = 'pending'",
        [(whole, now, part.id) for part in parts],
    )
    n = notification
    return OutboxRow(whole, n.dedup_key, n.incident, n.receiver, n.reason, n.message, created_at, due_at, 0)


def _stats(sql: sqlite3.Connection) -> dict[str, OutboxStats]:
    counts: dict[str, Counter[str]] = {}
    oldest: dict[str, float] = {}
    for receiver, status, count, first in sql.execute(
        "SELECT receiver, status, count(*), min(created_at) FROM outbox GROUP BY receiver, status"
    ):
        counts.setdefault(receiver, Counter())[status] = count
        if status == "pending":
            oldest[receiver] = first
    errors = dict(
        sql.execute(
            "SELECT receiver, error FROM (SELECT receiver, error, max(id) FROM outbox"
            " WHERE error != '' AND status IN ('dead', 'pending') GROUP BY receiver)"
        ).fetchall()
    )
    return {
        name: OutboxStats(found["pending"], found["done"], found["dead"], oldest.get(name), errors.get(name))
        for name, found in counts.items()
    }


def _revive(sql: sqlite3.Connection, ids: Collection[int] | None, receivers: Collection[str], now: float) -> Retried:
    dead = sql.execute(f"SELECT id, receiver, {_SUPERSEDED} FROM outbox AS row WHERE status = 'dead'").fetchall()  # noqa: S608
    letters = {row_id: superseded for row_id, receiver, superseded in dead if receiver in receivers}
    strays = {row_id: receiver for row_id, receiver, _ in dead if receiver not in receivers}
    asked = sorted({*letters, *strays} if ids is None else set(ids))
    removed: dict[str, tuple[int, ...]] = {}
    for row_id in asked:
        if name := strays.get(row_id):
            removed[name] = (*removed.get(name, ()), row_id)
    retried = tuple(row_id for row_id in asked if letters.get(row_id) == 0)
    sql.executemany(
        "UPDATE outbox SET status = 'pending', attempts = 0, due_at = ?, error = '', finished_at = NULL WHERE id = ?",
        [(now, row_id) for row_id in retried],
    )
    superseded = tuple(row_id for row_id in asked if letters.get(row_id) == 1)
    unknown = tuple(row_id for row_id in asked if row_id not in letters and row_id not in strays)
    return Retried(retried, superseded, removed, unknown)


def _drop_receivers(sql: sqlite3.Connection, in_force: Collection[str], now: float) -> int:
    names = [name for (name,) in sql.execute("SELECT DISTINCT receiver FROM outbox WHERE status = 'pending'")]
    return sum(
        sql.execute(
            "UPDATE outbox SET status = 'dead', error = 'the receiver is no longer configured',"
            " finished_at = ? WHERE receiver = ? AND status = 'pending'",
            (now, name),
        ).rowcount
        for name in names
        if name not in in_force
    )
