"""What survives a restart: positions, state, values of steps and the outbox, in one SQLite database.

One thread owns the connection, so that a slow disk delays those who wait for a commit and nobody else.  Write-ahead
log with ``synchronous = NORMAL``: a process that is killed loses nothing it was told is committed; a power cut may
take the last commits as a whole, and then the log is read again from the position they had replaced.

    state directory ─ lock        held by the process that runs; its pid and the URL of its status page
                    ─ state.db    schema.sql
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from verlwatch.core.types import Outcome, Snapshot, StepRow, Transition
from verlwatch.shell import _migrations, state_dir
from verlwatch.shell._database import LONGEST_DELAY_S, Database, OutboxStats
from verlwatch.shell._migrations import StateTooNew
from verlwatch.shell._rows import OutboxRow
from verlwatch.shell.state_dir import StateDirError, StateDirInUse

__all__ = [
    "LONGEST_DELAY_S",
    "OutboxRow",
    "OutboxStats",
    "StateDirError",
    "StateDirInUse",
    "StateTooNew",
    "Store",
    "StoreDamaged",
    "StoreUnavailable",
]

P = ParamSpec("P")
T = TypeVar("T")

_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
    }
)
_PRUNE_BATCHES = 200


class StoreUnavailable(Exception):  # noqa: N818 - a state of the disk that passes, to be waited out
    """The disk refused (full, failing, busy).  Nothing of the call was done: try the same again later."""


class StoreDamaged(Exception):  # noqa: N818 - the same, but it does not pass
    """The database is damaged.  The next start sets it aside and begins a new one."""


class Store:
    """The database of one state directory, held exclusively while open.

    Every method may raise StoreUnavailable, after which nothing has changed, or StoreDamaged.
    """

    def __init__(self, path: Path, database: Database, thread: ThreadPoolExecutor, lock: int) -> None:
        self.path = path
        self.set_aside: Path | None = None
        """Where a damaged database was put when this one was made anew."""
        self.error: str | None = None
        """Why the last call failed; None while calls succeed."""
        self._database = database
        self._thread = thread
        self._lock = lock

    @classmethod
    async def open(cls, folder: Path) -> Store:
        """Locks the directory and opens its database, made or brought forward as needed.

        Raises StateDirError (network file system, not writable, not ours, no space), StateDirInUse or StateTooNew.
        """
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, cls._open, folder, thread)
        except BaseException:
            thread.shutdown(wait=False)
            raise

    @classmethod
    def _open(cls, folder: Path, thread: ThreadPoolExecutor) -> Store:
        state_dir.prepare(folder)
        lock = state_dir.lock(folder)
        path = folder / "state.db"
        try:
            connection, set_aside = _migrations.open_database(path)
        except BaseException as error:
            os.close(lock)
            if isinstance(error, sqlite3.OperationalError | OSError):
                raise StateDirError(
                    f"{path} cannot be opened ({error}); make it writable and see that the disk has space, "
                    "or give another --state-dir"
                ) from error
            raise
        store = cls(path, Database(connection), thread, lock)
        store.set_aside = set_aside
        return store

    async def close(self) -> None:
        """Finishes what was asked for, closes the database and lets go of the directory."""
        try:
            await self._call(self._database.close)
        finally:
            self._thread.shutdown(wait=False)
            os.close(self._lock)

    def announce(self, url: str) -> None:
        """Notes where this process serves its status, for `state_dir.served_url`."""
        state_dir.announce(self._lock, url)

    # ------------------------------------------------------------------------------------------------ core
    async def load(self, steps_per_attempt: int = 2048, *, attempts: int = 2, prefix: str = "") -> Snapshot:
        """The inverse of all commits: every cursor and state, and the last steps of each run's latest ``attempts``.

        ``prefix`` keeps only the values whose names begin with it: all values of many runs take much memory.
        """
        return await self._call(self._database.load, steps_per_attempt, attempts, prefix)

    async def commit(self, outcome: Outcome, now: float) -> None:
        """Writes everything of ``outcome`` or nothing, in one transaction.

        Values already stored for a step win over new ones; a notification already in the outbox stays as it is.
        """
        await self._call(self._database.commit, outcome, now)

    # ------------------------------------------------------------------------------------------------ outbox
    async def due(self, receiver: str, now: float, limit: int) -> list[OutboxRow]:
        """Rows to send now, oldest first; one of an incident only when all its older ones are finished."""
        return await self._call(self._database.due, receiver, now, limit)

    async def next_due(self, receiver: str) -> float | None:
        """When the next row falls due; None if there is none."""
        return await self._call(self._database.next_due, receiver)

    async def hold(self, receiver: str) -> float:
        """Until when a receiver that failed wants no message at all (epoch seconds; 0 if none has failed)."""
        return await self._call(self._database.hold, receiver)

    async def done(self, row_id: int, now: float) -> None:
        """The receiver has said yes."""
        await self._call(self._database.finish, row_id, "done", "", now)

    async def retry(self, row_id: int, at: float, error: str) -> None:
        """The receiver failed; the row falls due again at ``at``."""
        await self._call(self._database.retry, row_id, at, error)

    async def dead(self, row_id: int, now: float, error: str) -> None:
        """The receiver has said no for good: the row is kept as a dead letter."""
        await self._call(self._database.finish, row_id, "dead", error, now)

    async def drop_receivers(self, in_force: Collection[str], now: float) -> int:
        """Makes dead letters of the pending rows of all other receivers; how many."""
        return await self._call(self._database.drop_receivers, in_force, now)

    async def outbox_stats(self) -> dict[str, OutboxStats]:
        """Counts by receiver, of those that have rows."""
        return await self._call(self._database.outbox_stats)

    # ------------------------------------------------------------------------------------------------ history
    async def steps(self, run: str, attempt: int | None = None, last: int = 1000) -> list[StepRow]:
        """The last steps of an attempt (None: the latest), in order."""
        return await self._call(self._database.steps, run, attempt, last)

    async def transitions(self, limit: int = 100) -> list[tuple[float, Transition]]:
        """The last changes of incidents with the time of each, in order."""
        return await self._call(self._database.transitions, limit)

    async def prune(self, now: float, keep_steps_s: float, max_bytes: int) -> None:
        """Forgets steps, transitions and finished messages older than ``keep_steps_s``, and oldest steps over the size.

        Works in small transactions, between which others have their turn; what one call leaves the next one takes.
        """
        for _ in range(_PRUNE_BATCHES):
            if not await self._call(self._database.prune, now - keep_steps_s, max_bytes):
                return

    def size(self) -> int:
        """Bytes on disk, the write-ahead log included."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    # ------------------------------------------------------------------------------------------------ inside
    async def _call(self, work: Callable[P, T], *args: P.args, **_: P.kwargs) -> T:
        """Runs ``work`` in the database's thread."""
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)
        except sqlite3.DatabaseError as error:
            self.error = f"{self.path}: {error}"
            raise self._meaning(error) from error
        self.error = None
        return result

    def _meaning(self, error: sqlite3.DatabaseError) -> Exception:
        if _migrations.is_damage(error):
            return StoreDamaged(f"{self.path} is damaged ({error}); restart: it is set aside and a new one begun")
        code: Any = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in _PASSING:
            return StoreUnavailable(
                f"{self.path} cannot be written or read ({error}); free space or repair the disk: it is tried again"
            )
        return error
