"""The outbox as people see and change it, and what is merged in it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from verlwatch.commands.outbox import _line
from verlwatch.core.types import Incident, Notice
from verlwatch.roles import tell_of_removed
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.letters import PATH, Letters
from verlwatch.shell.store import OutboxRow, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NOW = 1_000_000.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


class Desk:
    """Asks as HTTP would."""

    def __init__(self, store: Store, *receivers: str) -> None:
        self.woken = 0
        self._actions = Letters(store.outbox, VirtualClock(NOW), lambda: receivers, self._wake).actions()

    def _wake(self) -> None:
        self.woken += 1

    async def list(self) -> list[dict[str, Any]]:
        letters: list[dict[str, Any]] = (await self._actions["GET", PATH]({}))["letters"]
        return letters

    async def post(self, verb: str, **asked: Any) -> dict[str, Any]:
        return dict(await self._actions["POST", f"{PATH}/{verb}"](asked))


async def rows(store: Store, *keys: tuple[str, str]) -> list[OutboxRow]:
    await store.commit(outcome(*(notification(key, incident) for key, incident in keys)), NOW)
    return await store.outbox.due("slack", NOW, 100)


async def due(store: Store) -> list[str]:
    return [row.dedup_key for row in await store.outbox.due("slack", NOW, 100)]


async def test_what_waits_and_what_was_given_up_is_listed_oldest_first(store: Store) -> None:
    a, b, c = await rows(store, ("a", "i1"), ("b", "i2"), ("c", "i3"))
    await store.outbox.begin(a.id)
    await store.outbox.dead(a.id, NOW, "the channel is archived")
    await store.outbox.done(b.id, NOW)
    letters = await Desk(store).list()
    assert [(one["id"], one["status"], one["error"], one["title"]) for one in letters] == [
        (a.id, "dead", "the channel is archived", "title of a"),
        (c.id, "pending", "", "title of c"),
    ]
    assert [one["due_at"] for one in letters] == [None, NOW]


async def test_a_dead_letter_that_is_retried_is_due_at_once_and_goes_before_its_youngers(store: Store) -> None:
    await rows(store, ("a1", "i1"), ("a2", "i1"))
    (a1,) = await store.outbox.due("slack", NOW, 10)
    await store.outbox.dead(a1.id, NOW, "no")
    assert await due(store) == ["a2"]
    desk = Desk(store, "slack")
    assert await desk.post("retry", ids=[a1.id]) == {
        "retried": (a1.id,),
        "superseded": (),
        "removed": {},
        "unknown": (),
    }
    assert (await due(store), desk.woken) == (["a1"], 1)


async def test_a_dead_letter_is_not_sent_where_a_newer_one_of_its_incident_was_delivered(store: Store) -> None:
    await rows(store, ("a1", "i1"), ("a2", "i1"), ("b", "i2"))
    a1, b = await store.outbox.due("slack", NOW, 10)
    await store.outbox.dead(a1.id, NOW, "no")
    await store.outbox.dead(b.id, NOW, "no")
    a2 = (await store.outbox.due("slack", NOW, 10))[0]
    await store.outbox.done(a2.id, NOW)
    desk = Desk(store, "slack")
    assert await desk.post("retry", all=True) == {
        "retried": (b.id,),
        "superseded": (a1.id,),
        "removed": {},
        "unknown": (),
    }
    assert await due(store) == ["b"]
    assert [one["id"] for one in await desk.list()] == [a1.id, b.id]


async def test_what_is_no_dead_letter_of_a_receiver_in_force_is_not_retried(store: Store) -> None:
    a, b = await rows(store, ("a", "i1"), ("b", "i2"))
    await store.outbox.dead(a.id, NOW, "no")
    assert await Desk(store, "other").post("retry", ids=[a.id, b.id, 999]) == {
        "retried": (), "superseded": (), "removed": {"slack": (a.id,)}, "unknown": (b.id, 999)
    }  # fmt: skip
    assert (await Desk(store, "other").post("retry", all=True))["removed"] == {"slack": (a.id,)}


async def test_dead_letters_are_dropped_all_or_those_of_one_receiver_and_what_waits_is_kept(store: Store) -> None:
    rows = [notification(key, key, receiver=name) for key, name in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))]
    await store.commit(outcome(*rows), NOW)
    a, _ = await store.outbox.due("x", NOW, 9)
    c, d = await store.outbox.due("y", NOW, 9)
    for row in (a, c, d):
        await store.outbox.dead(row.id, NOW, "no")
    desk = Desk(store)
    assert await desk.post("drop", all=True, receiver="y") == {"dropped": [c.id, d.id], "unknown": []}
    assert await desk.post("drop", all=True) == {"dropped": [a.id], "unknown": []}
    assert [one["dedup_key"] for one in await desk.list()] == ["b"]
    with pytest.raises(ValueError, match="receiver"):
        await desk.post("drop", all=True, receiver=3)


async def test_the_status_tells_of_what_is_left_of_receivers_that_are_gone(store: Store) -> None:
    await store.commit(outcome(notification("a", "i1", receiver="old"), notification("b", "i2", receiver="new")), NOW)
    await store.outbox.drop_receivers({"new"}, NOW)
    deliver = Deliver(store, {}, VirtualClock(NOW))
    await deliver.count()
    new, old = deliver.health()
    assert (old.name, old.type, old.pending, old.dead) == ("old", "no longer configured", 0, 1)
    assert "verlwatch outbox drop --all --receiver old" in str(old.last_error)
    assert (new.name, new.pending) == ("new", 1)
    await Desk(store).post("drop", all=True, receiver="old")
    await deliver.count_strays()
    assert [one.name for one in deliver.health()] == ["new"]


def test_a_line_of_the_list_says_when_the_next_try_is() -> None:
    letter = {
        "id": 7, "status": "pending", "receiver": "team", "reason": "opened", "created_at": NOW, "attempts": 1,
        "due_at": NOW + 90.0, "title": "gen is slow",
    }  # fmt: skip
    assert ", 1 try, next in 90 s  gen is slow" in _line(letter, NOW)
    assert ", 2 tries  gen" in _line({**letter, "attempts": 2, "status": "dead", "due_at": None}, NOW)


def test_a_receiver_that_is_gone_is_told_of_with_the_incidents_it_knows() -> None:
    def told(name: str, *receivers: str) -> Incident:
        notice = Notice(0.0, "opened", "warning", ("phase_shift", "gen"), 2.0, receivers)
        return Incident(name, "r", 1, "firing", "warning", (), 1, 0.0, 2.0, told=(notice, notice))

    with capture_logs() as logs:
        tell_of_removed(("old", "idle"), [told("a", "old", "team"), told("b", "old"), told("c", "team")])
    assert [(entry["receiver"], entry["incidents"], entry["log_level"]) for entry in logs] == [("old", 2, "warning")]


async def test_what_is_dropped_is_neither_sent_nor_listed_and_does_not_come_back(store: Store) -> None:
    a, b = await rows(store, ("a", "i1"), ("b", "i2"))
    await store.outbox.dead(b.id, NOW, "no")
    desk = Desk(store, "slack")
    assert await desk.post("drop", ids=[a.id, b.id, 999]) == {"dropped": [a.id, b.id], "unknown": [999]}
    await store.commit(outcome(notification("a", "i1"), notification("b", "i2")), NOW)
    assert (await due(store), await desk.list()) == ([], [])
    stats = (await store.outbox.stats())["slack"]
    assert (stats.pending, stats.done, stats.dead, stats.last_error) == (0, 0, 0, None)


@pytest.mark.parametrize("ids", [None, 1, [True], ["1"], [0], [-1], [1 << 63], [1.0]])
async def test_what_are_no_numbers_is_refused(ids: Any, store: Store) -> None:
    with pytest.raises(ValueError, match="must be a list of the numbers"):
        await Desk(store).post("drop", ids=ids)


# ---------------------------------------------------------------------------------------------------- merged rows
async def test_no_message_overtakes_a_digest_that_tells_of_its_incident(store: Store) -> None:
    parts = await rows(store, ("a", "i1"), ("b", "i2"))
    whole = await store.outbox.merge(parts, notification("digest", "digest"), NOW)
    await store.commit(outcome(notification("a2", "i1"), notification("c", "i3")), NOW)
    assert await due(store) == ["digest", "c"]
    await store.outbox.begin(whole.id)
    await store.outbox.retry(whole.id, NOW + 60.0, "down")
    assert (await due(store), await store.outbox.next_due("slack")) == (["c"], NOW)
    await store.outbox.dead(whole.id, NOW, "no")
    assert await due(store) == ["a2", "c"]


async def test_a_row_that_may_have_been_sent_is_in_no_digest_nor_are_those_behind_it(store: Store) -> None:
    a, *_ = await rows(store, ("a1", "i1"), ("b", "i2"), ("a2", "i1"), ("c", "i3"))
    await store.outbox.begin(a.id)
    assert [row.dedup_key for row in await store.outbox.untried("slack")] == ["b", "c"]


async def test_what_a_digest_told_counts_neither_as_waiting_nor_as_delivered(store: Store) -> None:
    parts = await rows(store, ("a", "i1"), ("b", "i2"))
    whole = await store.outbox.merge(parts, notification("digest", "digest"), NOW + 9.0)
    stats = (await store.outbox.stats())["slack"]
    assert (stats.pending, stats.done, stats.oldest_pending_at) == (1, 0, NOW)
    await store.outbox.done(whole.id, NOW)
    await store.commit(outcome(notification("a", "i1"), notification("b", "i2")), NOW)
    assert await due(store) == []


async def test_parts_of_a_digest_that_the_disk_has_damaged_are_told_by_themselves(store: Store, tmp_path: Path) -> None:
    parts = await rows(store, ("a", "i1"), ("b", "i2"))
    whole = await store.outbox.merge(parts, notification("digest", "digest"), NOW)
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("UPDATE outbox SET message = 'torn' WHERE id = ?", (whole.id,))
    connection.close()
    assert await due(store) == ["a", "b"]
