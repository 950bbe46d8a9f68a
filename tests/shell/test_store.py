"""The store keeps what was committed, whole, and in order."""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import sqlite3
import subprocess
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes.outbox import notification, outcome
from verlwatch.core.types import Cursor, Outcome, State, StepRow, Transition
from verlwatch.shell._room import LAST_STEPS
from verlwatch.shell._rows import pack, unpack
from verlwatch.shell.notifiers import sample_message
from verlwatch.shell.store import LONGEST_DELAY_S, StateDirInUse, Store, StoreDamaged, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

FIRST_SCHEMA = Path(__file__).parents[1] / "data" / "schema-1.sql"
CURSOR = Cursor("/logs/a.log", 3, 100, 120, mark=b"\x00\xffmark", token='{"ino":"18446744073709551615"}')
TRANSITION = Transition(
    "opened", "i1", "phase_spike", "r", 1, "gen", 120, 121, 3.94, "warning", "gen took ×3.94", 121, 41.2, 162.3
)
AWKWARD = (0.1 + 0.2, 1e-320, -0.0, 1.7976931348623157e308, 123456789.123456789, math.pi)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "state")
    yield store
    await store.close()


def row(
    step: int, values: dict[str, float] | None = None, *, attempt: int = 1, run: str = "r", at: float = 0.0
) -> StepRow:
    return StepRow(run, attempt, step, at, {"timing_s/gen": float(step)} if values is None else values)


# ---------------------------------------------------------------------------------------------------- core
async def test_what_was_committed_is_loaded_after_a_reopening(tmp_path: Path) -> None:
    state = State("series", "r\0gen", 2, {"level": 0.1, "window": [1.5, None], "names": {"a\n": "×"}})
    store = await Store.open(tmp_path)
    await store.commit(Outcome((CURSOR,), (row(1), row(2)), (state,), (TRANSITION,), (notification("k"),)), 5.0)
    await store.close()

    store = await Store.open(tmp_path)
    snapshot = await store.load()
    assert snapshot.cursors == (CURSOR,)
    assert snapshot.states == (state,)
    assert snapshot.steps == (row(1), row(2))
    assert await store.transitions() == [(5.0, TRANSITION)]
    (due,) = await store.outbox.due("slack", 5.0, 10)
    assert due.message == replace(sample_message(), incident="i1", title="title of k")
    assert (due.dedup_key, due.reason, due.created_at, due.attempts) == ("k", "opened", 5.0, 0)
    await store.close()


async def test_later_cursors_and_states_replace_earlier_ones_and_no_data_forgets_a_state(store: Store) -> None:
    first, second = State("run", "a", 1, {"n": 1}), State("run", "b", 1, {"n": 1})
    await store.commit(Outcome((CURSOR,), (), (first, second)), 1.0)
    moved = replace(CURSOR, generation=4, reread_from=0, applied_to=0, mark=b"", token="")
    await store.commit(Outcome((moved,), (), (replace(first, data=None), replace(second, version=2))), 2.0)
    snapshot = await store.load()
    assert snapshot.cursors == (moved,)
    assert snapshot.states == (State("run", "b", 2, {"n": 1}),)


async def test_every_float_comes_back_exactly(store: Store) -> None:
    values = {str(i): value for i, value in enumerate(AWKWARD)}
    await store.commit(Outcome((), (row(1, values),), (State("run", "r", 1, {"deep": [list(AWKWARD)]}),)), 1.0)
    snapshot = await store.load()
    assert [repr(value) for value in snapshot.steps[0].values.values()] == [repr(value) for value in AWKWARD]
    data = snapshot.states[0].data
    assert data is not None
    assert [repr(value) for value in data["deep"][0]] == [repr(value) for value in AWKWARD]


async def test_nan_and_the_infinities_come_back(store: Store) -> None:
    values = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.5}
    await store.commit(Outcome((), (row(1, values),), (State("run", "r", 1, {"x": [math.nan, None]}),)), 1.0)
    snapshot = await store.load()
    assert repr(dict(snapshot.steps[0].values)) == repr(values)
    assert repr(snapshot.states[0].data) == "{'x': [nan, None]}"


def test_null_in_state_does_not_leave_the_fast_path() -> None:
    assert pack({"a": None, "b": [1.0]}) == b'{"a":null,"b":[1.0]}'
    assert unpack(pack({"a": None, "b": math.inf})) == {"a": None, "b": math.inf}


async def test_values_already_stored_for_a_step_win_and_new_ones_are_added(store: Store) -> None:
    await store.commit(Outcome((), (row(7, {"a": 1.0, "b": math.nan}, at=1.0),)), 1.0)
    await store.commit(Outcome((), (row(7, {"a": 9.0, "b": 9.0, "c": 3.0}, at=2.0), row(7, {"c": 4.0}, at=3.0))), 2.0)
    (stored,) = await store.steps("r")
    assert repr(dict(stored.values)) == repr({"a": 1.0, "b": math.nan, "c": 3.0})
    assert stored.at == 1.0


async def test_only_the_last_steps_of_the_latest_attempts_are_loaded(store: Store) -> None:
    rows = [row(step, attempt=attempt, run=run) for run in ("r", "s") for attempt in (1, 2, 3) for step in range(5)]
    await store.commit(Outcome((), tuple(rows)), 1.0)
    places = [(each.run, each.attempt, each.step) for each in (await store.load(2)).steps]
    assert places == [(run, attempt, step) for run in ("r", "s") for attempt in (2, 3) for step in (3, 4)]


async def test_a_prefix_loads_only_the_values_asked_for(store: Store) -> None:
    await store.commit(Outcome((), (row(1, {"timing_s/gen": 1.0, "actor/loss": 2.0}),)), 1.0)
    assert [dict(each.values) for each in (await store.load(prefix="timing")).steps] == [{"timing_s/gen": 1.0}]


async def test_steps_are_those_of_the_latest_attempt_unless_another_is_named(store: Store) -> None:
    await store.commit(Outcome((), (row(1), row(2), row(3), row(1, attempt=2))), 1.0)
    assert await store.steps("r") == [row(1, attempt=2)]
    assert await store.steps("r", 1, last=2) == [row(2), row(3)]
    assert await store.steps("unknown") == []


async def test_transitions_are_the_last_ones_oldest_first(store: Store) -> None:
    for step in range(5):
        await store.commit(Outcome(transitions=(replace(TRANSITION, step=step),)), float(step))
    assert [(at, each.step) for at, each in await store.transitions(2)] == [(3.0, 3), (4.0, 4)]


# ---------------------------------------------------------------------------------------------------- outbox
async def due_keys(store: Store, now: float = 100.0, receiver: str = "slack") -> list[str]:
    return [each.dedup_key for each in await store.outbox.due(receiver, now, 10)]


async def test_a_notification_already_in_the_outbox_stays_as_it_is(store: Store) -> None:
    await store.commit(outcome(notification("k")), 1.0)
    (first,) = await store.outbox.due("slack", 1.0, 1)
    await store.outbox.done(first.id, 2.0)
    await store.commit(outcome(notification("k"), notification("k", receiver="hook")), 3.0)
    assert await due_keys(store) == []
    assert await due_keys(store, receiver="hook") == ["k"]


async def test_a_message_waits_for_its_elders_of_the_same_incident(store: Store) -> None:
    await store.commit(outcome(notification("a1", "a"), notification("b1", "b"), notification("a2", "a")), 1.0)
    assert await due_keys(store) == ["a1", "b1"]
    a1, b1 = await store.outbox.due("slack", 1.0, 10)
    await store.outbox.begin(a1.id)
    await store.outbox.retry(a1.id, 50.0, "down")
    assert await due_keys(store, 49.0) == ["b1"]
    assert await due_keys(store, 50.0) == ["a1", "b1"]
    await store.outbox.dead(a1.id, 50.0, "no")
    await store.outbox.done(b1.id, 50.0)
    assert await due_keys(store) == ["a2"]


async def test_the_next_due_time_is_that_of_the_oldest_of_an_incident(store: Store) -> None:
    assert await store.outbox.next_due("slack") is None
    await store.commit(outcome(notification("a1", "a"), notification("a2", "a"), notification("b1", "b")), 1.0)
    a1, b1 = await store.outbox.due("slack", 1.0, 10)
    await store.outbox.begin(a1.id)
    await store.outbox.retry(a1.id, 60.0, "down")
    await store.outbox.begin(b1.id)
    await store.outbox.retry(b1.id, 70.0, "down")
    assert await store.outbox.next_due("slack") == 60.0
    assert await store.outbox.hold("slack") == 70.0
    assert await store.outbox.hold("hook") == 0.0


async def test_a_due_time_that_a_wrong_clock_wrote_counts_as_due(store: Store) -> None:
    await store.commit(outcome(notification("k")), 1.0)
    (row,) = await store.outbox.due("slack", 1.0, 1)
    await store.outbox.begin(row.id)
    await store.outbox.retry(row.id, 4e9, "down")
    assert await due_keys(store, 4e9 - LONGEST_DELAY_S) == []
    assert await due_keys(store, 1e9) == ["k"]


async def test_a_message_that_was_never_tried_is_due_whatever_the_clock_said(store: Store) -> None:
    await store.commit(outcome(notification("k")), 7200.0)
    assert await due_keys(store, 3600.0) == ["k"]


async def test_pending_rows_are_brought_forward_for_one_receiver(store: Store) -> None:
    await store.commit(outcome(notification("k"), notification("k", receiver="hook")), 0.0)
    for receiver in ("slack", "hook"):
        (row,) = await store.outbox.due(receiver, 0.0, 1)
        await store.outbox.begin(row.id)
        await store.outbox.retry(row.id, 7200.0, "down")
    await store.outbox.bring_forward("slack", 3600.0)
    assert (await store.outbox.next_due("slack"), await store.outbox.next_due("hook")) == (3600.0, 7200.0)


async def test_rows_of_a_removed_receiver_become_dead_letters(store: Store) -> None:
    await store.commit(outcome(notification("k"), notification("k", receiver="hook")), 1.0)
    assert await store.outbox.drop_receivers({"hook"}, 2.0) == 1
    stats = await store.outbox.stats()
    assert (stats["slack"].pending, stats["slack"].dead) == (0, 1)
    assert stats["slack"].last_error == "the receiver is no longer configured"
    assert stats["hook"].pending == 1


async def test_stats_count_by_receiver_and_tell_the_oldest_and_the_last_error(store: Store) -> None:
    await store.commit(outcome(*(notification(f"k{n}", f"i{n}") for n in range(4))), 1.0)
    await store.commit(outcome(notification("late", "i9")), 9.0)
    first, second, third = await store.outbox.due("slack", 1.0, 3)
    await store.outbox.done(first.id, 2.0)
    await store.outbox.dead(second.id, 2.0, "gone")
    await store.outbox.begin(third.id)
    await store.outbox.retry(third.id, 30.0, "down")
    stats = (await store.outbox.stats())["slack"]
    assert (stats.pending, stats.done, stats.dead) == (3, 1, 1)
    assert stats.oldest_pending_at == 1.0
    assert stats.last_error == "down"


# ---------------------------------------------------------------------------------------------------- retention
async def test_prune_forgets_what_is_old_and_keeps_what_is_pending(store: Store) -> None:
    rows = tuple(row(step, at=float(step)) for step in range(2000))
    await store.commit(Outcome((), rows, (), (TRANSITION,), (notification("a"), notification("b", "i2"))), 1.0)
    first, _ = await store.outbox.due("slack", 1.0, 10)
    await store.outbox.done(first.id, 2.0)
    await store.prune(3000.0, 1500.0, 1 << 30)
    assert [each.step for each in await store.steps("r")] == list(range(1500, 2000))
    assert await store.transitions() == []
    stats = (await store.outbox.stats())["slack"]
    assert (stats.pending, stats.done) == (1, 0)


async def test_a_source_that_was_not_seen_for_long_is_forgotten_and_one_that_only_stands_still_is_not(
    store: Store,
) -> None:
    day = 86_400.0
    await store.commit(Outcome((replace(CURSOR, source="gone"), replace(CURSOR, source="still"))), 0.0)
    for days in range(1, 91):
        await store.prune(days * day, 90 * day, 1 << 30, ["still"])
    assert [cursor.source for cursor in (await store.load()).cursors] == ["gone", "still"]
    await store.prune(90 * day + 1, 90 * day, 1 << 30, ["still"])
    assert [cursor.source for cursor in (await store.load()).cursors] == ["still"]


CAP = 16 << 20
WIDE = {f"key/{n}": n * 1.1 for n in range(100)}


async def commit_wide(store: Store, first: int, last: int, run: str = "r") -> None:
    await store.commit(Outcome((), tuple(row(n, WIDE, run=run, at=float(n)) for n in range(first, last))), 1.0)


async def test_over_the_size_the_oldest_steps_go_until_the_disk_has_its_space_back(store: Store) -> None:
    for first in range(0, 16000, 1000):
        await commit_wide(store, first, first + 1000)
    assert store.size() > 2 * CAP
    await store.prune(0.0, 1e9, CAP)
    left = [each.step for each in await store.steps("r", last=16000)]
    assert left == list(range(16000 - len(left), 16000))
    assert CAP // 3 < store.size() <= CAP, "no more than needed went"
    assert store.size() == sum(store.path.with_name(name).stat().st_size for name in ("state.db", "state.db-wal"))
    await commit_wide(store, 16000, 16100)
    await store.prune(0.0, 1e9, CAP)
    assert len(await store.steps("r", last=16000)) == len(left) + 100, "below the size nothing goes"


async def test_each_slice_of_pruning_is_short_however_much_there_is_to_do(store: Store) -> None:
    for first in range(0, 8000, 1000):
        await commit_wide(store, first, first + 1000)
    slices = [8000]
    while await store._call(store._database.shrink, CAP // 16):
        slices.append(await store._call(store._database._one, "SELECT count(*) FROM step"))
    assert max(before - after for before, after in pairwise(slices)) <= 200
    assert len(slices) > 20


async def test_whatever_the_size_nothing_goes_that_is_still_needed(store: Store) -> None:
    await commit_wide(store, 0, 500)
    await commit_wide(store, 0, 40, run="s")
    state = State("run", "r", 1, {"x": "y" * (2 << 20)})
    await store.commit(Outcome((CURSOR,), (), (state,), (), (notification("k"),)), 1.0)
    await store.prune(0.0, 1e9, 1 << 20)
    snapshot = await store.load()
    assert (snapshot.cursors, snapshot.states, await due_keys(store)) == ((CURSOR,), (state,), ["k"])
    assert [each.step for each in snapshot.steps if each.run == "r"] == list(range(500 - LAST_STEPS, 500))
    assert [each.step for each in snapshot.steps if each.run == "s"] == list(range(40 - LAST_STEPS, 40))
    (notice,) = store.notices
    assert "is larger than storage.max_size (2 MiB) and what is left in it is still needed" in notice
    await store.commit(Outcome((), (), (replace(state, data=None),)), 2.0)
    await store.prune(0.0, 1e9, 1 << 20)
    assert store.notices == ()


async def test_a_database_that_could_not_give_space_back_is_rewritten_once(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.executescript(f"{FIRST_SCHEMA.read_text()}; PRAGMA user_version = 1;")
    connection.close()
    store = await Store.open(tmp_path)
    await commit_wide(store, 0, 3000)
    full = store.size()
    await store.prune(1e9, 1.0, 1 << 30)
    assert await store._call(store._database._one, "PRAGMA auto_vacuum") == 2
    await store.close()
    assert store.size() < full / 10


# ---------------------------------------------------------------------------------------------------- trouble
async def test_a_commit_that_the_disk_refuses_changes_nothing_and_can_be_repeated(store: Store) -> None:
    await store.commit(Outcome((CURSOR,)), 1.0)
    pages = await store._call(store._database._one, "PRAGMA page_count")
    await store._call(store._database._one, f"PRAGMA max_page_count = {pages + 1}")
    moved = replace(CURSOR, applied_to=999)
    big = Outcome((moved,), tuple(row(n, {f"k{n}" * 50: 1.0}) for n in range(500)), (), (), (notification("k"),))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=r"state\.db cannot be written or read .*full.*free space"):
            await store.commit(big, 2.0)
        assert store.error is not None
        snapshot = await store.load()
        assert (snapshot.cursors, snapshot.steps) == ((CURSOR,), ())
        assert await due_keys(store) == []
    await store._call(store._database._one, "PRAGMA max_page_count = 1000000")
    await store.commit(big, 3.0)
    snapshot = await store.load()
    assert (snapshot.cursors, len(snapshot.steps), store.error) == ((moved,), 500, None)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 KiB of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or mount("-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)):
        pytest.skip("mounting a small file system is not allowed here")
    yield disk
    subprocess.run(["umount", disk], check=True)


def mount(*arguments: str) -> int:
    return subprocess.run(["mount", *arguments], check=False, capture_output=True).returncode


async def test_a_full_file_system_loses_nothing(small_disk: Path) -> None:
    def part(number: int) -> Outcome:
        return Outcome((replace(CURSOR, applied_to=number),), (row(number),))

    store = await Store.open(small_disk / "state")
    committed = 0
    while store.error is None:
        with suppress(StoreUnavailable):
            await store.commit(part(committed), 1.0)
            committed += 1
    assert [each.step for each in (await store.load()).steps] == list(range(committed))
    assert mount("-o", "remount,size=4m", str(small_disk)) == 0
    await store.commit(part(committed), 1.0)
    await store.close()

    store = await Store.open(small_disk / "state")
    snapshot = await store.load()
    assert (snapshot.cursors[0].applied_to, snapshot.steps[-1].step) == (committed, committed)
    await store.close()


async def test_a_damaged_database_is_set_aside_and_a_new_one_begun(tmp_path: Path) -> None:
    for name, content in (("noise", b"\x00\x01" * 5000), ("text", b"this is no database at all" * 100)):
        state_dir = tmp_path / name
        state_dir.mkdir()
        (state_dir / "state.db").write_bytes(content)
        store = await Store.open(state_dir)
        assert store.set_aside == state_dir / "state.db.corrupt-1"
        assert store.set_aside.read_bytes() == content
        await store.commit(Outcome((CURSOR,)), 1.0)
        assert (await store.load()).cursors == (CURSOR,)
        await store.close()


async def test_damage_in_the_middle_is_found_at_the_next_start(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await store.commit(Outcome((), tuple(row(n) for n in range(3000))), 1.0)
    await store.close()
    with (tmp_path / "state.db").open("r+b") as file:
        file.seek(10 * 4096)
        file.write(b"\xa5" * 4096 * 5)
    (tmp_path / "state.db.corrupt-1").touch()
    store = await Store.open(tmp_path)
    assert store.set_aside == tmp_path / "state.db.corrupt-2"
    assert (await store.load()).steps == ()
    await store.close()


async def test_damage_met_while_running_says_to_restart(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await store.commit(Outcome((), tuple(row(n) for n in range(3000))), 1.0)
    await store._call(store._database._one, "PRAGMA wal_checkpoint(TRUNCATE)")
    (tmp_path / "state.db").write_bytes(b"\xa5" * (tmp_path / "state.db").stat().st_size)
    await store._call(store._database._sql.execute, "PRAGMA shrink_memory")
    with pytest.raises(StoreDamaged, match=r"state\.db is damaged .*restart"):
        await store.load()
    await store.close()


async def test_a_second_process_is_refused_with_the_pid_of_the_first(store: Store) -> None:
    with pytest.raises(StateDirInUse, match=rf"is in use by process {os.getpid()}; stop that one first"):
        await Store.open(store.path.parent)


async def test_a_closed_store_lets_go_of_its_directory(tmp_path: Path) -> None:
    for _ in range(2):
        store = await Store.open(tmp_path)
        await store.close()


async def test_only_the_owner_can_read_the_files(store: Store) -> None:
    await store.commit(Outcome((CURSOR,)), 1.0)
    modes = {file.name: file.stat().st_mode & 0o777 for file in store.path.parent.iterdir()}
    assert modes == dict.fromkeys(("lock", "state.db", "state.db-wal", "state.db-shm"), 0o600)
    assert store.path.parent.stat().st_mode & 0o777 == 0o700


async def test_a_programming_error_is_not_taken_for_a_full_disk(store: Store) -> None:
    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        await store._call(store._database._one, "SELEKT 1")


async def test_a_start_waits_out_those_who_only_look(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await store.close()
    looking = os.open(tmp_path / "lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    starting = asyncio.ensure_future(Store.open(tmp_path))
    await asyncio.sleep(0.1)
    os.close(looking)
    await (await starting).close()
