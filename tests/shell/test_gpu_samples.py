"""Samples of GPUs are kept packed: all of a day, then one in ten minutes, and within bounds."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.outbox import notification
from verlwatch.core.types import GpuCell, GpuRow, Outcome, State, StepRow
from verlwatch.shell.store import Store, StoreUnavailable

DAY = 86_400.0
START = 20_000 * DAY
CARDS = 8


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "state")
    yield store
    await store.close()


def row(at: float, *used: float | None, host: str = "n1", run: str = "r", rank: int = 0) -> GpuRow:
    cells = tuple(GpuCell(str(gpu), str(rank + gpu), 79.65, value, 97.0, 412.0, 61.0) for gpu, value in enumerate(used))
    return GpuRow(run, host, at, cells)


async def keep(store: Store, *rows: GpuRow, now: float = START) -> None:
    await store.commit(Outcome(gpus=rows), now)


async def everything(store: Store, run: str = "r") -> list[GpuRow]:
    """What lies 5 s apart or more."""
    return await store.gpus.stretch(run, START - 1, START - 1 + 20 * DAY, round(4 * DAY))


def used(rows: list[GpuRow]) -> list[tuple[float, float | None]]:
    return [(row.at - START, row.cells[0].used_gb) for row in rows]


# ---------------------------------------------------------------------------------------------------- keeping
async def test_what_was_sampled_comes_back_after_a_reopening(tmp_path: Path) -> None:
    kept = [row(START, 28.5, None), row(START + 5, 68.25, 1.0), row(START, 3.0, host="n2"), row(START, 4.0, run="s")]
    store = await Store.open(tmp_path)
    await keep(store, *kept)
    await store.close()
    store = await Store.open(tmp_path)
    assert await everything(store) == kept[:3]
    assert await everything(store, "s") == kept[3:]
    assert await everything(store, "unknown") == []
    await store.close()


async def test_what_is_not_known_of_a_card_stays_unknown_and_what_is_absurd_is_cut(store: Store) -> None:
    nothing = GpuRow("r", "n1", START, (GpuCell("0"), GpuCell("1", None, None, 1e12, -3.0, 1e9, 1e9)))
    await keep(store, nothing)
    ((unknown, absurd),) = [kept.cells for kept in await everything(store)]
    assert unknown == GpuCell("0")
    assert absurd == GpuCell("1", None, None, (2**32 - 2) / 1024, None, 65_534.0, 254.0)


async def test_an_instant_that_is_told_again_stays_as_it_was(store: Store) -> None:
    await keep(store, row(START, 1.0))
    await keep(store, row(START, 2.0))
    assert used(await everything(store)) == [(0.0, 1.0)]


async def test_cards_that_come_go_and_change_their_ranks_keep_their_own_history(store: Store) -> None:
    kept = [row(START, 1.0, 2.0), row(START + 10, 3.0), row(START + 20, 4.0, 5.0, rank=8), row(START + 30, 6.0, 7.0)]
    await keep(store, *kept)
    assert await everything(store) == kept


async def test_a_commit_that_fails_keeps_no_samples(store: Store) -> None:
    bad = State("run", "r", 1, {"x": object()})
    with pytest.raises(TypeError):
        await store.commit(Outcome(states=(bad,), gpus=(row(START, 1.0),)), START)
    assert await everything(store) == []


# ---------------------------------------------------------------------------------------------------- reading
async def test_a_stretch_has_the_last_instant_of_each_part(store: Store) -> None:
    await keep(store, *(row(START + at, float(at), host=host) for at in range(0, 1001, 10) for host in ("n1", "n2")))
    rows = await store.gpus.stretch("r", START, START + 1000, 10)
    assert used(rows) == [(float(at), float(at)) for _ in range(2) for at in range(100, 1001, 100)]
    assert used(await store.gpus.stretch("r", START - 1, START + 25, 100))[:3] == [
        (0.0, 0.0),
        (10.0, 10.0),
        (20.0, 20.0),
    ]
    assert await store.gpus.stretch("r", START, START, 10) == []
    assert used(await store.gpus.stretch("r", START + 990, START + 1000, 1)) == [(1000.0, 1000.0)] * 2


@pytest.mark.parametrize("most", [1, 3, 7, 50, 101, 1000])
async def test_a_stretch_has_no_more_than_was_asked_for_and_ends_with_the_newest(store: Store, most: int) -> None:
    await keep(store, *(row(START + at, float(at)) for at in range(10, 1011, 10)))
    rows = used(await store.gpus.stretch("r", START, START + 1010, most))
    assert len(rows) == min(most, 101)
    assert rows[-1] == (1010.0, 1010.0)


# ---------------------------------------------------------------------------------------------------- room
async def prune(store: Store, now: float, keep_s: float = 90 * DAY, room: int = 1 << 30) -> None:
    await store.prune(now, keep_s, room)


async def test_after_a_day_one_instant_in_ten_minutes_is_left_with_the_least_and_the_most(store: Store) -> None:
    values = {at: 28.0 + (40.0 if at % 60 < 30 else 0.0) + at / 10_000 for at in range(0, 3600, 10)}
    await keep(store, *(row(START + at, value, None) for at, value in values.items()))
    await prune(store, START + DAY + 1800)
    rows = await everything(store)
    assert [kept.at - START for kept in rows] == [590.0, 1190.0, 1790.0, *(float(at) for at in range(1800, 3600, 10))]
    first = rows[0].cells[0]
    assert first.used_gb == pytest.approx(values[590], abs=0.001)
    assert first.low_gb == pytest.approx(min(v for at, v in values.items() if at < 600), abs=0.001)
    assert first.high_gb == pytest.approx(max(v for at, v in values.items() if at < 600), abs=0.001)
    assert (rows[0].cells[1].used_gb, rows[0].cells[1].low_gb, rows[0].cells[1].high_gb) == (None, None, None)
    assert (rows[3].cells[0].low_gb, rows[3].cells[0].high_gb) == (None, None)


async def test_what_comes_after_a_day_is_thinned_with_what_was_thinned_before(store: Store) -> None:
    await keep(store, row(START + 10, 5.0), row(START + 20, 9.0), row(START + 700, 1.0))
    await prune(store, START + 2 * DAY)
    await keep(store, row(START + 30, 2.0), row(START + 710, 3.0))
    await prune(store, START + 2 * DAY)
    cells = [kept.cells[0] for kept in await everything(store)]
    assert [(cell.used_gb, cell.low_gb, cell.high_gb) for cell in cells] == [(2.0, 2.0, 9.0), (3.0, 1.0, 3.0)]


async def test_thinning_twice_changes_nothing(store: Store) -> None:
    await keep(store, *(row(START + at, float(at % 70)) for at in range(0, 7200, 10)))
    await prune(store, START + 2 * DAY)
    once = await everything(store)
    assert len(once) == 12
    await prune(store, START + 3 * DAY)
    assert await everything(store) == once


async def test_samples_go_by_age_with_the_names_of_their_cards(store: Store) -> None:
    await keep(store, row(START, 1.0), row(START + 10 * DAY, 2.0, 3.0))
    await prune(store, START + 20 * DAY, keep_s=15 * DAY)
    assert [kept.at for kept in await everything(store)] == [START + 10 * DAY]
    assert await store._call(store._database._one, "SELECT count(*) FROM gpu_cards") == 1


async def test_while_the_clock_cannot_be_relied_on_nothing_is_thinned(store: Store) -> None:
    await keep(store, row(START, 1.0), row(START + 10, 2.0))
    await prune(store, START + 99 * DAY, keep_s=float("inf"))
    assert len(await everything(store)) == 2


async def test_over_the_size_samples_go_before_steps_and_the_oldest_first(store: Store) -> None:
    steps = tuple(StepRow("r", 1, step, START, {f"key/{n}": n * 1.1 for n in range(100)}) for step in range(300))
    await store.commit(Outcome(steps=steps, notifications=(notification("k"),)), START)
    for first in range(0, 300, 30):
        instants = range(10 * first, 10 * first + 300, 10)
        await keep(store, *(row(START + at, *range(64), host=f"n{host}") for at in instants for host in range(10)))
    await store._call(store._database._one, "PRAGMA wal_checkpoint(TRUNCATE)")
    await prune(store, START, room=store._database.on_disk())
    left = [kept.at - START for kept in await everything(store)]
    assert 100 < len(left) < 300 * 10
    assert (min(left) > 0.0, max(left)) == (True, 2990.0)
    assert len(await store.steps("r", last=5000)) == 300
    await prune(store, START, room=300_000)
    assert await everything(store) == []
    assert 32 <= len(await store.steps("r", last=5000)) < 300


async def test_a_day_of_a_card_takes_less_than_a_hundred_and_fifty_kilobytes(store: Store) -> None:
    """90 days of 64 cards: a day raw, the rest thinned, far below the 256 MiB that are allowed by default."""
    values = [28.0 + card for card in range(CARDS)]
    before = store.size()
    for first in range(0, 8640, 360):
        await keep(store, *(row(START + 10.0 * at, *values) for at in range(first, first + 360)))
    await store._call(store._database._one, "PRAGMA wal_checkpoint(TRUNCATE)")
    raw = (store._database.on_disk() - before) / CARDS
    await prune(store, START + 3 * DAY)
    assert len(await everything(store)) == 144
    pages = await store._call(store._database._one, "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'gpu_%'")
    thinned = pages / CARDS
    assert raw < 150_000
    assert thinned < 8_000
    assert 64 * (raw + 89 * thinned) < 64 << 20


# ---------------------------------------------------------------------------------------------------- trouble
async def test_rows_that_cannot_be_read_are_left_out_and_counted(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await keep(store, *(row(START + at, float(at)) for at in range(0, 100, 10)), row(START, 1.0, host="n2"))
    await store.close()
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("UPDATE gpu_sample SET data = x'00' WHERE at = ? AND cards = 1", (START + 20,))
        connection.execute("UPDATE gpu_sample SET data = 'text' WHERE at = ? AND cards = 1", (START + 30,))
        connection.execute("UPDATE gpu_cards SET cards = '[[1]]' WHERE host = 'n2'")
    connection.close()
    store = await Store.open(tmp_path)
    assert [at for at, _ in used(await everything(store))] == [0.0, 10.0, *map(float, range(40, 100, 10))]
    assert store.notices == ("rows of the database that cannot be read are left out: 1 of gpu_cards, 2 of gpu_sample",)
    await prune(store, START + 3 * DAY)
    assert [kept.at - START for kept in await everything(store)] == [90.0]
    await store.close()


async def test_samples_whose_cards_are_damaged_go_to_no_other_card(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await keep(store, row(START, 1.0), row(START, 2.0, host="n2"))
    await store.close()
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("UPDATE gpu_cards SET host = 17.5 WHERE host = 'n2'")
        connection.execute("UPDATE gpu_cards SET run = x'00' WHERE id = 2")
    connection.close()
    store = await Store.open(tmp_path)
    await keep(store, row(START + 10, 3.0, host="n3"))
    assert [(kept.host, kept.at - START) for kept in await everything(store)] == [("n1", 0.0), ("n3", 10.0)]
    await store.close()


async def test_a_full_disk_refuses_samples_and_takes_them_afterwards(store: Store) -> None:
    limit = await store._call(store._database._one, "PRAGMA page_count")
    await store._call(store._database._one, f"PRAGMA max_page_count = {limit}")
    rows = [row(START + 10 * at, *range(CARDS)) for at in range(2000)]
    with pytest.raises(StoreUnavailable):
        await keep(store, *rows)
    assert await everything(store) == []
    await store._call(store._database._one, "PRAGMA max_page_count = 1000000")
    await keep(store, *rows)
    assert len(await everything(store)) == 2000
