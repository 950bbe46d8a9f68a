"""Memory of this host, and what is free where the runs' checkpoints go.

Every 15 s.  Told is what has changed by half a percent, and everything every five minutes.  Used memory is what Ray
counts: all but MemAvailable; in a container with a limit of its own, the limit and the container's memory without
inactive file pages (``src/ray/common/memory_monitor.cc``).  Each thing is asked in a thread of its own: an NFS server
that does not answer keeps only its own directory waiting.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

from verlwatch.config import Config
from verlwatch.core.types import NOBODY, Event, Extract, Origin
from verlwatch.shell.clock import Clock
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.printable import shortened
from verlwatch.shell.run_names import may_be_of

EVERY_S = 15.0
TELL_S = 300.0
"""What has not changed is told so often."""
CHANGED = 0.005
ANSWER_S = 1.0
"""An answer that takes longer is taken at the next look."""
HANGS_S = 60.0
DIRECTORIES = 64
_GB = 1 << 30
_MEMORY = ""
_GO, _END = "go", "end"


class Amount(NamedTuple):
    """What there is of memory or disk, in GB (2**30 bytes)."""

    total_gb: float
    free_gb: float


def memory(root: str = "/") -> Amount:
    """Memory that the host, or the container in which this process is, has and has left.

    Raises:
        OSError: the kernel does not say.
    """
    said = _pairs(Path(root, "proc/meminfo").read_text())
    if not said.get("MemTotal:") or "MemAvailable:" not in said:
        raise OSError("/proc/meminfo names no MemTotal and MemAvailable")
    total, free = 1024 * said["MemTotal:"], 1024 * said["MemAvailable:"]
    inside = _of_container(Path(root, "sys/fs/cgroup"))
    if inside is not None and inside[0] < total:
        total, free = inside[0], max(0, inside[0] - inside[1])
    return Amount(total / _GB, free / _GB)


def disk(path: str) -> Amount:
    """Room on the file system of a directory, for who is not root.

    Raises:
        OSError: there is no such directory on this host, or it cannot be asked.
    """
    said = os.statvfs(path)
    return Amount(said.f_blocks * said.f_frsize / _GB, said.f_bavail * said.f_frsize / _GB)


def _of_container(cgroup: Path) -> tuple[int, int] | None:
    """Limit and memory in use; None where there is no limit.  The root cgroup of a host has none."""
    for limit, used, stat, inactive in (
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
    ):
        try:
            most, now = (int((cgroup / name).read_text()) for name in (limit, used))
            return most, max(0, now - _pairs((cgroup / stat).read_text()).get(inactive, 0))
        except (OSError, ValueError):  # no such file, or `max`
            continue
    return None


def _pairs(text: str) -> dict[str, int]:
    """The number behind the first word of each line."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


class _Question:
    """One thing that is asked in a thread of its own, again and again."""

    def __init__(self, name: str, ask: Callable[[], Amount]) -> None:
        self._ask = ask
        self._asked: SimpleQueue[str] = SimpleQueue()
        self.answer: Amount | OSError | None = None
        self.since: float | None = None
        """Since when it waits for an answer."""
        Thread(target=self._run, name=name, daemon=True).start()

    def ask(self, now: float) -> None:
        """Asks, unless it still waits for an answer."""
        if self.since is None:
            self.since = now
            self._asked.put(_GO)

    def end(self) -> None:
        """Ends the thread, once the call under way does."""
        self._asked.put(_END)

    def _run(self) -> None:
        while self._asked.get() == _GO:
            try:
                self.answer = self._ask()
            except (OSError, ValueError) as error:  # a log may name a directory that none can be
                self.answer = error if isinstance(error, OSError) else OSError(str(error))
            self.since = None


class Host:
    """See the module.

    ``places`` gives all runs whose logs are followed here, each with the directory of its checkpoints, "" where that is
    not known; what the configuration says (`runs[].checkpoint_dir`) comes first.
    """

    def __init__(
        self,
        inbox: Inbox,
        clock: Clock,
        config: Config,
        *,
        places: Callable[[], Mapping[str, str]] = dict,
        ask_memory: Callable[[], Amount] = memory,
        ask_disk: Callable[[str], Amount] = disk,
        host: str = "",
    ) -> None:
        self._inbox, self._clock, self._config, self._places = inbox, clock, config, places
        self._ask_memory, self._ask_disk = ask_memory, ask_disk
        self._host = host or socket.gethostname()
        self._questions: dict[str, _Question] = {}
        """By directory; the memory under no name."""
        self._told: dict[tuple[str, str], tuple[float, Amount]] = {}
        self._hangs: set[str] = set()
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Looks for ever."""
        try:
            while True:
                now = self._clock.now()
                self.ask(now)
                await self._until(now + ANSWER_S)
                self.tell(self._clock.now())
                await self._until(now + EVERY_S)
        finally:
            for question in self._questions.values():
                question.end()

    async def _until(self, at: float) -> None:
        while (now := self._clock.now()) < at <= now + EVERY_S:
            await self._clock.wait(self._wake, at)

    def reconfigure(self, config: Config) -> None:
        """Takes up another configuration, from the next look on."""
        self._config = config

    def notices(self) -> Iterable[str]:
        """Directories whose file system does not answer."""
        for path in sorted(self._hangs):
            yield f"the file system of {shortened(path)} does not answer: room for checkpoints there is not seen"

    def ask(self, now: float) -> None:
        """Asks everything anew that has answered."""
        wanted = {_MEMORY, *list(dict.fromkeys(self._directories().values()))[:DIRECTORIES]}
        for path in self._questions.keys() - wanted:
            self._questions.pop(path).end()
        self._told = {key: told for key, told in self._told.items() if key[1] in wanted}
        for path in wanted:
            question = self._questions.get(path)
            if question is None:
                question = self._questions[path] = _Question(f"host {path}"[:15], self._asking(path))
            question.ask(now)
        asked = {path: one.since for path, one in self._questions.items()}
        self._hangs = {path for path, since in asked.items() if since is not None and now - since >= HANGS_S}

    def tell(self, now: float) -> None:
        """Offers what was answered and is worth telling, to each run that it concerns."""
        for run, path in self._concerned():
            question = self._questions.get(path)
            answer = None if question is None else question.answer
            if isinstance(answer, Amount) and self._is_news((run, path), answer, now):
                event = Event(
                    Origin("host", 0, 0, NOBODY, "host"),
                    *_said(path, answer),
                    scope=(("host", self._host),),
                    at=now,
                )
                if self._inbox.offer(Extract("host", run, (event,))):
                    self._told[run, path] = now, answer

    def _asking(self, path: str) -> Callable[[], Amount]:
        return (lambda: self._ask_disk(path)) if path else self._ask_memory

    def _directories(self) -> dict[str, str]:
        """By run; a relative one begins nobody knows where."""
        given = {
            run: entry.checkpoint_dir
            for run in self._runs()
            for entry in self._config.runs
            if entry.checkpoint_dir and may_be_of(entry.name, run)
        }
        found = {run: path for run, path in self._places().items() if path.startswith("/")}
        return {**found, **given}

    def _runs(self) -> list[str]:
        return sorted({run.name for run in self._config.runs if "{" not in run.name} | self._places().keys())

    def _concerned(self) -> Iterator[tuple[str, str]]:
        runs = self._runs()
        yield from ((run, _MEMORY) for run in runs)
        yield from ((run, path) for run, path in sorted(self._directories().items()) if run in runs)

    def _is_news(self, key: tuple[str, str], answer: Amount, now: float) -> bool:
        if key not in self._told:
            return True
        at, before = self._told[key]
        moved = abs(answer.free_gb - before.free_gb) > CHANGED * max(answer.total_gb, before.total_gb)
        return moved or answer.total_gb != before.total_gb or not 0.0 <= now - at < TELL_S


def _said(path: str, answer: Amount) -> tuple[str, dict[str, str | int | float]]:
    total, free = round(answer.total_gb, 3), round(answer.free_gb, 3)
    if path:
        return "disk", {"path": path[:300], "total_gb": total, "free_gb": free}
    return "host_memory", {"total_gb": total, "available_gb": free, "used_gb": round(total - free, 3)}
