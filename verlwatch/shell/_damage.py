"""Is this database whole?  Found out once, when it is opened, so that whatever reads it later need not ask.

Two answers to damage.  Where the file itself, its tables or its version are not what they must be, nothing in it can be
trusted, and the error says so: the caller sets the file aside.  Where single rows are not of the form that their column
promises, those rows are put out of the way and counted; the others are as good as before.
"""

from __future__ import annotations

import sqlite3
from collections import Counter

NEWEST_CONCEIVABLE = 9999
"""A schema version above this was not written by any verlwatch."""

_LATEST = 2e11
"""Epoch seconds that a calendar can still show (year 8307); no clock is that wrong."""

_NOW = "strftime('%s', 'now')"

_FILE_AT_FAULT = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_TOOBIG,
    }
)
"""Whole (extended) codes that statements which are known to be right can only meet in a file that is wrong.

READONLY without a reason of its own (they have codes of their own) is a header that forbids writing.
"""

_TABLES_AND_COLUMNS = """
    SELECT m.name, c.name, c.type, c."notnull", c.pk
    FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'
    UNION ALL
    SELECT m.name, c.name, i.name, i."unique", c.seqno
    FROM sqlite_master AS m, pragma_index_list(m.name) AS i, pragma_index_info(i.name) AS c WHERE m.type = 'table'
"""


def _not(column: str, *types: str) -> str:
    return f"typeof({column}) NOT IN ({', '.join(map(repr, types))})"


def _no_time(column: str) -> str:
    return f"({_not(column, 'real', 'integer')} OR {column} NOT BETWEEN 0 AND {_LATEST})"


_ILL_FORMED = {
    "cursor": (
        _not("source", "text"), _not("generation", "integer"), _not("mark", "blob"), _not("token", "text"),
        _not("reread_from", "integer"), _not("applied_to", "integer"), "reread_from < 0", "applied_to < 0",
        _not("history_to", "integer"),
    ),
    "shipment": (
        _no_time("created_at"), _not("samples", "integer"), _not("thinned", "integer"), _not("extracts", "blob"),
        "number < 1", "samples < 0", "thinned < 0",
    ),
    "shipping": (_not("epoch", "integer"), "epoch < 1"),
    "state": (_not("kind", "text"), _not("key", "text"), _not("version", "integer")),
    "step": (_not("run", "text"), _not("attempt", "integer"), _not("step", "integer"), _no_time("at")),
    "transition": (_no_time("at"),),
    "outbox": (_not("dedup_key", "text"), _not("receiver", "text"), _not("incident", "text"), _not("reason", "text")),
    "gpu_cards": (_not("run", "text"), _not("host", "text"), _not("cards", "text"), _no_time("thinned_to")),
    "gpu_sample": (
        _not("cards", "integer"), _no_time("at"), _not("data", "blob"), "cards NOT IN (SELECT id FROM gpu_cards)",
    ),
    "place": (_not("receiver", "text"), _not("incident", "text"), _not("text", "text"), _no_time("at")),
}  # fmt: skip

_ILL_FORMED_MESSAGE = " OR ".join(
    (
        "status NOT IN ('pending', 'done', 'dead', 'merged', 'dropped')", _no_time("created_at"), _no_time("due_at"),
        _not("attempts", "integer"), "attempts < 0", _not("error", "text"),
        f"(finished_at IS NOT NULL AND {_no_time('finished_at')})",
        "(part_of IS NOT NULL AND typeof(part_of) != 'integer')",
    )
)  # fmt: skip


def damaged(what: str) -> sqlite3.DatabaseError:
    """The error that SQLite itself raises where it stumbles over damage."""
    error = sqlite3.DatabaseError(what)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error tells of a damaged file, not of a full disk or a busy database."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def check_file(connection: sqlite3.Connection) -> int:
    """The schema version of a file that is whole (0: empty); raises an error that `is_damage` where it is not."""
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        # Not the quick check, which costs the same: it misses rows that an index lacks, over which a commit falls.
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version = {version}")  # falls over a header that forbids writing
        connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) in _FILE_AT_FAULT:
            raise damaged(str(error)) from error
        raise
    if found != "ok":
        raise damaged(str(found))
    if not 0 <= version <= NEWEST_CONCEIVABLE or (version == 0) != (tables == 0):
        raise damaged(f"schema version {version} with {tables} tables and indexes")
    return version


def check_tables(connection: sqlite3.Connection, schema: str) -> None:
    """Raises an error that `is_damage` where tables, columns or indexes are not those of ``schema``."""
    model = sqlite3.connect(":memory:")
    try:
        model.executescript(schema)
        if _shape(model) != _shape(connection):
            raise damaged("its tables are not those of its schema version")
    finally:
        model.close()


def _shape(connection: sqlite3.Connection) -> Counter[tuple[object, ...]]:
    return Counter(connection.execute(_TABLES_AND_COLUMNS).fetchall())


def leave_out_ill_formed(connection: sqlite3.Connection) -> Counter[str]:
    """Puts rows whose columns are not of their type out of the way, in one transaction; how many of each table.

    A message that still names its receiver becomes a dead letter, and those that only a lost one told of wait again.
    """
    left_out: Counter[str] = Counter()
    connection.execute("BEGIN IMMEDIATE")
    try:
        for table, faults in _ILL_FORMED.items():
            left_out[table] += connection.execute(f"DELETE FROM {table} WHERE {' OR '.join(faults)}").rowcount  # noqa: S608 - our own words
        left_out["outbox"] += connection.execute(
            "UPDATE outbox SET status = 'dead', error = 'its row in the database is damaged', attempts = 0,"  # noqa: S608 - our own words
            f" created_at = {_NOW}, due_at = {_NOW}, finished_at = {_NOW} WHERE {_ILL_FORMED_MESSAGE}"
        ).rowcount
        connection.execute(
            "UPDATE outbox SET status = 'pending', finished_at = NULL, part_of = NULL"
            " WHERE status = 'merged' AND (part_of IS NULL OR part_of NOT IN (SELECT id FROM outbox))"
        )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return +left_out
