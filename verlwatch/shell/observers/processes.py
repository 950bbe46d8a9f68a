"""The training processes of each run that are on this host: that one is gone is told at once, whatever the log says.

A process is watched through a pidfd, which becomes readable when it ends; where the kernel has none, it is looked for
every second.  Which processes:

- ``named``: that of `runs[].pid`.
- ``trainer``: the one that the log itself names for this host (`TaskRunner hostname: H, PID: P`, Ray's prefix).
- ``writer``: the one that holds the run's log open for writing; of ``train | tee log``, the training.

Nothing is stored: a process named in the configuration that is not there is told once as gone.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

from verlwatch.config import Config
from verlwatch.core.engine import Trainer
from verlwatch.core.types import NOBODY, Event, Extract, Origin, Severity
from verlwatch.shell import _proc
from verlwatch.shell._proc import Process
from verlwatch.shell._trainers import Trainers
from verlwatch.shell._worker import Worker
from verlwatch.shell._writers import Looks
from verlwatch.shell.clock import Clock
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.printable import printable

TURN_S = 1.0
LOOK_S = 30.0
LEAST_LOOK_S = 2.0
"""What is named anew is looked for no more often."""
PATIENCE_S = 2.0
"""A look that takes longer goes on beside the watching."""
MOST = 64
"""Processes watched at once."""
TICK_S = 0.02
"""Starts of processes are known to a hundredth of a second."""
KEPT = 1024
"""Events kept while the inbox is full."""

Role = Literal["named", "trainer", "writer"]
_GONE = -1


class Candidate(NamedTuple):
    """A process that a look has found for a run; ``process`` is None where the one that was named is not there."""

    run: str
    role: Role
    pid: int
    process: Process | None
    title: str = ""
    relay: bool = False
    oom_counter: str = ""


@dataclass(slots=True, eq=False)
class _Watched:
    """``oom_kills`` are what the counter showed at the look before the last one, and at the last one."""

    candidate: Candidate
    process: Process
    pidfd: int | None
    oom_kills: tuple[int | None, int | None]


class Processes:
    """Watches training processes; see the module."""

    def __init__(
        self,
        inbox: Inbox,
        clock: Clock,
        config: Config,
        files: Callable[[], Iterable[tuple[str, str]]] = tuple,
        trainers: Callable[[], Mapping[str, Trainer]] = dict,
    ) -> None:
        """``files`` gives the run and the path of each log that is read now, ``trainers`` who trains, as they say."""
        self._inbox = inbox
        self._clock = clock
        self._config = config
        self._host = socket.gethostname()
        self._files, self._named = files, trainers
        self._watched: dict[tuple[str, int, int], _Watched] = {}
        self._writers: dict[str, tuple[str, int, int]] = {}
        self._gone: set[tuple[str, int]] = set()
        self._writer_gone_at: dict[str, float] = {}
        self._trainers = Trainers(self._host)
        self._looks = Looks()
        self._told: deque[Extract] = deque(maxlen=KEPT)
        self._found: list[Candidate] = []
        self._looking = False
        self._wake = asyncio.Event()
        self._look_at = 0.0
        self._looked_at = 0.0
        self._notices: dict[str, str] = {}

    # ------------------------------------------------------------------------------------------------ told from outside
    def heard(self, run: str, named: Trainer) -> None:
        """A log has named a process: it is watched if it is on this host."""
        if self._trainers.hear(run, named):
            self._look_soon()

    def reconfigure(self, config: Config) -> None:
        """Takes up another configuration, from the next look on."""
        before = {run.name: run.pid for run in self._config.runs}
        self._config = config
        after = {run.name: run.pid for run in config.runs}
        self._gone = {(run, pid) for run, pid in self._gone if after.get(run) == pid == before.get(run)}
        self._trainers.keep(after)
        self._look_soon()

    def notices(self) -> Iterable[str]:
        """What works worse than it could, for the status."""
        if self._looking and self._clock.now() - self._looked_at > LOOK_S:
            yield "looking at the processes of this host takes long; those that are watched already still are"
        yield from self._notices.values()

    # ------------------------------------------------------------------------------------------------ life
    async def run(self) -> None:
        """Looks for processes and watches them, until it is cancelled."""
        thread = Worker("processes")
        try:
            while True:
                self._wake.clear()
                for run, trainer in self._named().items():
                    self.heard(run, trainer)
                await self._look(thread)
                self._poll()
                self._offer()
                await self._clock.wait(self._wake, min(self._look_at, self._clock.now() + TURN_S))
        finally:
            thread.end()
            for watched in self._watched.values():
                self._let_go(watched)
            self._watched.clear()

    def _look_soon(self) -> None:
        self._look_at = min(self._look_at, self._looked_at + LEAST_LOOK_S)
        self._wake.set()

    async def _look(self, thread: Worker) -> None:
        """Starts a look where one is due; watches what one has found."""
        now = self._clock.now()
        if (now >= self._look_at or now < self._looked_at) and not self._looking:
            self._looking, self._looked_at, self._look_at = True, now, now + LOOK_S
            work = self._work()
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await thread.call(work)
        found, self._found = self._found, []
        for candidate in found:
            self._take(candidate)

    # ------------------------------------------------------------------------------------------------ in the thread
    def _work(self) -> Callable[[], None]:
        """What is to be looked for now, as a call for the thread: it leaves what it finds in ``_found``."""
        named = {run.name: run.pid for run in self._config.runs if run.pid and (run.name, run.pid) not in self._gone}
        logs: dict[str, set[str]] = {}
        for run, path in self._files():
            logs.setdefault(run, set()).add(path)
        served = {run for run, key in self._writers.items() if key in self._watched}
        unserved = {run: paths for run, paths in logs.items() if run not in served}
        watched, now = list(self._watched.values()), self._clock.now()

        def work() -> None:
            try:
                for one in watched:
                    one.oom_kills = (one.oom_kills[1], _proc.oom_kills(one.candidate.oom_counter))
                found = [_candidate(run, "named", pid) for run, pid in named.items()]
                writers = self._looks.writers(unserved) if unserved else {}
                for run, process in self._trainers.find(served | writers.keys(), now):
                    found.append(_candidate(run, "trainer", process.pid, process))
                for run, writer in writers.items():
                    found.append(_candidate(run, "writer", writer.process.pid, writer.process, relay=writer.relay))
                self._found = found
            finally:
                self._looking = False

        return work

    # ------------------------------------------------------------------------------------------------ in the loop
    def _take(self, candidate: Candidate) -> None:
        """Watches what was found, unless it is watched already; says where there is nothing."""
        run, process = candidate.run, candidate.process
        if process is None:
            if (run, candidate.pid) not in self._gone:
                self._gone.add((run, candidate.pid))
                self._tell(candidate, None, "gone", "")
            return
        key = (run, process.pid, process.started)
        if candidate.role == "writer" and self._is_left_over(run, process):
            return
        if candidate.role == "writer" and not candidate.relay:
            self._writers[run] = key
            self._drop_relays(run)
        if key in self._watched or (candidate.role == "named" and key[:2] in self._gone):
            return
        if len(self._watched) >= MOST:
            self._notices["most"] = f"{MOST} processes are watched; further ones are not"
            return
        if (pidfd := self._open(process)) is _GONE:
            return
        watched = self._watched[key] = _Watched(
            candidate, process, pidfd, (_proc.oom_kills(candidate.oom_counter),) * 2
        )
        self._tell(candidate, watched, "watched", "")
        if pidfd is not None:
            asyncio.get_running_loop().add_reader(pidfd, self._ended, key)

    def _open(self, process: Process) -> int | None:
        """A pidfd of exactly this process; None where it has to be polled, `_GONE` if it is gone or another one now."""
        try:
            pidfd = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return _GONE
        except (OSError, AttributeError) as error:
            self._notices["pidfd"] = f"processes are looked for once a second: no pidfd ({error})"
            return None
        now = _proc.look(process.pid)
        if now is None or now.started != process.started:
            os.close(pidfd)
            return _GONE
        return pidfd

    def _is_left_over(self, run: str, process: Process) -> bool:
        """Whether it is of a training whose writer is gone: a child or `tee` that still holds the log open."""
        gone_at = self._writer_gone_at.get(run)
        return gone_at is not None and process.age_s > _proc.uptime_s() - gone_at + TICK_S

    def _drop_relays(self, run: str) -> None:
        """A real writer has been found: `tee` is no longer needed."""
        for key, watched in list(self._watched.items()):
            if key[0] == run and watched.candidate.relay:
                self._let_go(self._watched.pop(key))

    def _poll(self) -> None:
        """Looks for those without a pidfd; lets go of those whose run is no longer configured."""
        runs = {run.name for run in self._config.runs}
        patterns = any("{" in name for name in runs)
        for key, watched in list(self._watched.items()):
            if key[0] not in runs and not patterns:
                self._let_go(self._watched.pop(key))
            elif watched.pidfd is None:
                now = _proc.look(watched.process.pid)
                if now is None or now.started != watched.process.started or now.is_over:
                    self._ended(key)

    def _ended(self, key: tuple[str, int, int]) -> None:
        """A watched process is over: at once, before its parent takes note of how."""
        watched = self._watched.pop(key)
        code = _proc.exit_code(watched.process, watched.pidfd)
        self._let_go(watched)
        if self._writers.get(key[0]) == key or watched.candidate.role == "writer":
            self._writer_gone_at[key[0]] = _proc.uptime_s()
        if watched.candidate.role == "named":
            self._gone.add((watched.candidate.run, watched.process.pid))
        self._tell(watched.candidate, watched, "gone", "" if watched.candidate.relay else _proc.exit_text(code))
        self._look_soon()
        self._offer()

    def _let_go(self, watched: _Watched) -> None:
        if watched.pidfd is not None:
            asyncio.get_running_loop().remove_reader(watched.pidfd)
            os.close(watched.pidfd)

    # ------------------------------------------------------------------------------------------------ telling
    def _tell(
        self, candidate: Candidate, watched: _Watched | None, state: Literal["watched", "gone"], how: str
    ) -> None:
        now = self._clock.now()
        attributes: dict[str, str | int | float] = {"pid": candidate.pid, "state": state, "role": candidate.role}
        attributes |= {"name": candidate.title} if candidate.title else {}
        attributes |= {"weak": 1} if candidate.relay else {}
        if watched is not None:
            age_s = watched.process.age_s
            attributes["started_at"] = round(now - age_s, 2)
            if state == "gone":
                attributes["lasted_s"] = round(age_s, 2)
                attributes |= {"oom_kills": kills} if (kills := _oom_kills(watched, how)) else {}
        if state == "gone":
            attributes["exit"] = how
        severity: Severity = "info"
        if state == "gone" and how != "code 0":
            severity = "critical" if how else "warning"
        origin = Origin("process", 0, 0, NOBODY, "process")
        event = Event(origin, "process", attributes, severity, "", (("host", self._host),), now)
        self._told.append(Extract("process", candidate.run, (event,)))

    def _offer(self) -> None:
        while self._told and self._inbox.offer(self._told[0]):
            self._told.popleft()


def _oom_kills(watched: _Watched, how: str) -> int:
    """How many were killed for want of memory about when a process ended; one that ended well was not among them."""
    counter = watched.candidate.oom_counter
    before, after = watched.oom_kills[0], _proc.oom_kills(counter)
    is_meant = how in {"", "signal 9"} if counter == _proc.HOST_OOM else how != "code 0"
    return after - before if is_meant and before is not None and after is not None else 0


def _candidate(run: str, role: Role, pid: int, process: Process | None = None, *, relay: bool = False) -> Candidate:
    """What is found at a pid; one that is over waits for its parent, and is not there."""
    process = process or _proc.look(pid)
    if process is None or process.is_over:
        return Candidate(run, role, pid, None)
    title = _proc.title(pid) or printable(process.name)
    return Candidate(run, role, pid, process, title, relay, _proc.oom_counter(pid))
