"""The real thing: threads, inotify and the clock on the wall."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import pytest
from watchdog.observers import Observer

from tests.shell.tail.driver import append, numbered, numbers
from verlwatch.core.types import Chunk
from verlwatch.shell import wake
from verlwatch.shell.clock import SystemClock
from verlwatch.shell.tail import Following, Inbox, Tail
from verlwatch.shell.wake import Wake

START = Callable[..., Tail]


@pytest.fixture
async def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
async def start(inbox: Inbox) -> AsyncIterator[START]:
    """Starts tails; they are stopped after the test."""
    running: list[tuple[Tail, asyncio.Task[None]]] = []

    def begin(*patterns: object) -> Tail:
        tail = Tail(Following({"run": tuple(str(item) for item in patterns)}), inbox, (), clock=SystemClock())
        running.append((tail, asyncio.ensure_future(tail.run())))
        return tail

    yield begin
    for tail, task in running:
        tail.stop()
        async with asyncio.timeout(5):
            await task


async def take(inbox: Inbox, count: int) -> list[int]:
    """The numbers of the next lines; each write here is one chunk of whole lines."""
    taken: list[int] = []
    async with asyncio.timeout(5):
        while len(taken) < count:
            for chunk in await inbox.get() or []:
                assert isinstance(chunk, Chunk)
                taken += numbers(chunk.data.splitlines())
    return taken


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0.005)


async def test_lines_arrive_within_a_quarter_of_a_second_of_their_writing(
    start: START, inbox: Inbox, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 1))
    start(log)
    assert await take(inbox, 1) == [0]
    delays = []
    for number in range(1, 6):
        written = time.monotonic()
        append(log, numbered(number, 1))
        assert await take(inbox, 1) == [number]
        delays.append(time.monotonic() - written)
    assert min(delays) < 0.25, "a busy host may be late, but not every time"


async def test_watchdog_hints_at_a_new_file_long_before_the_next_search(
    start: START, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verlwatch.shell.tail.DISCOVER_S", 60.0)
    monkeypatch.setattr("verlwatch.shell._rhythm.WAITING_S", 60.0)
    watched = threading.Event()
    really_watch = Wake.watch

    def watch(self: Wake, folders: Iterable[str]) -> None:
        really_watch(self, folders)
        watched.set()

    monkeypatch.setattr(Wake, "watch", watch)
    missing = tmp_path / "named.log"
    tail = start(tmp_path / "*.out", missing)
    await until(watched.is_set)
    append(tmp_path / "worker.out", numbered(0, 1))
    assert await take(inbox, 1) == [0]
    append(missing, numbered(1, 1))
    assert await take(inbox, 1) == [1]
    assert tail.notices == ()


async def test_without_inotify_new_files_are_polled_for_and_status_says_so(
    start: START, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(Observer, "schedule", exhausted)
    tail = start(tmp_path / "*.log")
    await until(lambda: bool(tail.notices))
    append(tmp_path / "train.log", numbered(0, 1))
    assert await take(inbox, 1) == [0]
    assert tail.notices == (
        "no inotify watch is left; raise fs.inotify.max_user_watches; until then new files are found by polling",
    )


async def test_where_no_thread_is_left_new_files_are_polled_for_and_status_says_so(
    start: START, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def refused(*_: object, **__: object) -> None:
        tried.append(1)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Observer, "schedule", refused)
    monkeypatch.setattr("verlwatch.shell.tail.DISCOVER_S", 0.02)
    tail = start(tmp_path / "*.log")
    await until(lambda: bool(tail.notices))
    assert "can't start new thread" in tail.notices[0] or "0 are watched" in tail.notices[0]
    append(tmp_path / "train.log", numbered(0, 1))
    assert await take(inbox, 1) == [0]
    assert tail.notices == ("1 directories hold logs and 0 are watched; the others are polled",)
    assert tried == [1], "each try would leave something behind"


async def test_a_file_system_that_does_not_answer_stalls_the_reading_and_nothing_else(
    start: START, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 1))
    answer = threading.Event()
    monkeypatch.setattr("verlwatch.shell.tail.STALLED_S", 0.05)
    really_stat = Path.stat

    def hang(path: Path, **options: bool) -> object:
        if path == log:
            answer.wait(5)
        return really_stat(path, **options)

    monkeypatch.setattr(Path, "stat", hang)
    tail = start(log)
    await until(lambda: any(view.state == "stalled" for view in tail.sources()))
    (view,) = tail.sources()
    assert (view.readable, view.error) == (
        False,
        f"{log}: its file system does not answer; the reading of all files waits for it",
    )
    answer.set()
    assert await take(inbox, 1) == [0]
    assert tail.sources()[0].state == "live"


async def test_a_full_inbox_makes_the_tail_wait_and_nothing_is_dropped(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 20_000))
    inbox = Inbox(max_bytes=200_000)
    tail = Tail(Following({"run": (str(log),)}), inbox, (), clock=SystemClock())
    task = asyncio.ensure_future(tail.run())
    await until(lambda: len(inbox) == 1)  # a second chunk has no room: the tail waits
    assert inbox.bytes <= 200_000
    tail.stop()  # the cycle that waits for room is finished before the end
    data = b""
    async with asyncio.timeout(5):
        while (chunks := await inbox.get()) is not None:
            data += b"".join(chunk.data for chunk in chunks if isinstance(chunk, Chunk))
        await task
    assert data == log.read_bytes()


async def test_stopping_closes_the_inbox_and_ends_every_thread(tmp_path: Path) -> None:
    before = {thread.name for thread in threading.enumerate()}
    inbox = Inbox()
    tail = Tail(Following({"run": (str(tmp_path / "*.log"),)}), inbox, (), clock=SystemClock())
    task = asyncio.ensure_future(tail.run())
    await until(lambda: bool(tail.sources()))
    tail.stop()
    assert await inbox.get() is None
    await task
    await until(lambda: not [t for t in threading.enumerate() if t.name.startswith("tail") and t.name not in before])


async def test_cancelled_while_the_inbox_is_full_it_ends_at_once(tmp_path: Path) -> None:
    append(tmp_path / "train.log", numbered(0, 20_000))
    inbox = Inbox(max_bytes=200_000)
    task = asyncio.ensure_future(
        Tail(Following({"run": (str(tmp_path / "*.log"),)}), inbox, (), clock=SystemClock()).run()
    )
    await until(lambda: len(inbox) == 1)
    task.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait({task})
    assert task.cancelled()
    assert inbox.closed


def test_watching_follows_directories_that_come_and_go(tmp_path: Path) -> None:
    hinted = threading.Event()
    folder = tmp_path / "session"
    watcher = Wake(hinted.set)
    try:
        watcher.watch([str(folder)])  # not there yet
        folder.mkdir()
        watcher.watch([str(folder)])
        (folder / "worker.out").touch()
        assert hinted.wait(5)
        hinted.clear()
        (folder / "worker.out").rename(folder / "worker.out.1")
        assert hinted.wait(5)
        assert watcher.problem == ""
        watcher.watch([])
        hinted.clear()
        (folder / "worker.out").touch()
        assert not hinted.wait(0.2)
    finally:
        watcher.stop()


def test_more_directories_than_are_watched_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake, "FOLDERS", 1)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    watcher = Wake(lambda: None)
    try:
        watcher.watch([str(tmp_path / "a"), str(tmp_path / "b")])
        assert watcher.problem == "2 directories hold logs and 1 are watched; the others are polled"
    finally:
        watcher.stop()
