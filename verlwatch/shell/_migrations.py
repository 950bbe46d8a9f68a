"""Opening the database: made anew, brought forward, refused or set aside.

``PRAGMA user_version`` says which schema a database has: schema.sql is always the newest, and MIGRATIONS holds the
steps that bring an older one there, each in a transaction of its own.
"""

from __future__ import annotations

import os
import sqlite3
from importlib.resources import files
from pathlib import Path

from verlwatch.shell.state_dir import StateDirError

MIGRATIONS: tuple[str, ...] = ()
"""The n-th (from 1) brings version n to n + 1.  A new one also changes schema.sql; the two must agree."""

WAL_LIMIT = 4 << 20
_BUSY_S = 5.0
_PARTS = ("", "-wal", "-shm")


class StateTooNew(StateDirError):  # noqa: N818 - names the situation, as its parent does the error
    """A newer verlwatch has written the database."""


def schema() -> str:
    """The tables of the newest version."""
    return files("verlwatch.shell").joinpath("schema.sql").read_text()


def open_database(path: Path) -> tuple[sqlite3.Connection, Path | None]:
    """The connection, and where a damaged database was set aside (None if there was none).

    Raises StateTooNew, or sqlite3.OperationalError where the disk does not allow it.
    """
    try:
        return _open(path), None
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    aside = _set_aside(path)
    return _open(path), aside


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error tells of a damaged file, not of a full disk or a busy database."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


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


def _open(path: Path) -> sqlite3.Connection:
    # Made here and not by SQLite, so that nobody else can ever read it; the -wal and -shm files take its mode.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    try:
        if _version(connection) == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # takes effect only before the first table
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
        _check(connection)
        migrate(connection, schema(), MIGRATIONS)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection) -> None:
    """Raises what SQLite itself raises where it stumbles over damage, wherever in the file that is."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        error = sqlite3.DatabaseError(found)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


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
