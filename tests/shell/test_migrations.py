"""A database of an older version is brought forward, one of a newer version is left alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from verlwatch.shell._migrations import MIGRATIONS, migrate, schema
from verlwatch.shell.store import StateDirError, StateTooNew, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST = Path(__file__).parents[1] / "data" / "schema-1.sql"
OLD = "CREATE TABLE cursor (source TEXT PRIMARY KEY);"
ADD_TOKEN = "ALTER TABLE cursor ADD COLUMN token TEXT NOT NULL DEFAULT '';"
ADD_AGE = "ALTER TABLE cursor ADD COLUMN age REAL;"
BROKEN = "ALTER TABLE cursor ADD COLUMN more TEXT; ALTER TABLE nowhere ADD COLUMN x TEXT;"


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def columns(connection: sqlite3.Connection) -> list[str]:
    return [row[1] for row in connection.execute("PRAGMA table_info(cursor)")]


def test_an_empty_database_gets_the_newest_schema_at_once(connection: sqlite3.Connection) -> None:
    migrate(connection, "CREATE TABLE cursor (source TEXT, token TEXT, age REAL);", (ADD_TOKEN, ADD_AGE))
    assert (version(connection), columns(connection)) == (3, ["source", "token", "age"])


def test_an_older_database_takes_the_steps_it_lacks_and_keeps_its_rows(connection: sqlite3.Connection) -> None:
    migrate(connection, OLD, ())
    connection.execute("INSERT INTO cursor VALUES ('a')")
    migrate(connection, "never used", (ADD_TOKEN,))
    migrate(connection, "never used", (ADD_TOKEN, ADD_AGE))
    migrate(connection, "never used", (ADD_TOKEN, ADD_AGE))
    assert version(connection) == 3
    assert connection.execute("SELECT * FROM cursor").fetchall() == [("a", "", None)]


def test_a_step_that_fails_leaves_the_version_before_it(connection: sqlite3.Connection) -> None:
    migrate(connection, OLD, ())
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, "never used", (ADD_TOKEN, BROKEN))
    assert (version(connection), columns(connection)) == (2, ["source", "token"])


def test_the_schema_in_force_is_that_of_the_first_version_brought_forward(connection: sqlite3.Connection) -> None:
    def tables(of: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
        names = [row[0] for row in of.execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'")]
        return {name: of.execute(f"PRAGMA table_info({name})").fetchall() for name in names}

    migrate(connection, FIRST.read_text(), ())
    migrate(connection, "never used", MIGRATIONS)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        migrate(new, schema(), MIGRATIONS)
        assert tables(connection) == tables(new)
        assert version(connection) == version(new) == 1 + len(MIGRATIONS)


async def test_a_newer_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    newest = 1 + len(MIGRATIONS)
    store = await Store.open(tmp_path)
    await store.close()
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute(f"PRAGMA user_version = {newest + 1}")
    connection.close()
    before = (tmp_path / "state.db").read_bytes()
    with pytest.raises(StateTooNew) as caught:
        await Store.open(tmp_path)
    assert str(caught.value) == (
        f"state.db has schema version {newest + 1}, this verlwatch knows up to {newest}; "
        "install the verlwatch that wrote it or a newer one, or give another --state-dir"
    )
    assert isinstance(caught.value, StateDirError)
    assert (tmp_path / "state.db").read_bytes() == before
