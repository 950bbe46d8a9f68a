"""Whatever is wrong with the database, it opens, says what it did, and goes on with what is whole."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes.outbox import notification, outcome
from verlwatch.core.engine import RECALL, Engine, merged
from verlwatch.core.gather import Gatherer
from verlwatch.core.types import Chunk, Extract, GpuCell, GpuRow, Outcome
from verlwatch.shell.store import StateTooNew, Store

HISTORIES = 400 if os.environ.get("VERLWATCH_SOAK") else 40
TABLES = ("cursor", "state", "step", "transition", "outbox", "shipment", "shipping", "gpu_cards", "gpu_sample")
JUNK = (b"", b"\xff\xfe{", b'{"a":', b"[]", b"17", b'"x"', "text", -1, 2**62, 1e300, b"[" * 5000, b"\xc3\x28")


def judged(recorded: Path) -> Outcome:
    """What a run with incidents leaves behind."""
    data = (recorded / "verl-0.3.0.post1.driver.log").read_bytes()
    engine = Engine()
    fed = merged(
        engine.feed(Chunk("/r.log", 1, at, data[at : at + 65536], run="r"), 1e6) for at in range(0, len(data), 65536)
    )
    at = [1.9e6 + 10.0 * n for n in range(8)]
    cells = tuple(GpuCell(str(gpu), str(gpu), 80.0, 28.0 + gpu, 97.0) for gpu in range(8))
    sampled = Outcome(gpus=tuple(GpuRow("r", host, instant, cells) for host in ("n1", "n2") for instant in at))
    return merged([fed, sampled, outcome(notification("a", "i1"), notification("b", "i1"), notification("c", "i2"))])


def shipped(recorded: Path) -> list[Extract]:
    """What an agent that has read a little leaves behind."""
    data = (recorded / "verl-0.3.0.post1.driver.log").read_bytes()
    gatherer = Gatherer()
    outcomes = [
        gatherer.feed(Chunk("/r.log", 1, at, data[at : at + 4096], run="r"), 1e6) for at in range(0, 40960, 4096)
    ]
    return [extract for outcome in outcomes for extract in outcome.extracts]


@pytest.fixture(scope="module")
def database(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of such a run."""
    import asyncio

    folder = tmp_path_factory.mktemp("whole")

    async def write() -> None:
        store = await Store.open(folder)
        await store.commit(judged(recorded), 1e6)
        for extract in shipped(recorded):
            await store.commit(Outcome(extracts=(extract,)), 1e6)
        await store.shipments.oldest(1, 1e6)
        await store.close()

    asyncio.run(write())
    return (folder / "state.db").read_bytes()


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.fixture
def damaged(tmp_path: Path, database: bytes) -> Callable[..., Path]:
    def damage(*statements: str) -> Path:
        (tmp_path / "state.db").write_bytes(database)
        change(tmp_path / "state.db", *statements)
        return tmp_path

    return damage


async def test_state_that_cannot_be_read_is_left_out_and_counted(damaged: Callable[..., Path]) -> None:
    folder = damaged("UPDATE state SET data = x'ff7b22' WHERE key = (SELECT min(key) FROM state WHERE kind = 'series')")
    store = await Store.open(folder)
    engine = Engine()
    engine.restore(await store.load(RECALL))
    assert engine.strange_states == 1
    assert engine.runs["r"].step == 300
    await store.close()


async def test_steps_that_cannot_be_read_are_left_out_counted_and_replaced(damaged: Callable[..., Path]) -> None:
    folder = damaged("UPDATE step SET data = x'7b' WHERE step IN (7, 9)")
    store = await Store.open(folder)
    rows = (await store.load()).steps
    assert {7, 9} & {row.step for row in rows} == set()
    assert store.notices == ("rows of the database that cannot be read are left out: 2 of step",)
    (eight,) = (row for row in rows if row.step == 8)
    await store.commit(Outcome((), (type(eight)(eight.run, eight.attempt, 9, eight.at, eight.values),)), 2e6)
    assert dict((await store.load()).steps[8 - 1].values) == dict(eight.values)
    await store.close()


async def test_a_message_that_cannot_be_read_is_a_dead_letter_and_the_others_are_due(
    damaged: Callable[..., Path],
) -> None:
    folder = damaged("UPDATE outbox SET message = x'00' WHERE dedup_key = 'a'")
    store = await Store.open(folder)
    assert [row.dedup_key for row in await store.outbox.due("slack", 2e6, 1)] == ["b"], "it had waited for the first"
    stats = (await store.outbox.stats())["slack"]
    assert (stats.pending, stats.dead, stats.last_error) == (2, 1, "its message in the database cannot be read")
    assert store.notices == ("rows of the database that cannot be read are left out: 1 of outbox",)
    await store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE outbox SET due_at = 'soon' WHERE dedup_key = 'a'",
        "UPDATE outbox SET status = 'x' WHERE dedup_key = 'a'",
        "UPDATE outbox SET created_at = 9e999 WHERE dedup_key = 'a'",
    ],
)
async def test_a_row_of_the_outbox_that_makes_no_sense_is_a_dead_letter(
    damaged: Callable[..., Path], statement: str
) -> None:
    store = await Store.open(damaged(statement))
    stats = (await store.outbox.stats())["slack"]
    assert (stats.pending, stats.dead, stats.last_error) == (2, 1, "its row in the database is damaged")
    assert await store.outbox.next_due("slack") == 1e6
    await store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE transition",
        "ALTER TABLE cursor RENAME COLUMN mark TO nark",
        "DROP INDEX outbox_pending",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = -3",
        "PRAGMA user_version = 1094795585",
    ],
)
async def test_a_database_of_another_shape_is_set_aside(damaged: Callable[..., Path], statement: str) -> None:
    folder = damaged(statement)
    store = await Store.open(folder)
    assert store.set_aside == folder / "state.db.corrupt-1"
    assert [notice.partition(":")[0] for notice in store.notices] == ["the database was damaged"]
    assert (await store.load()).cursors == ()
    await store.close()


async def test_an_index_that_lacks_rows_is_found_before_a_commit_falls_over_it(damaged: Callable[..., Path]) -> None:
    folder = damaged(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = sql || ' WHERE at < 0' WHERE name = 'step_by_age'",
        "PRAGMA writable_schema = RESET",
        "REINDEX step_by_age",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, ' WHERE at < 0', '') WHERE name = 'step_by_age'",
    )
    store = await Store.open(folder)
    assert store.set_aside is not None
    await store.close()


# ---------------------------------------------------------------------------------------------------- any damage
async def goes_on(folder: Path) -> Store:
    """Opens the store and does with it all that a daemon does."""
    store = await Store.open(folder)
    engine = Engine()
    engine.restore(await store.load(RECALL, prefix="timing"))
    line = b"step:301 - timing_s/gen:40.1 - timing_s/step:60.1\n\n"
    for cursor in (*engine.cursors, None):
        chunk = Chunk("/n.log", 1, 0, line, run="r") if cursor is None else Chunk(
            cursor.source, cursor.generation, cursor.reread_from, line, run="r"
        )  # fmt: skip
        await store.commit(engine.feed(chunk, 2e6), 2e6)
    await store.outbox.drop_receivers({"slack"}, 2e6)
    for receiver in await store.outbox.stats():
        await store.outbox.hold(receiver)
        at = await store.outbox.next_due(receiver)
        assert at is None or at >= 0
        while rows := await store.outbox.due(receiver, 2e6, 1):
            await store.outbox.done(rows[0].id, 2e6)
    await store.transitions()
    await store.shipments.thin(5000)
    before = 0
    while (found := await store.shipments.oldest(1 << 20, 2e6)).rows:
        assert found.number > before
        assert found.epoch > 0
        await store.shipments.give_up_unreadable(found.rows)
        before = found.rows[-1][0]
        assert await store.shipments.shipped(before, 2e6) is not None
    assert all(1.9e6 - 1 < row.at <= 2e6 for row in await store.gpus.stretch("r", 1.9e6 - 1, 2e6, 1000))
    await store.prune(2e6, 9e5, 16 << 20)
    return store


def damage_a_column(connection: sqlite3.Connection, chance: random.Random) -> None:
    table = chance.choice(TABLES)
    column = chance.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
    key = "at" if table == "gpu_sample" else "rowid"
    rows = connection.execute(f"SELECT {key}, {column} FROM {table}").fetchall()  # noqa: S608 - names of our own
    rowid, old = chance.choice(rows)
    junk = chance.choice(JUNK)
    if isinstance(old, bytes) and chance.random() < 0.5:
        junk = old[: chance.randrange(len(old) + 1)]
    value = "CAST(? AS TEXT)" if isinstance(old, str) and isinstance(junk, bytes) else "?"
    change = f"UPDATE OR IGNORE {table} SET {column} = {value} WHERE {key} = ?"  # noqa: S608 - names of our own
    with suppress(sqlite3.IntegrityError):  # a row's own number takes nothing but numbers
        connection.execute(change, (junk, rowid))


async def test_random_columns(database: bytes, tmp_path: Path) -> None:
    told = 0
    for seed in range(HISTORIES):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "state.db").write_bytes(database)
        connection = sqlite3.connect(folder / "state.db", isolation_level=None)
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        for _ in range(chance.randint(1, 4)):
            damage_a_column(connection, chance)
        connection.close()
        try:
            store = await goes_on(folder)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        assert store.set_aside is None
        told += bool(store.notices)
        await store.close()
    assert told > HISTORIES // 4


async def test_random_bytes_pages_and_ends(database: bytes, tmp_path: Path) -> None:
    set_aside = refused = 0
    for seed in range(HISTORIES):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        data = bytearray(database)
        match chance.choice(("header", "bytes", "page", "end")):
            case "header":
                data[chance.randrange(100)] = chance.randrange(256)
            case "bytes":
                for _ in range(chance.randint(1, 30)):
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            case "page":
                page = chance.randrange(len(data) // 4096) * 4096
                data[page : page + 4096] = chance.choice((bytes(4096), chance.randbytes(4096)))
            case "end":
                del data[chance.randrange(len(data)) :]
        (folder / "state.db").write_bytes(data)
        try:
            store = await goes_on(folder)
        except StateTooNew:
            assert 1 < int.from_bytes(data[60:64], "big") < 10_000, "only a version that may well be one"
            refused += 1
            continue
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        set_aside += store.set_aside is not None
        await store.close()
        store = await Store.open(folder)
        assert store.set_aside is None, "the second start finds nothing to do"
        await store.close()
    assert set_aside > HISTORIES // 4
    assert refused < HISTORIES // 10
