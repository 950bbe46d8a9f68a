"""Memory of the host and room for checkpoints: what is asked, what is told to whom, and what hangs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import VirtualClock
from verlwatch.config import Config
from verlwatch.core.types import Event, Extract
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.observers.host import EVERY_S, TELL_S, Amount, Host, disk, memory

if TYPE_CHECKING:
    from collections.abc import Callable

MEMINFO = "MemTotal:       104857600 kB\nMemFree:         1048576 kB\nMemAvailable:   52428800 kB\n"


def root(tmp_path: Path, **files: str) -> str:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name.replace("__", "/").replace("_of_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(tmp_path)


def config(**run: str) -> Config:
    return Config.model_validate({"runs": [{"name": "a", "logs": ["/logs/a.log"], **run}]})


def test_the_memory_of_a_host_is_what_the_kernel_says(tmp_path: Path) -> None:
    assert memory(root(tmp_path)) == Amount(100.0, 50.0)


def test_in_a_container_its_own_limit_counts_without_inactive_pages(tmp_path: Path) -> None:
    gib = 1 << 30
    files = {"memory_of_max": f"{40 * gib}", "memory_of_current": f"{30 * gib}"}
    stat = {"memory_of_stat": f"anon 1\ninactive_file {10 * gib}\n"}
    assert memory(root(tmp_path, **files, **stat)) == Amount(40.0, 20.0)


def test_the_first_version_of_cgroups_is_read_as_well(tmp_path: Path) -> None:
    folder = tmp_path / "sys/fs/cgroup/memory"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text(f"{40 << 30}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{30 << 30}\n")
    (folder / "memory.stat").write_text(f"inactive_file 5\ntotal_inactive_file {10 << 30}\n")
    assert memory(root(tmp_path)) == Amount(40.0, 20.0)


@pytest.mark.parametrize("limit", ["max", str(9223372036854771712)])
def test_a_container_without_a_limit_has_the_memory_of_its_host(tmp_path: Path, limit: str) -> None:
    files = {"memory_of_max": limit, "memory_of_current": "1", "memory_of_stat": ""}
    assert memory(root(tmp_path, **files)) == Amount(100.0, 50.0)


def test_a_kernel_that_says_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemFree: 1 kB\n")
    with pytest.raises(OSError, match="names no MemTotal"):
        memory(str(tmp_path))


def test_room_is_that_of_who_is_not_root(tmp_path: Path) -> None:
    said, amount = os.statvfs(tmp_path), disk(str(tmp_path))
    assert amount.total_gb == said.f_blocks * said.f_frsize / (1 << 30)
    assert amount.free_gb == pytest.approx(said.f_bavail * said.f_frsize / (1 << 30), rel=0.01)
    with pytest.raises(FileNotFoundError):
        disk(str(tmp_path / "missing"))


class World:
    """What an observer sees, and what came of it."""

    def __init__(self, settings: Config, places: dict[str, str] | None = None) -> None:
        self.memory, self.disk = Amount(1000.0, 500.0), Amount(2000.0, 900.0)
        self.hung: dict[str, Flag] = {}
        self.places = places or {}
        self.inbox = Inbox()
        self.host = Host(
            self.inbox,
            VirtualClock(0.0),
            settings,
            places=lambda: self.places,
            ask_memory=lambda: self.memory,
            ask_disk=self.ask_disk,
            host="node-1",
        )

    def ask_disk(self, path: str) -> Amount:
        if path in self.hung:
            self.hung[path].wait(10)
        if path == "/missing":
            raise FileNotFoundError(path)
        return self.disk

    async def look(self, now: float, *, waits_for: Callable[[], bool] | None = None) -> list[tuple[str, Event]]:
        """What one look offers: by run."""
        self.host.ask(now)
        async with asyncio.timeout(5):
            while not (waits_for or self.all_answered)():
                await asyncio.sleep(0.001)
        self.host.tell(now)
        taken = await self.inbox.get(timeout_s=0.0) or []
        return [
            (item.run, record)
            for item in taken
            if isinstance(item, Extract)
            for record in item.records
            if isinstance(record, Event)
        ]

    def all_answered(self) -> bool:
        return all(one.since is None for one in self.host._questions.values())


async def test_memory_and_disk_are_told_to_the_run_that_they_concern() -> None:
    world = World(config(checkpoint_dir="/ckpt"))
    (run, used), (_, room) = await world.look(10.0)
    assert (run, used.name, used.scope, used.at) == ("a", "host_memory", (("host", "node-1"),), 10.0)
    assert used.attributes == {"total_gb": 1000.0, "available_gb": 500.0, "used_gb": 500.0}
    assert (room.name, room.attributes) == ("disk", {"path": "/ckpt", "total_gb": 2000.0, "free_gb": 900.0})
    assert room.origin.source == "host"


async def test_what_has_not_changed_is_told_every_five_minutes() -> None:
    world = World(config())
    assert len(await world.look(0.0)) == 1
    world.memory = Amount(1000.0, 496.0)
    assert await world.look(15.0) == []
    world.memory = Amount(1000.0, 494.0)
    assert len(await world.look(30.0)) == 1
    assert await world.look(30.0 + TELL_S - 1) == []
    assert len(await world.look(30.0 + TELL_S)) == 1


async def test_the_directory_that_a_log_names_is_looked_at_unless_the_configuration_names_one() -> None:
    world = World(config(), {"a": "/from-the-log", "b": "relative/path", "c": ""})
    told = await world.look(0.0)
    assert [(run, event.attributes.get("path")) for run, event in told if event.name == "disk"] == [
        ("a", "/from-the-log")
    ]
    assert {run for run, event in told if event.name == "host_memory"} == {"a", "b", "c"}
    world.host.reconfigure(config(checkpoint_dir="/configured"))
    assert [event.attributes.get("path") for _, event in await world.look(15.0)] == ["/configured"]


async def test_an_entry_for_many_runs_gives_each_its_directory() -> None:
    settings = Config.model_validate(
        {"runs": [{"name": "{folder}", "logs": ["/logs/*/a.log"], "checkpoint_dir": "/ckpt"}]}
    )
    world = World(settings, {"one": "", "two": ""})
    told = await world.look(0.0)
    assert [(run, event.name) for run, event in told] == [
        ("one", "host_memory"),
        ("two", "host_memory"),
        ("one", "disk"),
        ("two", "disk"),
    ]


async def test_a_directory_that_is_not_on_this_host_is_left_out() -> None:
    world = World(config(checkpoint_dir="/missing"))
    assert [event.name for _, event in await world.look(0.0)] == ["host_memory"]
    assert list(world.host.notices()) == []


async def test_a_file_system_that_hangs_holds_up_nothing_else_and_is_noted() -> None:
    world = World(config(checkpoint_dir="/hung"), {"b": "/other"})
    world.hung["/hung"] = Flag()
    try:
        told = await world.look(
            0.0, waits_for=lambda: sum(one.since is None for one in world.host._questions.values()) == 2
        )
        assert [event.attributes.get("path") for _, event in told] == [None, None, "/other"]
        world.host.ask(61.0)
        assert list(world.host.notices()) == [
            "the file system of /hung does not answer: room for checkpoints there is not seen"
        ]
    finally:
        world.hung["/hung"].set()
    told = await world.look(70.0)
    assert ("a", "/hung") in {(run, event.attributes.get("path")) for run, event in told}
    world.host.ask(71.0)
    assert list(world.host.notices()) == []


async def test_what_the_inbox_has_no_room_for_is_offered_again() -> None:
    world = World(config())
    world.inbox._max_items = 0
    assert await world.look(0.0) == []
    world.inbox._max_items = 8
    assert len(await world.look(15.0)) == 1


async def test_it_looks_every_fifteen_seconds_and_ends_when_it_is_cancelled() -> None:
    clock, asked = VirtualClock(0.0), []
    inbox = Inbox()

    def ask() -> Amount:
        asked.append(clock.now())
        return Amount(1000.0, 500.0 - 10 * len(asked))

    host = Host(inbox, clock, config(), ask_memory=ask)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(host.run())
        for looks in range(1, 4):
            await clock.parked(1)
            async with asyncio.timeout(5):
                while len(asked) < looks:
                    await asyncio.sleep(0.001)
            await clock.advance(EVERY_S)
        running.cancel()
    assert asked[:3] == [0.0, 15.0, 30.0]


async def test_a_directory_that_none_can_be_hangs_nobody() -> None:
    host = Host(Inbox(), VirtualClock(0.0), config(), places=lambda: {"a": "/data\0/x"}, host="node-1")
    host.ask(0.0)
    async with asyncio.timeout(5):
        while any(question.since is not None for question in host._questions.values()):
            await asyncio.sleep(0.001)
    assert isinstance(host._questions["/data\0/x"].answer, OSError)
    host.ask(3600.0)
    assert list(host.notices()) == []
