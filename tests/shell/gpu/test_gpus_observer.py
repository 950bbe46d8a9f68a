"""The observer of GPUs: instants, threads, events, and whose cards they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event as ThreadEvent
from typing import Any

import pytest

from tests.fakes.clock import VirtualClock
from tests.fakes.nvml import GIB, FakeNvml, cards, loaded
from verlwatch.config import Config
from verlwatch.core.types import Event, Extract
from verlwatch.shell.gpu import SOURCES
from verlwatch.shell.gpu.nvml import Nvml
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.observers import gpus
from verlwatch.shell.observers.gpus import Gpus

START = 1_000_003.0
HOST = "gpu-node-1"


class Watched:
    """A running observer over a driver that is made up."""

    def __init__(self, driver: FakeNvml, tmp_path: Path, **settings: Any) -> None:
        self.driver = driver
        self.clock = VirtualClock(START)
        self.inbox = Inbox()
        self.pids: Mapping[str, frozenset[int]] = {}
        self.files: list[tuple[str, str]] = []
        self.settings = settings
        self.observer = Gpus(
            self.inbox,
            self.clock,
            self.config(),
            lambda: self.files,
            lambda: self.pids,
            sources=(Nvml,),
            host=HOST,
            proc=str(tmp_path),
        )

    def config(self, **gpu: Any) -> Config:
        runs = [{"name": name, "logs": ["/logs/x"]} for name in self.settings.get("runs", ["ppo"])]
        return Config.model_validate({"runs": runs, "gpu": {**self.settings.get("gpu", {}), **gpu}})

    async def extracts(self) -> list[Extract]:
        taken = await self.inbox.get(timeout_s=0.0) or []
        return [item for item in taken if isinstance(item, Extract)]

    async def events(self, name: str = "") -> list[Event]:
        return [
            record
            for extract in await self.extracts()
            for record in extract.records
            if isinstance(record, Event) and (not name or record.name == name)
        ]

    async def until(self, seconds: float) -> None:
        """Goes on to START + seconds and waits, in real time, for the threads that are not held up."""
        await self.clock.advance(START + seconds - self.clock.now())
        for _ in range(400):
            await asyncio.sleep(0.005)
            feeds = [*self.observer._feeds.values()]
            if not any(feed.is_asked for feed in feeds) or self.driver.hangs:
                break
        await asyncio.sleep(0.02 if self.driver.hangs else 0)
        await self.clock.parked(1)


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncIterator[Callable[..., Watched]]:
    tasks: list[asyncio.Task[None]] = []
    with loaded(driver := FakeNvml(*cards(4))):

        def start(**settings: Any) -> Watched:
            watched = Watched(driver, tmp_path, **settings)
            tasks.append(asyncio.ensure_future(watched.observer.run()))
            return watched

        yield start
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_cards_are_sampled_at_multiples_of_the_interval(watch: Callable[..., Watched]) -> None:
    watched = watch()
    await watched.until(6.9)
    assert await watched.extracts() == []
    for seconds in (7, 17, 27):
        await watched.until(seconds)
    events = await watched.events("gpu_sample")
    assert {event.at for event in events} == {1_000_010.0, 1_000_020.0, 1_000_030.0}
    first = events[0]
    assert first.scope == (("host", HOST), ("gpu", "0"))
    assert first.origin.source == first.origin.kind == "gpu"
    assert first.attributes["used_gb"] == 28.0
    assert [event.scope[1][1] for event in events[:4]] == ["0", "1", "2", "3"]


async def test_the_source_is_told_once_and_again_when_it_shows_other_cards(watch: Callable[..., Watched]) -> None:
    watched = watch()
    await watched.until(7)
    await watched.until(17)
    watched.driver.cards[2].is_lost = True
    await watched.until(27)
    events = await watched.events()
    assert [event.attributes for event in events if event.name == "gpu_source"] == [
        {"source": "nvml", "cards": 4},
        {"source": "nvml", "cards": 3},
    ]
    (fault,) = [event for event in events if event.name == "gpu_fault"]
    assert (fault.scope, fault.attributes["kind"]) == ((("host", HOST), ("gpu", "2")), "missing")


async def test_processes_are_joined_to_actors_and_ranks(watch: Callable[..., Watched], tmp_path: Path) -> None:
    watched = watch()
    watched.driver.cards[0].processes = [(71, GIB), (72, 25 * GIB), (73, None)]
    for pid, title, environ in ((71, b"ray::vLLMHttpServer.run", b""), (72, b"ray::WorkerDict.update", b"RANK=5\0")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_bytes(title)
        (tmp_path / str(pid) / "environ").write_bytes(environ)
    await watched.until(7)
    first, second, *_ = await watched.events("gpu_sample")
    assert first.attributes["pids"] == "72:25.00,71:1.00,73"
    assert first.attributes["actors"] == "72:WorkerDict,71:vLLMHttpServer"
    assert first.attributes["ranks"] == "72:5"
    assert not {"pids", "actors", "ranks"} & second.attributes.keys()


async def test_of_many_processes_the_sixteen_largest_are_told(watch: Callable[..., Watched]) -> None:
    watched = watch()
    watched.driver.cards[0].processes = [(100 + number, number * GIB) for number in range(40)]
    await watched.until(7)
    event = (await watched.events("gpu_sample"))[0]
    assert str(event.attributes["pids"]).split(",")[::15] == ["139:39.00", "124:24.00"]


async def test_a_card_belongs_to_the_run_whose_process_uses_it_and_else_to_each(
    watch: Callable[..., Watched],
) -> None:
    watched = watch(runs=["a", "b", "{folder}"])
    watched.pids = {"b": frozenset({71}), "found": frozenset({72, 73})}
    watched.driver.cards[0].processes = [(71, GIB)]
    watched.driver.cards[1].processes = [(72, GIB)]
    watched.driver.cards[2].processes = [(99, GIB)]
    await watched.until(7)
    shared: dict[str, list[str]] = {}
    for extract in await watched.extracts():
        for record in extract.records:
            if record.origin.kind == "gpu" and len(record.scope) == 2:
                shared.setdefault(extract.run, []).append(record.scope[1][1])
    assert shared == {"a": ["2", "3"], "b": ["0", "2", "3"], "found": ["1", "2", "3"]}


async def test_sixty_four_cards_find_room_each_time(watch: Callable[..., Watched]) -> None:
    watched = watch()
    watched.driver.cards[:] = cards(64)
    for seconds in (7, 17, 27):
        await watched.until(seconds)
        assert len(await watched.events("gpu_sample")) == 64
    assert watched.observer.refused == 0


async def test_files_of_workers_tell_whose_processes_they_are(watch: Callable[..., Watched]) -> None:
    watched = watch(runs=["a", "{session}"])
    worker = f"/ray/session_1/logs/worker-{'ab' * 28}-01000000-71.err"
    watched.files = [("a", "/logs/x"), ("session_1", worker), ("session_1", "/logs/worker-71.err")]
    watched.driver.cards[3].processes = [(71, GIB)]
    await watched.until(7)
    shared = {
        extract.run: [record.scope[1][1] for record in extract.records if len(record.scope) == 2]
        for extract in await watched.extracts()
    }
    assert shared == {"a": ["0", "1", "2"], "session_1": ["0", "1", "2", "3"]}


async def test_one_run_has_all_cards(watch: Callable[..., Watched]) -> None:
    watched = watch()
    watched.pids = {"ppo": frozenset({71})}
    watched.driver.cards[0].processes = [(99, GIB)]
    await watched.until(7)
    assert len(await watched.events("gpu_sample")) == 4


async def test_a_card_whose_call_hangs_is_left_and_the_others_go_on(watch: Callable[..., Watched]) -> None:
    watched = watch()
    await watched.until(7)
    await watched.extracts()
    released = ThreadEvent()
    watched.driver.hangs["nvmlDeviceGetMemoryInfo_v2", 2] = released
    await watched.until(17)
    assert list(watched.observer.notices()) == []
    for seconds in (27, 37, 47, 57, 67):
        await watched.until(seconds)
    events = await watched.events()
    (fault,) = [event for event in events if event.name == "gpu_fault"]
    assert fault.attributes["kind"] == "unreadable"
    assert fault.scope == (("host", HOST), ("gpu", "2"))
    after = [event for event in events if event.name == "gpu_sample"]
    assert {event.scope[1][1] for event in after} == {"0", "1", "3"}
    assert max(event.at or 0 for event in after) == 1_000_070.0
    assert len(watched.observer._hung) == 1
    assert "GPU 2: a call to nvml does not come back" in " ".join(watched.observer.notices())
    watched.driver.hangs.clear()
    released.set()
    for seconds in (77, 87, 97):
        await watched.until(seconds)
    assert {event.scope[1][1] for event in await watched.events("gpu_sample")} == {"0", "1", "2", "3"}
    assert watched.observer._hung == []


async def test_a_driver_that_hangs_altogether_takes_two_threads_and_no_more(watch: Callable[..., Watched]) -> None:
    watched = watch()
    released = ThreadEvent()
    for card in range(4):
        watched.driver.hangs["nvmlDeviceGetMemoryInfo_v2", card] = released
    for seconds in range(7, 207, 10):
        await watched.until(seconds)
    assert len(watched.observer._hung) == 2
    assert watched.observer._choice is not None
    assert watched.observer._choice.why_not == {"nvml": "a call to it hangs"}
    watched.driver.hangs.clear()
    released.set()


async def test_samples_that_come_late_are_dropped_and_counted(watch: Callable[..., Watched]) -> None:
    watched = watch()
    released = ThreadEvent()
    watched.driver.hangs["nvmlDeviceGetMemoryInfo_v2", 0] = released
    await watched.until(7)
    await watched.until(13)
    watched.driver.hangs.clear()
    released.set()
    for _ in range(400):
        await asyncio.sleep(0.005)
        if watched.observer.late:
            break
    assert (await watched.events("gpu_sample"), watched.observer.late) == ([], 1)
    assert any("1 came too late" in notice for notice in watched.observer.notices())


async def test_what_the_inbox_has_no_room_for_is_dropped_and_counted(watch: Callable[..., Watched]) -> None:
    watched = watch()
    watched.inbox = watched.observer._inbox = Inbox(max_bytes=1)
    await watched.until(7)
    assert (await watched.extracts(), watched.observer.refused) == ([], 5)
    await watched.until(17)
    assert watched.observer.refused > 5


async def test_a_host_that_slept_misses_instants_and_goes_on(watch: Callable[..., Watched]) -> None:
    watched = watch()
    await watched.until(7)
    await watched.events()
    watched.clock._now += 97  # at 1_000_107: more than half an interval after the last
    await watched.until(105)
    assert await watched.events() == []
    await watched.until(107)
    assert {event.at for event in await watched.events("gpu_sample")} == {1_000_110.0}
    assert watched.observer.missed >= 1


async def test_the_interval_and_the_source_change_with_a_reload(watch: Callable[..., Watched]) -> None:
    watched = watch()
    await watched.until(7)
    watched.observer.reconfigure(watched.config(every="2s"))
    await watched.until(9)
    await watched.until(11)
    assert {event.at for event in await watched.events("gpu_sample")} == {1_000_010.0, 1_000_012.0, 1_000_014.0}
    assert watched.observer.missed == 0
    watched.observer.reconfigure(watched.config(source="off"))
    await watched.until(21)
    assert await watched.events() == []


async def test_why_no_card_is_seen_is_told_where_there_are_cards_or_a_source_is_asked_for(
    watch: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch()
    watched.driver.loaded = False
    await watched.until(7)
    assert list(watched.observer.notices()) == []
    monkeypatch.setattr(gpus, "_DEVICES", ("/dev/null",))
    assert list(watched.observer.notices()) == [
        "the memory of this host's GPUs is not seen: nvml: the NVIDIA driver is not loaded"
    ]
    monkeypatch.undo()
    watched.observer.reconfigure(watched.config(source="nvml"))
    await watched.until(17)
    assert len(list(watched.observer.notices())) == 1


async def test_a_url_that_shows_nothing_is_told_and_holds_nobody_up(watch: Callable[..., Watched]) -> None:
    watched = watch(gpu={"urls": ["http://127.0.0.1:1/metrics"]})
    await watched.until(7)
    assert len(await watched.events("gpu_sample")) == 4
    assert ["GPU gauges of http://127.0.0.1:1/metrics" in notice for notice in watched.observer.notices()] == [True]


def test_the_settings_name_the_sources() -> None:
    schema = Config.model_json_schema()["$defs"]["Gpu"]["properties"]["source"]["enum"]
    assert schema == ["auto", *(source.NAME for source in SOURCES), "off"]
