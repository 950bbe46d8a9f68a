"""Looks for trainings that run on this host or ran recently: logs in which verl has printed steps, and Ray sessions.

A look, not a search of the whole disk: it goes so many folders deep, lists so many of them, reads the ends of so many
files, the newest first, and stops when its time is up.  It follows no links.  What it did not come to is told.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from verlwatch.core import steps
from verlwatch.core.engine import Attempts
from verlwatch.core.lines import Reader
from verlwatch.core.types import NOBODY, Record, Samples
from verlwatch.shell._ray import Session, Sessions, is_log
from verlwatch.shell.identity import rotated_from

ENDINGS = (".log", ".jsonl", ".out", ".txt")
_ENDS = (256 << 10, 4 << 20)
"""So much of a file's end is read, the latter where the former holds no step."""
_COMPARED = 3  # steps that two logs of one training share
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "proc", "sys", "dev"})


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a survey goes."""

    depth: int = 6
    folders: int = 5_000
    files: int = 500
    days: float = 3.0
    seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Log:
    """A log of a training, or a Ray session (``ray``), under the path that a configuration names it by.

    ``step`` is the last one with times, None where there is none yet; ``seconds`` holds the times of the last ones.
    """

    path: str
    changed_at: float
    step: int | None = None
    seconds: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    release: str = ""
    ray: bool = False


@dataclass(slots=True)
class Survey:
    """What was found: the logs of each training, the one that grew last first.  ``notes`` say what was left out."""

    trainings: list[list[Log]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _File(NamedTuple):
    folder: str
    name: str
    size: int
    changed_at: float

    @property
    def path(self) -> str:
        return f"{self.folder.rstrip('/')}/{self.name}"


def survey(
    folders: Iterable[str],
    sessions: Iterable[str],
    limits: Limits,
    now: float,
    clock: Callable[[], float] = time.monotonic,
) -> Survey:
    """Looks below the folders, and at the Ray sessions.

    ``now`` is the time of day, ``clock`` tells how long it takes.
    """
    found = Survey()
    until = clock() + limits.seconds
    oldest = now - 86_400 * limits.days
    ray = dict.fromkeys(sessions)
    files = [*_files(folders, limits, found, oldest, lambda: clock() > until)]
    ray |= dict.fromkeys(file.folder for file in files if is_log(file.name))
    files = sorted((file for file in files if file.folder not in ray), key=lambda file: -file.changed_at)
    logs = [log for path in ray if (log := _session(path, oldest)) is not None]
    for number, file in enumerate(files):
        if number >= limits.files or clock() > until:
            found.notes.append(f"{len(files) - number} of {len(files)} recent files were not looked into")
            break
        if (log := _log(file)) is not None:
            logs.append(log)
    for log in sorted(logs, key=lambda log: -log.changed_at):
        same = next((known for known in found.trainings if any(_tell_the_same(log, one) for one in known)), None)
        if same is None:
            found.trainings.append([log])
        else:
            same.append(log)
    return found


def _files(
    folders: Iterable[str], limits: Limits, found: Survey, oldest: float, late: Callable[[], bool]
) -> Iterator[_File]:
    """Recent files whose names may be those of logs, level by level."""
    level = list(dict.fromkeys(os.path.realpath(folder) for folder in folders))
    seen = set(level)
    listed = 0
    for _ in range(limits.depth):
        below: list[str] = []
        for folder in level:
            if listed >= limits.folders or late():
                found.notes.append("the search met its bound; name the folders that hold the logs")
                return
            listed += 1
            for entry in _entries(folder):
                if entry.is_dir(follow_symlinks=False):
                    below += [entry.path] if _may_hold_logs(entry.name) and entry.path not in seen else []
                elif entry.name.endswith(ENDINGS) and (file := _recent(entry, oldest)) is not None:
                    yield file
        seen.update(below)
        level = below
    if level:
        found.notes.append(f"folders more than {limits.depth} deep were not looked into")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _may_hold_logs(name: str) -> bool:
    """Ray sessions are looked at by themselves; checkpoints are many and large."""
    return not name.startswith((".", "session_", "global_step_", "checkpoint-")) and name not in _SKIPPED


def _recent(entry: os.DirEntry[str], oldest: float) -> _File | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_mtime < oldest or rotated_from(entry.path):
        return None
    if not _can_be_written_down(entry.path):
        return None
    return _File(entry.path.rpartition("/")[0], entry.name, status.st_size, status.st_mtime)


def _can_be_written_down(path: str) -> bool:
    """A name that is no text, or that would steer a terminal, does not go into a file that people edit."""
    return path.isprintable()


def _log(file: _File) -> Log | None:
    """The file if a training has written to it."""
    for amount in _ENDS:
        records = _last_records(file.path, max(0, file.size - amount), amount)
        samples = [(record, steps.timings(record.values)) for record in records if isinstance(record, Samples)]
        timed = [(record, seconds) for record, seconds in samples if seconds]
        if timed:
            last = timed[-1][0]
            return Log(
                file.path,
                file.changed_at,
                last.step,
                {record.step: seconds for record, seconds in timed},
                steps.release(last.values, last.decimals),
            )
        if amount >= file.size:
            begun = any(record.origin.kind == "plan" for record in records)
            return Log(file.path, file.changed_at) if begun else None
    return None


def _last_records(path: str, start: int, amount: int) -> list[Record]:
    """What stands in the lines from ``start`` on; the first is left out where it is not whole."""
    try:
        # without O_NONBLOCK a FIFO that has just taken the file's place would wait for ever
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:  # noqa: PTH123
            file.seek(start)
            data = file.read(amount)
    except OSError:
        return []
    reader = Reader(path)
    return [*reader.feed(data[data.find(b"\n") + 1 if start else 0 :], 0.0), *reader.finish(0.0)]


def _session(path: str, oldest: float) -> Log | None:
    """The newest training of a Ray session."""
    sessions = Sessions()
    session: Session | None = sessions.find(path)
    files = [file for name in (sessions.files(session) if session else ()) if (file := _stat(name)) is not None]
    if not files or (changed_at := max(file.changed_at for file in files)) < oldest or not _can_be_written_down(path):
        return None
    told = next((log for file in files if (log := _log(file)) is not None and log.step is not None), None)
    if told is None:
        return Log(path, changed_at, ray=True)
    return Log(path, changed_at, told.step, told.seconds, told.release, ray=True)


def _stat(path: str) -> _File | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # of a list of names
    except OSError:
        return None
    folder, _, name = path.rpartition("/")
    return _File(folder, name, status.st_size, status.st_mtime)


def _tell_the_same(one: Log, other: Log) -> bool:
    """Whether two logs tell the same seconds of the same steps, as far as each prints them."""
    common = sorted(one.seconds.keys() & other.seconds.keys())[-_COMPARED:]
    attempts = Attempts()
    for step in common:
        attempts.place(one.path, 0, NOBODY, step, one.seconds[step])
    places = [attempts.place(other.path, 0, NOBODY, step, other.seconds[step]) for step in common]
    return bool(common) and all(place is not None and place.echo and place.attempt == 1 for place in places)
