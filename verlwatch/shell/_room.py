"""What a database forgets to keep within its room: by age, and by size samples of GPUs and steps; in a transaction."""

from __future__ import annotations

import sqlite3

from verlwatch.shell import _gpu_samples

LAST_STEPS = 32
"""So many last steps of each run's latest attempt stay whatever the size: a second log may yet tell them again."""

_BATCH, _SAMPLES = 200, 2000
_EXPIRED = (
    "DELETE FROM step WHERE rowid IN (SELECT rowid FROM step WHERE at < ? ORDER BY at LIMIT ?)",
    "DELETE FROM transition WHERE id IN (SELECT id FROM transition WHERE at < ? ORDER BY id LIMIT ?)",
    "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE finished_at < ? ORDER BY finished_at LIMIT ?)",
    "DELETE FROM cursor WHERE rowid IN (SELECT rowid FROM cursor WHERE seen_at < ? LIMIT ?)",
    "DELETE FROM gpu_sample WHERE (cards, at) IN (SELECT cards, at FROM gpu_sample WHERE at < ? ORDER BY at LIMIT ?)",
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
    sql.execute(_gpu_samples.UNUSED)
    return any(deleted)


def forget_oldest(sql: sqlite3.Connection, excess: int) -> int:
    """Forgets at most ``excess`` bytes of the oldest samples or, where there are none, steps, and one more.

    Whether any went: 0 means that nothing is left that may.
    """
    if gone := _gpu_samples.forget_oldest(sql, excess, _SAMPLES):
        return gone
    rows: list[tuple[int]] = []
    for row, length in sql.execute(_OLDEST).fetchall():
        if excess <= 0:
            break
        rows.append((row,))
        excess -= length
    sql.executemany("DELETE FROM step WHERE rowid = ?", rows)
    return len(rows)
