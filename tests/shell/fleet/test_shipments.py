"""The outbox of an agent: numbers, room, damage."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.gpu_fleet import sample as gpu_sample
from tests.shell.fleet.rig import samples
from verlwatch.core.types import Cursor, Event, Extract, Origin, Outcome, Record, Samples, Writer
from verlwatch.shell._shipments import Oldest
from verlwatch.shell.fleet.wire import (
    MOST_RECORDS,
    MOST_SHIPMENTS,
    RECORD_BYTES,
    SHIPMENT_BYTES,
    extracts_of,
    is_whole,
    pack_delivery,
    pack_extracts,
    unpack,
)
from verlwatch.shell.store import Store

NOW = 1_000_000.0
ALL = 1 << 30


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path, durable=True)
    yield store
    await store.close()


def event(end: int = 9, **attributes: str | float) -> Event:
    return Event(Origin("a.log", 1, end, Writer(), "progress"), "progress", attributes or {"done": 1})


async def put(store: Store, *records: Record, source: str = "a.log", run: str = "r", now: float = NOW) -> None:
    await store.commit(Outcome(extracts=(Extract(source, run, records),)), now)


async def numbers(store: Store, limit: int = ALL) -> list[int]:
    return [number for number, *_ in (await store.shipments.oldest(limit, NOW)).rows]


async def sent(store: Store) -> list[Extract]:
    """What a hub reads of everything that waits."""
    found = await store.shipments.oldest(ALL, NOW)
    head = {
        "agent": "n1", "software": "0", "epoch": found.epoch, "oldest": found.number, "waiting": 1, "sent_at": NOW,
        "offset_s": None, "sources": [],
    }  # fmt: skip
    shipments = unpack(pack_delivery(head, found.rows))["shipments"]
    return [one for shipment in shipments for one in extracts_of(shipment, "n1")]


def damage(store: Store, statement: str, *arguments: Any) -> None:
    connection = sqlite3.connect(store.path, isolation_level=None)
    connection.execute(statement, arguments)
    connection.close()


# ---------------------------------------------------------------------------------------------------- numbers
async def test_numbers_grow_by_one_and_are_never_given_twice(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    for step in range(3):
        await put(store, samples(step))
    first = await store.shipments.oldest(ALL, NOW)
    assert ([number for number, *_ in first.rows], first.number) == ([1, 2, 3], 1)
    await store.shipments.shipped(3, NOW)
    await store.close()
    store = await Store.open(tmp_path)
    empty = await store.shipments.oldest(ALL, NOW + 50)
    assert (empty.epoch, empty.number, empty.rows, empty.waiting.shipments) == (first.epoch, 4, [], 0)
    await put(store, samples(4))
    assert await numbers(store) == [4]
    await store.close()


async def test_shipments_are_committed_with_their_cursors_or_not_at_all(store: Store) -> None:
    extracts = (Extract("a.log", "r", (samples(1),)),)
    await store.commit(Outcome((Cursor("a.log", 1, 9, 9),), extracts=extracts), NOW)
    with pytest.raises(sqlite3.Error):
        await store.commit(Outcome((Cursor("a.log", None, 9, 99),), extracts=extracts), NOW)  # type: ignore[arg-type]
    assert [cursor.applied_to for cursor in (await store.load()).cursors] == [9]
    assert await numbers(store) == [1]


async def test_the_disk_itself_has_what_agents_and_hubs_were_told(store: Store, tmp_path: Path) -> None:
    assert await store._call(store._database._one, "PRAGMA synchronous") == 2  # FULL
    (tmp_path / "state.db").unlink()
    assert await store.keep_place()
    assert await store._call(store._database._one, "PRAGMA synchronous") == 2


async def test_a_request_takes_what_fits_and_one_at_least(store: Store) -> None:
    for step in range(100, 100 + MOST_SHIPMENTS + 5):
        await put(store, samples(step))
    assert len(await numbers(store)) == MOST_SHIPMENTS
    size = len((await store.shipments.oldest(1, NOW)).rows[0][2])
    assert [len(await numbers(store, limit)) for limit in (0, size, 2 * size, 2 * size + 9)] == [1, 1, 2, 2]


async def test_an_outbox_restored_from_a_copy_begins_a_new_epoch(store: Store) -> None:
    await put(store, samples(1))
    before = await store.shipments.oldest(ALL, NOW)
    assert await store.shipments.shipped(2, NOW) is None
    after = await store.shipments.oldest(ALL, NOW)
    assert after.epoch == before.epoch + 1
    assert after.rows == before.rows
    assert await store.shipments.shipped(9, NOW + 60) is None
    assert (await store.shipments.oldest(ALL, NOW)).epoch == round((NOW + 60) * 1000)


# ---------------------------------------------------------------------------------------------------- what goes in
async def test_a_long_read_becomes_shipments_that_a_hub_takes(store: Store) -> None:
    steps = [samples(step) for step in range(1000)]
    await put(store, *steps)
    rows = (await store.shipments.oldest(ALL, NOW)).rows
    assert len(rows) == -(-1000 // MOST_RECORDS)
    assert max(len(extracts) for *_, extracts in rows) <= SHIPMENT_BYTES
    there = [record for extract in await sent(store) for record in extract.records]
    assert [(record.step, record.values) for record in there if isinstance(record, Samples)] == [
        (step.step, step.values) for step in steps
    ]


async def test_large_records_are_shipped_alone_and_one_that_is_too_large_is_counted(store: Store) -> None:
    origin = samples(1).origin
    large = Samples(origin, 1, {f"{'k' * 190}{i}": 0.5 for i in range(2000)})
    too_large = Samples(origin, 2, {f"{'k' * 190}{i}": 0.5 for i in range(9000)})
    await put(store, large, too_large, large)
    rows = (await store.shipments.oldest(ALL, NOW)).rows
    assert [thinned for _, thinned, _ in rows] == [1, 0]
    assert all(SHIPMENT_BYTES < len(extracts) < RECORD_BYTES for *_, extracts in rows)
    assert [len(extract.records) for extract in await sent(store)] == [1, 1]


@pytest.mark.parametrize(
    "extract",
    [
        Extract("/logs/\udce4.log", "r", (samples(1),)),
        Extract("/" + "d" * 5000, "r", (samples(1),)),
        Extract("a.log", "ä\xa0b\u202e\n" + "x" * 200, (samples(1),)),
        Extract("a.log", "", (samples(1),)),
        Extract("a.log", "r", (event(folder="f" * 100_000, elapsed_s=60 * 10**20, n=-(10**30)),)),
        Extract("a.log", "r", (event(**{"k" * 300: 1, "ok": 2}),)),
        Extract("a.log", "r", (event(**{f"k{i}": i for i in range(200)}),)),
        Extract("a.log", "r", (Samples(Origin("a.log", 1, 9, Writer("W" * 999, 1, "i" * 999), "k"), 1, {"a": 1.0}),)),
        Extract("a.log", "r", (Samples(samples(1).origin, 1, {"k" * 201: 1.0, "ok": 2.0}),)),
        Extract("a.log", "r", (Samples(samples(1).origin, 1, {str(i): float("nan") for i in range(12_000)}),)),
        Extract("a.log", "r", (Samples(samples(1).origin, 1, {"a": 10**30}),)),
        Extract("a.log", "r", (Samples(samples(1).origin, 1, {"a": 1.0}, at=float("inf")),)),
    ],
)  # fmt: skip
async def test_whatever_a_log_says_is_shipped_so_that_a_hub_takes_it(store: Store, extract: Extract) -> None:
    await store.commit(Outcome(extracts=(extract,)), NOW)
    (there,) = await sent(store)
    assert len(there.records) == 1
    assert there.run.isprintable()
    record = there.records[0]
    if isinstance(record, Event):
        assert record.attributes
    else:
        assert record.values


# ---------------------------------------------------------------------------------------------------- room
def size_of(*records: Record) -> int:
    return sum(len(packed.extracts) for packed in pack_extracts([Extract("a.log", "r", records)]))


async def test_the_oldest_samples_go_where_there_is_no_room_and_events_stay(store: Store) -> None:
    for step in range(100, 200):
        await put(store, samples(step), event(step))
    room = 70 * size_of(samples(100), event(100))
    assert store.shipments.exceed(room)
    thinned = await store.shipments.thin(room)
    assert not store.shipments.exceed(room)
    rows = (await store.shipments.oldest(ALL, NOW)).rows
    left_out = [count for _, count, _ in rows]
    assert sum(left_out) == thinned
    assert left_out == [1] * thinned + [0] * (100 - thinned), "the oldest, and no more"
    records = [record for extract in await sent(store) for record in extract.records]
    assert sum(isinstance(record, Event) for record in records) == 100
    assert sum(isinstance(record, Samples) for record in records) == 100 - thinned
    assert 0.9 * room < sum(len(extracts) for *_, extracts in rows) <= room
    assert await store.shipments.thin(room) == 0


async def test_samples_of_gpus_go_as_those_of_steps_do(store: Store) -> None:
    for second in range(50):
        await put(store, *(gpu_sample("n1", card, NOW + second, 28.0) for card in range(8)), event(second))
    assert await store.shipments.thin(25 * 1500) > 100
    rows = (await store.shipments.oldest(ALL, NOW)).rows
    left_out = [count for _, count, _ in rows]
    assert set(left_out) == {0, 8}
    assert left_out == sorted(left_out, reverse=True), "the oldest first"
    records = [record for extract in await sent(store) for record in extract.records]
    assert sum(record.origin.kind != "gpu" for record in records) == 50
    assert sum(record.origin.kind == "gpu" for record in records) == 400 - sum(left_out)


async def test_events_alone_are_kept_over_the_room_without_trying_for_ever(store: Store) -> None:
    for step in range(50):
        await put(store, event(step), samples(step))
    assert await store.shipments.thin(1000) == 50
    await put(store, event(51))
    assert not store.shipments.exceed(1000)
    assert len(await numbers(store)) == 51
    await store.shipments.shipped(51, NOW)
    await put(store, *(samples(step) for step in range(60)))
    assert store.shipments.exceed(1000), "there is something to thin again"


async def test_a_slice_of_thinning_is_short(store: Store) -> None:
    large = Samples(samples(1).origin, 1, {f"metric/{i}": 0.5 for i in range(9000)})
    for _ in range(60):
        await put(store, large)
    slices: list[float] = []
    within = store.shipments._within

    async def timed(*arguments: Any) -> Any:
        begun = time.thread_time()
        result = await within(*arguments)
        slices.append(result) if isinstance(result, int) else None
        assert time.thread_time() - begun < 1.0
        return result

    store.shipments._within = timed
    assert await store.shipments.thin(1 << 20) == sum(slices) > 50
    assert max(slices) < 30


# ---------------------------------------------------------------------------------------------------- damage
async def test_a_shipment_missing_in_the_middle_does_not_stop_those_behind_it(store: Store) -> None:
    for step in range(5):
        await put(store, samples(step))
    damage(store, "DELETE FROM shipment WHERE number = 3")
    assert await numbers(store) == [1, 2]
    await store.shipments.shipped(2, NOW)
    found = await store.shipments.oldest(ALL, NOW)
    assert (found.number, [number for number, *_ in found.rows]) == (4, [4, 5])


JUNK = (b"", b"\xff", b"17", b'"x"', b"{}", b"[{}]", b"[[[[", b'[{"records":[{}]}]', b"[null]", b'[{"records":7}]')


@pytest.mark.parametrize("junk", JUNK)
async def test_a_damaged_shipment_is_given_up_and_counted(store: Store, junk: bytes) -> None:
    for step in range(3):
        await put(store, samples(step))
    damage(store, "UPDATE shipment SET extracts = ? WHERE number = 2", junk)
    assert not is_whole(junk)
    found: Oldest = await store.shipments.oldest(ALL, NOW)
    assert await store.shipments.give_up_unreadable(found.rows) == 1
    assert await numbers(store) == [1]
    assert store.notices == ("rows of the database that cannot be read are left out: 1 of shipment",)


@pytest.mark.parametrize("junk", JUNK)
async def test_a_damaged_shipment_does_not_end_thinning(store: Store, junk: bytes) -> None:
    for step in range(3):
        await put(store, samples(step))
    damage(store, "UPDATE shipment SET extracts = ? WHERE number = 2", junk)
    assert await store.shipments.thin(1) in {2, 3}
    assert [thinned for _, thinned, _ in (await store.shipments.oldest(ALL, NOW)).rows][::2] == [1, 1]


@pytest.mark.parametrize("statement", [
    "UPDATE shipment SET number = -4 WHERE number = 1",
    "UPDATE shipment SET samples = 'x' WHERE number = 1",
    "UPDATE shipment SET created_at = 'soon' WHERE number = 1",
    "UPDATE shipment SET extracts = 'text' WHERE number = 1",
    "UPDATE shipment SET thinned = -1 WHERE number = 1",
])  # fmt: skip
async def test_a_row_that_makes_no_sense_is_left_out_at_the_start(tmp_path: Path, statement: str) -> None:
    store = await Store.open(tmp_path)
    await put(store, samples(1))
    await put(store, samples(2))
    await store.close()
    damage(store, statement)
    store = await Store.open(tmp_path)
    assert await numbers(store) == [2]
    assert store.notices == ("rows of the database that cannot be read are left out: 1 of shipment",)
    await store.close()


@pytest.mark.parametrize("statement", [
    "DELETE FROM sqlite_sequence",
    "UPDATE sqlite_sequence SET seq = 'junk'",
    "UPDATE shipping SET epoch = 'junk'",
    "DELETE FROM shipping",
])  # fmt: skip
async def test_the_table_goes_on_where_its_counters_are_damaged(tmp_path: Path, statement: str) -> None:
    store = await Store.open(tmp_path)
    await put(store, samples(1))
    epoch = (await store.shipments.oldest(ALL, NOW)).epoch
    await store.close()
    damage(store, statement)
    store = await Store.open(tmp_path)
    await put(store, samples(2))
    found = await store.shipments.oldest(ALL, NOW + 1)
    assert found.epoch >= epoch
    assert [json.loads(extracts)[0]["records"][0]["step"] for *_, extracts in found.rows] == [1, 2]
    await store.close()
