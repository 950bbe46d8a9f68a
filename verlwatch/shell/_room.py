"""What a database forgets to keep within its room: by age, and the oldest steps by size; inside a transaction."""

from __future__ import annotations

import sqlite3

LAST_STEPS = 32
"""So many last steps of each run's latest attempt stay whatever the size: a second log may yet tell them again."""

_BATCH = 200
_EXPIRED = (
    "DELETE FROM step WHERE rowid IN (SELECT rowid FROM step WHERE at < ? ORDER BY at LIMIT ?)",
    "DELETE FROM transition WHERE id IN (SELECT id FROM transition WHERE at < ? ORDER BY id LIMIT ?)",
    "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE finished_at < ? ORDER BY finished_at LIMIT ?)",
    "DELETE FROM cursor WHERE rowid IN (SELECT rowid FROM cursor WHERE seen_at < ? LIMIT ?)",
    "DELETE FROM place WHERE rowid IN (SELECT rowid FROM place WHERE at < ? - 7776000 ORDER BY at LIMIT ?)",  # 90 days
)
_OLDEST = f"""
    SELECT rowid, length(data) FROM step AS old
    WHERE attempt < (SELECT max(attempt) FROM step WHERE run = old.run)
    OR step <= (SELECT max(step) FROM step WHERE run = old.run AND attempt = old.attempt) - {LAST_STEPS}
    ORDER BY at LIMIT {_BATCH}
"""  # noqa: S608 - a number of our own


def expire(sql: sqlite3.Connection, before: float) -> bool:
    """One bounded slice of what is older than ``before``; whether there was any."""
    deleted = [sql.execute(statement, (before, _BATCH)).rowcount for statement in _EXPIRED]
    return any(deleted)


def forget_oldest(sql: sqlite3.Connection, excess: int) -> int:
    """Forgets at most ``excess`` bytes of the oldest steps and one step more; how many."""
    rows: list[tuple[int]] = []
    for row, length in sql.execute(_OLDEST).fetchall():
        if excess <= 0:
            break
        rows.append((row,))
        excess -= length
    sql.executemany("DELETE FROM step WHERE rowid = ?", rows)
    return len(rows)
