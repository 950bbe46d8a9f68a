"""Who writes a log: the processes of this host that hold it open for writing.

A look at /proc takes a bounded number of links, so that a host with thousands of processes costs no more; what was not
come to is looked at first the next time.  File systems are asked only about links that have a log's name, because a
server that does not answer would hold up the look.

``python train.py | tee train.log``: of a log that only programs like `tee` write, the process at the other end of
their pipe is the writer.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from verlwatch.shell import _proc
from verlwatch.shell._proc import Link, Process

LINKS, LINKS_OF_ONE, SECONDS = 50_000, 1_024, 1.0
"""Most links of all processes, and of each, and the time of one look."""
_PIPES = 4  # programs in a row: train | ts | tee
_DELETED = " (deleted)"
_STANDARD = frozenset({0, 1, 2})
_TRAINERS = re.compile(r"ray::(?:TaskRunner|main_task|\w*Trainer)")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "nohup", "setsid", "timeout", "srun", "slurmstepd"})
_RELAYS = frozenset({
    *("tee", "cat", "ts", "grep", "sed", "awk", "gawk", "mawk", "tr", "stdbuf", "logger", "script", "unbuffer"),
    *("rotatelogs", "cronolog", "multilog", "svlogd", "s6-log", "systemd-cat"),
})  # fmt: skip


class Writer(NamedTuple):
    """A process that writes a log.  A ``relay`` only passes on what another process says, as `tee` does."""

    process: Process
    title: str
    relay: bool = False


@dataclass(slots=True)
class Seen:
    """What a look at /proc has seen: open files named like a log, and who is at which end of a pipe."""

    links: list[Link] = field(default_factory=list)
    pipes: dict[str, list[Link]] = field(default_factory=lambda: defaultdict(list))


class Looks:
    """Looks at /proc again and again, each time a bounded number of links."""

    def __init__(self) -> None:
        self._next = 0

    def writers(self, logs: Mapping[str, Collection[str]]) -> dict[str, Writer]:
        """Who writes the logs of each run: one process for a run, and none where none was seen."""
        runs: dict[tuple[int, int], str] = {}
        names: set[str] = set()
        for run, paths in logs.items():
            for path in paths:
                if (identity := _identity(path)) is not None:
                    runs.setdefault(identity, run)
                    names.add(os.path.basename(os.path.realpath(path)))  # noqa: PTH119 - a name of bytes that are no text
        seen = self.look(names)
        found: dict[str, dict[int, Writer]] = defaultdict(dict)
        for link in seen.links:
            of = runs.get(_identity(link.path) or (0, 0))
            if of is not None and link.is_for(writing=True):
                found[of] |= _known([link.pid])
        return {run: _best(_behind_relays(writers, seen)) for run, writers in found.items() if writers}

    def look(self, names: Collection[str], seconds: float = SECONDS) -> Seen:
        """Open files called one of ``names``, and all pipes that are somebody's input or output."""
        seen = Seen()
        pids = [pid for pid in _proc.pids() if pid != os.getpid()]
        left, until = LINKS, time.monotonic() + seconds
        pids = [*(pid for pid in pids if pid >= self._next), *(pid for pid in pids if pid < self._next)]
        self._next = 0
        for pid in pids:
            if left <= 0 or time.monotonic() > until:
                self._next = pid
                break
            try:
                for link in _proc.links(pid, LINKS_OF_ONE):
                    left -= 1
                    if link.target.startswith("pipe:"):
                        if link.fd in _STANDARD:
                            seen.pipes[link.target].append(link)
                    elif link.target.removesuffix(_DELETED).rpartition("/")[2] in names:
                        seen.links.append(link)
            except OSError:  # ended, or somebody else's
                continue
        return seen


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - of a list of names
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _known(pids: Iterable[int]) -> dict[int, Writer]:
    """Those that are there."""
    found = {}
    for pid in pids:
        process = _proc.look(pid)
        if process is not None and not process.is_over:
            title = _proc.title(pid) or process.name
            found[pid] = Writer(process, title, title in _RELAYS)
    return found


def _behind_relays(writers: dict[int, Writer], seen: Seen) -> Collection[Writer]:
    """The writers, or who writes into their pipes if all of them only pass on what they read."""
    for _ in range(_PIPES):
        if not all(writer.relay for writer in writers.values()):
            break
        inputs = {
            link.target for links in seen.pipes.values() for link in links if link.fd == 0 and link.pid in writers
        }
        ahead = [link for target in inputs for link in seen.pipes[target] if link.fd and link.is_for(writing=True)]
        further = _known(link.pid for link in ahead if link.pid not in writers)
        if not further:
            break
        writers = further
    return writers.values()


def _best(writers: Collection[Writer]) -> Writer:
    """The one whose end is the end of the training: a trainer, else the first Python above the others."""
    pids = {rank: {writer.process.pid for writer in writers if _rank(writer) == rank} for rank in map(_rank, writers)}
    return min(
        writers,
        key=lambda writer: (rank := _rank(writer), _has_above(writer.process, pids[rank]), writer.process.started),
    )


def _rank(writer: Writer) -> int:
    title = writer.title
    if _TRAINERS.match(title):
        return 0
    if title.startswith("python"):
        return 1
    return 5 if writer.relay else 4 if title in _SHELLS else 3 if title.startswith("ray::") else 2


def _has_above(process: Process, pids: Collection[int]) -> bool:
    """Whether one of ``pids`` is its parent, or its parent's."""
    above: Process | None = process
    for _ in range(16):
        if above is None or above.parent <= 1:
            return False
        if above.parent in pids:
            return True
        above = _proc.look(above.parent)
    return False
