"""What survives a restart: positions, state, values of steps and the outbox, in one SQLite database.

One thread owns the connection, so that a slow disk delays those who wait for a commit and nobody else.  Write-ahead
log with ``synchronous = NORMAL``: a process that is killed loses nothing it was told is committed; a power cut may
take the last commits as a whole, and then the log is read again from the position they had replaced.

    state directory ─ lock        held by the process that runs; its pid and the URL of its status page
                    ─ state.db    schema.sql
"""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from verlwatch.core.types import Outcome, Snapshot, StepRow, Transition
from verlwatch.shell import _damage, _migrations, state_dir
from verlwatch.shell._database import Database
from verlwatch.shell._gpu_samples import RAW_S, GpuSamples
from verlwatch.shell._migrations import Opened, StateTooNew
from verlwatch.shell._outbox import LONGEST_DELAY_S, Outbox
from verlwatch.shell._places import Places
from verlwatch.shell._rows import OutboxRow, OutboxStats
from verlwatch.shell._shipments import Shipments
from verlwatch.shell._worker import Worker
from verlwatch.shell.state_dir import StateDirError, StateDirInUse

__all__ = [
    "LONGEST_DELAY_S",
    "OutboxRow",
    "OutboxStats",
    "StateDirError",
    "StateDirInUse",
    "StateReplaced",
    "StateTooNew",
    "Store",
    "StoreDamaged",
    "StoreUnavailable",
]

CLOSE_S = 20.0

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
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)


class StoreUnavailable(Exception):  # noqa: N818 - a state of the disk that passes, to be waited out
    """The disk refused (full, failing, busy).  Nothing of the call was done: try the same again later."""


class StoreDamaged(Exception):  # noqa: N818 - the same, but it does not pass
    """The database is damaged.  The next start sets it aside and begins a new one."""


class StateReplaced(StateDirError):  # noqa: N818 - names the situation, as its parent does the error
    """Somebody has put another database in the place of the one in use."""


class Store:
    """The database of one state directory, held exclusively while open.

    Every method may raise StoreUnavailable, after which nothing has changed, or StoreDamaged.
    """

    def __init__(self, path: Path, opened: Opened, thread: Worker, lock: int, *, durable: bool = False) -> None:
        self.path = path
        self.set_aside = opened.set_aside
        """Where a damaged database was put when this one was made anew."""
        self.error: str | None = None
        """Why the last call failed; None while calls succeed."""
        self.gone: str | None = None
        """Why the state directory, deleted by somebody, could not be put back; None where it is in its place."""
        self._database = Database(opened.connection, path, opened.left_out)
        self.outbox = Outbox(self._within, opened.left_out)
        self.shipments = Shipments(self._within, opened.left_out)
        self.places = Places(self._within)
        self.gpus = GpuSamples(self._within, opened.left_out)
        self._durable = durable
        self._thread = thread
        self._lock = lock
        self._served: state_dir.Served | None = None
        self._times_put_back = 0
        self._in_vain = self._cramped = False  # the last pruning: it left more than it should, more than it may
        self._bytes = self._database.on_disk()
        self._file = path.stat()

    @classmethod
    async def open(cls, folder: Path, *, durable: bool = False) -> Store:
        """Locks the directory and opens its database, made or brought forward as needed.

        ``durable`` makes each commit wait for the disk itself: what an agent has shipped or a hub has acknowledged must
        survive a power cut, as it is not read again.

        Raises StateDirError (network file system, not writable, not ours, no space), StateDirInUse or StateTooNew.
        """
        thread = Worker("store")
        try:
            return await thread.call(lambda: cls._open(folder, thread, durable))
        except BaseException:
            thread.end()
            raise

    @classmethod
    def _open(cls, folder: Path, thread: Worker, durable: bool) -> Store:
        state_dir.prepare(folder)
        lock = state_dir.lock(folder)
        path = folder / "state.db"
        try:
            opened = _migrations.open_database(path, durable=durable)
        except BaseException as error:
            os.close(lock)
            if isinstance(error, sqlite3.OperationalError | OSError):
                raise StateDirError(
                    f"{path} cannot be opened ({error}); make it writable and see that the disk has space, "
                    "or give another --state-dir"
                ) from error
            raise
        return cls(path, opened, thread, lock, durable=durable)

    async def close(self) -> None:
        """Finishes what was asked for, closes the database and lets go of the directory.

        A disk that does not answer is not waited for longer than CLOSE_S: nothing is lost by it, and the process ends.
        """
        try:
            async with asyncio.timeout(CLOSE_S):
                with suppress(StateDirError):
                    await self.keep_place()
                await self._call(self._close)
        finally:
            self._thread.end()
            os.close(self._lock)

    def _close(self) -> None:
        self._database.close()
        self._bytes = self._database.on_disk()

    def announce(self, served: state_dir.Served) -> None:
        """Notes where this process serves its status, for `state_dir.served`."""
        self._served = served
        state_dir.announce(self._lock, served)

    # ------------------------------------------------------------------------------------------------ its place
    async def keep_place(self) -> bool:
        """Sees whether the directory is still there, and puts it back if it was deleted; whether it did.

        The deleted database is whole for as long as it is open, so it is copied into its old place: positions, state
        and unsent messages included, nothing is judged or told twice.  To end instead would lose all of them.  Where
        copying is not possible `gone` says why: work goes on, for the same reason, and the next call tries again.

        Raises:
            StateDirInUse: another process has taken the place.
            StateReplaced: another database is in the place.  Which one counts is not for this process to say.
        """
        try:
            put_back = await self._call(self._keep_place)
        except (StateDirInUse, StateReplaced):
            raise
        except (OSError, StateDirError, StoreUnavailable) as error:
            self.gone = (
                f"{self.path} was deleted and cannot be put back ({error}); until it can, nothing survives a restart"
            )
            return False
        self.gone = None
        self._times_put_back += put_back
        return put_back

    def _keep_place(self) -> bool:
        folder = self.path.parent
        holds_lock = state_dir.holds(folder, self._lock)
        if not holds_lock:
            state_dir.prepare(folder)
            lock, old = state_dir.lock(folder), self._lock
            self._lock = lock
            os.close(old)
            if self._served is not None:
                state_dir.announce(lock, self._served)
        is_there = self.path.exists()
        if is_there and not os.path.samestat(self.path.stat(), self._file):
            raise StateReplaced(f"{self.path} was replaced by another database; restart: that one is then taken up")
        if not is_there:
            copy = self.path.with_name("state.db.new")
            self._database.copy_to(copy)
            copy.rename(self.path)
            self._database.move_to(_migrations.open_database(self.path, durable=self._durable).connection)
            self._file = self.path.stat()
        self._bytes = self._database.on_disk()
        return not (holds_lock and is_there)

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
        await self._call(self._commit, outcome, now)

    def _commit(self, outcome: Outcome, now: float) -> None:
        self.shipments.added(self._database.commit(outcome, now))
        self._bytes = self._database.on_disk()

    # ------------------------------------------------------------------------------------------------ history
    async def steps(self, run: str, attempt: int | None = None, last: int = 1000) -> list[StepRow]:
        """The last steps of an attempt (None: the latest), in order."""
        return await self._call(self._database.steps, run, attempt, last)

    async def transitions(self, limit: int = 100) -> list[tuple[float, Transition]]:
        """The last changes of incidents with the time of each, in order."""
        return await self._call(self._database.transitions, limit)

    async def prune(self, now: float, keep_steps_s: float, max_bytes: int, seen: Collection[str] = ()) -> None:
        """Forgets what is older than ``keep_steps_s`` and, over the size, the oldest samples of GPUs, then steps.

        By age go steps, transitions, finished messages, samples of GPUs, which are thinned after a day, and positions
        in sources that were not among those ``seen`` for so long.  Works in short slices, between which others have
        their turn.  Unsent messages, positions, state and the last steps of each run stay whatever the size.
        """
        await self._call(self._database.saw, seen, now)
        while await self._call(self._database.forget, now - keep_steps_s):
            pass
        while keep_steps_s < math.inf and await self._call(self._database.thin, now - RAW_S):
            pass
        if await self._call(self._database.on_disk) > _nearly(max_bytes):
            while await self._call(self._database.shrink, max(max_bytes - 2 * _migrations.WAL_LIMIT, max_bytes // 2)):
                pass
        self._bytes = await self._call(self._database.on_disk)
        self._in_vain = self._bytes > _nearly(max_bytes)
        self._cramped = self._bytes > max_bytes

    def wants_pruning(self, max_bytes: int) -> bool:
        """Whether the size has come near ``max_bytes``, and the last `prune` was not in vain."""
        return self._bytes > _nearly(max_bytes) and not self._in_vain

    def size(self) -> int:
        """Bytes on disk, the write-ahead log included, as of the last commit or `keep_place`."""
        return self._bytes

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of the database, a sentence each."""
        told = []
        if self.set_aside is not None:
            told.append(f"the database was damaged: it was set aside as {self.set_aside}, and every log is read again")
        if left_out := ", ".join(f"{count} of {table}" for table, count in sorted(self._database.left_out.items())):
            told.append(f"rows of the database that cannot be read are left out: {left_out}")
        if self._times_put_back:
            told.append(f"{self.path} was deleted while in use, and was put back with all that was in it")
        if self._cramped:
            told.append(
                f"{self.path} is larger than storage.max_size ({self._bytes >> 20} MiB) and what is left in it is "
                "still needed; allow more, or watch fewer runs"
            )
        return tuple(told)

    # ------------------------------------------------------------------------------------------------ inside
    async def _within(self, work: Callable[..., Any], *args: Any) -> Any:
        """Runs ``work`` on the connection, in a transaction."""
        return await self._call(self._database.within, work, *args)

    async def _call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs ``work`` in the database's thread."""
        try:
            result = await self._thread.call(lambda: work(*args, **kwargs))
        except sqlite3.DatabaseError as error:
            self.error = f"{self.path}: {error}"
            raise self._meaning(error) from error
        self.error = None
        return result

    def _meaning(self, error: sqlite3.DatabaseError) -> Exception:
        if _damage.is_damage(error):
            return StoreDamaged(f"{self.path} is damaged ({error}); restart: it is set aside and a new one begun")
        code: Any = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in _PASSING:
            return StoreUnavailable(
                f"{self.path} cannot be written or read ({error}); free space or repair the disk: it is tried again"
            )
        return error


def _nearly(max_bytes: int) -> int:
    """The size at which to prune, so that what is read meanwhile and the write-ahead log have room, too."""
    return max(max_bytes - _migrations.WAL_LIMIT, max_bytes * 3 // 4)
