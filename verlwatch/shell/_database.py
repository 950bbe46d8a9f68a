"""The SQL, all of it, synchronous: what `Store` runs in its one thread.

Every method leaves either all of what it does or nothing.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any, TypeVar

from verlwatch.core.types import Cursor, Outcome, Snapshot, State, StepRow, Transition
from verlwatch.shell import _gpu_samples, _outbox, _room, _rows, _shipments

T = TypeVar("T")

_DAY_S = 86_400.0
_PRUNE_BYTES = 2 << 20
_VACUUM_PAGES = 1000


class Database:
    """One open connection to the database at ``path``."""

    def __init__(self, connection: sqlite3.Connection, path: Path, left_out: Counter[str]) -> None:
        self.left_out = left_out
        """By table, how many rows could not be read."""
        self._sql = connection
        self._path = path

    def close(self) -> None:
        """Checkpoints and closes."""
        self._sql.close()

    def copy_to(self, path: Path) -> None:
        """Writes all of it to a new file, also where its own file has been deleted under the open connection."""
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            self._sql.execute("VACUUM INTO ?", (str(path),))
            os.fsync(descriptor)  # SQLite does not
        finally:
            os.close(descriptor)

    def move_to(self, connection: sqlite3.Connection) -> None:
        """Goes on with another connection."""
        old, self._sql = self._sql, connection
        old.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._sql.execute("COMMIT")
        except BaseException:
            if self._sql.in_transaction:  # SQLite itself rolls back where the disk is full
                self._sql.execute("ROLLBACK")
            raise

    # ------------------------------------------------------------------------------------------------ core
    def commit(self, outcome: Outcome, now: float) -> int:
        """See `Store.commit`; how many bytes of shipments were added."""
        with self._transaction():
            for cursor in outcome.cursors:
                self._put_cursor(cursor, now)
            for row in outcome.steps:
                self._put_step(row)
            for state in outcome.states:
                self._put_state(state)
            _gpu_samples.put(self._sql, outcome.gpus)
            self._sql.executemany(
                "INSERT INTO transition (at, data) VALUES (?, ?)",
                [(now, _rows.pack_record(transition)) for transition in outcome.transitions],
            )
            for notification in outcome.notifications:
                _outbox.put(self._sql, notification, now)
            return _shipments.put(self._sql, outcome.extracts, now)

    def within(self, call: Callable[..., T], *args: Any) -> T:
        """Calls a function that takes the connection first, in a transaction."""
        with self._transaction():
            return call(self._sql, *args)

    def _put_cursor(self, cursor: Cursor, now: float) -> None:
        self._sql.execute(
            "INSERT OR REPLACE INTO cursor"
            " (source, generation, reread_from, applied_to, mark, token, history_to, context, seen_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*astuple(cursor), now),
        )

    def _put_step(self, row: StepRow) -> None:
        """Adds a step, or to a step already there the keys it lacks."""
        key = (row.run, row.attempt, row.step)
        added = self._sql.execute(
            "INSERT INTO step (run, attempt, step, at, data) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (run, attempt, step) DO NOTHING",
            (*key, row.at, _rows.pack_values(row.values)),
        )
        if added.rowcount:
            return
        stored = self._one("SELECT data FROM step WHERE run = ? AND attempt = ? AND step = ?", *key)
        known: dict[str, float] = {}
        for old in self._readable("step", _rows.step_row, [("", *key, row.at, stored)]):
            known.update(old.values)
        if row.values.keys() - known.keys():
            blob = _rows.pack_values({**row.values, **known})
            self._sql.execute("UPDATE step SET data = ? WHERE run = ? AND attempt = ? AND step = ?", (blob, *key))

    def _put_state(self, state: State) -> None:
        if state.data is None:
            self._sql.execute("DELETE FROM state WHERE kind = ? AND key = ?", (state.kind, state.key))
            return
        self._sql.execute(
            "INSERT OR REPLACE INTO state (kind, key, version, data) VALUES (?, ?, ?, ?)",
            (state.kind, state.key, state.version, _rows.pack(state.data)),
        )

    def load(self, steps_per_attempt: int, attempts: int, prefix: str) -> Snapshot:
        """See `Store.load`."""
        cursors = self._sql.execute(
            "SELECT source, generation, reread_from, applied_to, mark, token, history_to, context"
            " FROM cursor ORDER BY source"
        )
        states = self._sql.execute("SELECT kind, key, version, data FROM state ORDER BY kind, key")
        steps: list[StepRow] = []
        for run, number in self._attempts(attempts):
            steps += self.steps(run, number, steps_per_attempt, prefix)
        return Snapshot(
            tuple(Cursor(*row) for row in cursors),
            tuple(_rows.state(*row) for row in states),
            tuple(steps),
        )

    def _attempts(self, latest: int) -> list[tuple[str, int]]:
        """The ``latest`` attempts of each run, in order."""
        by_run: dict[str, list[int]] = {}
        for run, attempt in self._sql.execute("SELECT DISTINCT run, attempt FROM step ORDER BY run, attempt"):
            by_run.setdefault(run, []).append(attempt)
        return [(run, attempt) for run, known in by_run.items() for attempt in known[-latest:]]

    # ------------------------------------------------------------------------------------------------ history
    def steps(self, run: str, attempt: int | None, last: int, prefix: str = "") -> list[StepRow]:
        """See `Store.steps`."""
        if attempt is None:
            attempt = self._one("SELECT max(attempt) FROM step WHERE run = ?", run)
        rows = self._sql.execute(
            "SELECT run, attempt, step, at, data FROM step WHERE run = ? AND attempt = ? ORDER BY step DESC LIMIT ?",
            (run, attempt, last),
        ).fetchall()
        return list(self._readable("step", _rows.step_row, ((prefix, *row) for row in reversed(rows))))

    def transitions(self, limit: int) -> list[tuple[float, Transition]]:
        """See `Store.transitions`."""
        rows = self._sql.execute("SELECT at, data FROM transition ORDER BY id DESC LIMIT ?", (limit,)).fetchall()
        return list(self._readable("transition", _rows.dated_transition, reversed(rows)))

    def _readable(self, table: str, read: Callable[..., T], rows: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """What ``read`` makes of the rows; those that it cannot read are counted."""
        for row in rows:
            try:
                yield read(*row)
            except _rows.UNREADABLE:
                self.left_out[table] += 1

    # ------------------------------------------------------------------------------------------------ size
    def saw(self, sources: Collection[str], now: float) -> None:
        """Notes, to the day, that these sources exist."""
        query = "UPDATE cursor SET seen_at = ? WHERE source = ? AND seen_at NOT BETWEEN ? AND ?"
        with self._transaction():
            self._sql.executemany(query, [(now, source, now - _DAY_S, now) for source in sources])

    def forget(self, before: float) -> bool:
        """One bounded slice of what is older than ``before``; whether there may be more."""
        with self._transaction():
            deleted = _room.expire(self._sql, before)
        if deleted:
            self._give_back_free_pages()
        return deleted

    def thin(self, before: float) -> bool:
        """One bounded slice of samples of GPUs from before ``before``; whether there may be more."""
        with self._transaction():
            return _gpu_samples.thin(self._sql, before)

    def shrink(self, goal: int) -> bool:
        """One bounded slice of the way to a file of ``goal`` bytes and an empty write-ahead log; whether to go on."""
        size = self._bytes("page_count")
        with self._transaction():
            deleted = _room.forget_oldest(self._sql, min(size - self._bytes("freelist_count") - goal, _PRUNE_BYTES))
        self._give_back_free_pages()
        if goal < self._bytes("page_count") and (deleted or self._bytes("page_count") < size):
            return True
        self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return False

    def _bytes(self, pages: str) -> int:
        return int(self._one(f"PRAGMA {pages}") * self._one("PRAGMA page_size"))

    def on_disk(self) -> int:
        """Bytes of the file and its write-ahead log."""
        files = (self._path, self._path.with_name(self._path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def _give_back_free_pages(self) -> None:
        # A pragma without result rows frees one page a step, and `execute` steps once.
        self._sql.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")

    def _one(self, query: str, *arguments: Any) -> Any:
        return self._sql.execute(query, arguments).fetchone()[0]
