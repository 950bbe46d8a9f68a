"""Which process of this host a log speaks of.

A log names pids: `TaskRunner hostname: node-1, PID: 4711`, and `(TaskRunner pid=4711)` before each line.  Such a number
is believed only if the process behind it calls itself what the log calls it (Ray's ``ray::TaskRunner``), was there when
the line came, and the line speaks of this host: it names the host or an address of it, or the log is written from here.
Inside a container a process has another pid than outside; it is found by the one that it knows itself by.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from verlwatch.core.engine import Trainer
from verlwatch.shell import _proc
from verlwatch.shell._proc import Process

_SLACK_S = 5.0  # between a clock and another


class Trainers:
    """What logs have said of the trainers of runs: the last word counts."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._named: dict[str, Trainer] = {}

    def hear(self, run: str, named: Trainer) -> bool:
        """Takes note; whether another process is meant.  What a line does not say was said by those before it."""
        before = self._named.get(run)
        if before is None or (before.name, before.pid) != (named.name, named.pid):
            self._named[run] = named
            return True
        at = before.at if named.at is None else named.at
        self._named[run] = named._replace(ip=named.ip or before.ip, host=named.host or before.host, at=at)
        return not before.host and bool(named.host)

    def keep(self, runs: Collection[str]) -> None:
        """Forgets the others, unless their names come from a pattern."""
        if not any("{" in run for run in runs):
            self._named = {run: named for run, named in self._named.items() if run in runs}

    def find(self, written_here: Collection[str], now: float) -> Iterator[tuple[str, Process]]:
        """The trainers that are on this host; ``written_here`` are runs whose logs a process of this host writes."""
        addresses: frozenset[str] | None = None
        for run, named in list(self._named.items()):
            if named.ip and addresses is None:
                addresses = _proc.addresses()
            if named.host:
                here = _is_same(named.host, self._host)
            else:
                here = named.ip in (addresses or ()) if named.ip else run in written_here
            if here and (process := _process(named, now)) is not None:
                yield run, process


def _is_same(one: str, other: str) -> bool:
    """Whether two names are of one host: one of them may lack the domain."""
    one, other = one.lower(), other.lower()
    return one == other or (("." in one) != ("." in other) and one.split(".")[0] == other.split(".")[0])


def _process(named: Trainer, now: float) -> Process | None:
    """The only process that can be meant."""
    if _proc.inner_pid(named.pid) == named.pid and (process := _meant(named, named.pid, now)) is not None:
        return process
    inside = [pid for pid in _proc.pids() if pid != named.pid and _proc.inner_pid(pid) == named.pid]
    found = [process for pid in inside if (process := _meant(named, pid, now)) is not None]
    return found[0] if len(found) == 1 else None


def _meant(named: Trainer, pid: int, now: float) -> Process | None:
    """The process of a pid if it can be the one that a line spoke of."""
    process = _proc.look(pid)
    if process is None or process.is_over:
        return None
    if named.at is not None and process.age_s < now - named.at - _SLACK_S:
        return None
    title = _proc.title(pid)
    is_it = title == f"ray::{named.name}" if named.name else title.startswith(("ray::", "python"))
    return process if is_it else None
