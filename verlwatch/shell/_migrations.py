"""Opening the database: made anew, brought forward, refused or set aside.

``PRAGMA user_version`` says which schema a database has: schema.sql is always the newest, and MIGRATIONS holds the
steps that bring an older one there, each in a transaction of its own.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from verlwatch.shell import _damage
from verlwatch.shell.state_dir import StateDirError

MIGRATIONS: tuple[str, ...] = (
    "ALTER TABLE cursor ADD COLUMN history_to INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE cursor ADD COLUMN seen_at REAL NOT NULL DEFAULT 0; UPDATE cursor SET seen_at = strftime('%s', 'now');",
    """
    CREATE TABLE shipment (
        number     INTEGER PRIMARY KEY AUTOINCREMENT,
        created_at REAL    NOT NULL,
        samples    INTEGER NOT NULL,
        thinned    INTEGER NOT NULL DEFAULT 0,
        extracts   BLOB    NOT NULL
    );
    CREATE INDEX shipment_with_samples ON shipment (number) WHERE samples > 0;
    CREATE TABLE shipping (epoch INTEGER NOT NULL);
    """,
    "ALTER TABLE cursor ADD COLUMN context TEXT NOT NULL DEFAULT '';",
    """
    CREATE TABLE place (
        receiver TEXT NOT NULL,
        incident TEXT NOT NULL,
        text     TEXT NOT NULL,
        at       REAL NOT NULL,
        PRIMARY KEY (receiver, incident)
    );
    CREATE INDEX place_by_age ON place (at);
    """,
    """
    ALTER TABLE outbox ADD COLUMN part_of INTEGER;
    CREATE INDEX outbox_part ON outbox (part_of) WHERE part_of IS NOT NULL;
    CREATE INDEX outbox_merged ON outbox (receiver, incident) WHERE part_of IS NOT NULL;
    """,
    """
    CREATE TABLE gpu_cards (
        id         INTEGER PRIMARY KEY,
        run        TEXT NOT NULL,
        host       TEXT NOT NULL,
        cards      TEXT NOT NULL,
        thinned_to REAL NOT NULL,
        UNIQUE (run, host, cards)
    );
    CREATE TABLE gpu_sample (
        cards INTEGER NOT NULL,
        at    REAL    NOT NULL,
        data  BLOB    NOT NULL,
        PRIMARY KEY (cards, at)
    ) WITHOUT ROWID;
    CREATE INDEX gpu_sample_by_age ON gpu_sample (at);
    """,
)
"""The n-th (from 1) brings version n to n + 1.  A new one also changes schema.sql; the two must agree."""

WAL_LIMIT = 4 << 20
_BUSY_S = 5.0
_INCREMENTAL = 2
_CACHE_KIB = 512
"""Of the database's pages: little is read twice, and a host that trains has other uses for memory."""
_VACUUM_S = 20.0
"""So long may a start be held up to make room returnable; a service manager waits longer."""
_PARTS = ("", "-wal", "-shm")


class StateTooNew(StateDirError):  # noqa: N818 - names the situation, as its parent does the error
    """A newer verlwatch has written the database."""


def schema() -> str:
    """The tables of the newest version."""
    return files("verlwatch.shell").joinpath("schema.sql").read_text()


@dataclass(frozen=True, slots=True)
class Opened:
    """An open database, and what was wrong with it: set aside as a whole, or rows of a table left out."""

    connection: sqlite3.Connection
    set_aside: Path | None = None
    left_out: Counter[str] = field(default_factory=Counter)


def open_database(path: Path, *, durable: bool = False) -> Opened:
    """Opens the database; a damaged one is set aside and a new one begun.  For ``durable`` see `Store.open`.

    Raises StateTooNew, OSError, or sqlite3.OperationalError where the disk does not allow it.
    """
    try:
        return _open(path, durable=durable)
    except sqlite3.DatabaseError as error:
        if not _damage.is_damage(error):
            raise
    aside = _set_aside(path)
    return Opened(_open(path, durable=durable).connection, aside)


def migrate(connection: sqlite3.Connection, new: str, migrations: tuple[str, ...]) -> None:
    """Brings the database to the newest version: ``new`` for an empty one, else the migrations it lacks."""
    newest = 1 + len(migrations)
    version = _version(connection)
    if version > newest:
        raise StateTooNew(
            f"state.db has schema version {version}, this verlwatch knows up to {newest}; "
            "install the verlwatch that wrote it or a newer one, or give another --state-dir"
        )
    steps = [(newest, new)] if version == 0 else list(enumerate(migrations[version - 1 :], start=version + 1))
    for number, script in steps:
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _open(path: Path, *, durable: bool) -> Opened:
    # Made here and not by SQLite, so that nobody else can ever read it; the -wal and -shm files take its mode.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode(errors="replace")  # a damaged text is no reason to fail
    try:
        if _damage.check_file(connection) == 0:
            connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")  # takes effect only before the first table
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
        migrate(connection, schema(), MIGRATIONS)
        _damage.check_tables(connection, schema())
        _make_space_returnable(connection)
        return Opened(connection, left_out=_damage.leave_out_ill_formed(connection))
    except BaseException:
        connection.close()
        raise


def _make_space_returnable(connection: sqlite3.Connection) -> None:
    """Rewrites, once, a database whose free pages cannot be given back to the disk.

    That takes time and as much space again: where either is short the database is used as it is, until the next start.
    """
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL:
        return
    ends = time.monotonic() + _VACUUM_S
    connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
    connection.set_progress_handler(lambda: time.monotonic() > ends, 10_000)
    with suppress(sqlite3.OperationalError):
        connection.execute("VACUUM")
    connection.set_progress_handler(None, 0)


def _set_aside(path: Path) -> Path:
    """Renames the database and what belongs to it, so that a person can look at it and a new one takes its place."""
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    for part in _PARTS:
        file = path.with_name(path.name + part)
        if file.exists():
            file.rename(aside.with_name(aside.name + part))
    return aside
