"""The logs of a Ray session, and which of them belong together.

Ray writes what each process prints into ``<session>/logs``:

- ``worker-<worker>-<job>-<pid>.out`` and ``.err``.  They begin with ``:job_id:01000000`` and ``:actor_name:TaskRunner``
  (or ``:task_name:main_task``).  The name of a worker that was started in advance holds ``ffffffff`` in place of the
  job, so the first lines count.
- ``job-driver-<submission>.log`` of ``ray job submit``: the driver's own output and that of all workers, each line
  behind ``(TaskRunner pid=785)``, with ``, ip=...`` if it is on another host.  It names no job; its job is the one
  whose workers it repeats.

A job is a training if one of its workers has a name that verl gives.  Several jobs of one session are several
trainings, or no trainings at all, so a session stands for its newest training alone.

Sources: Ray ``_private/worker.py``, ``_private/log_monitor.py``, ``dashboard/modules/job/common.py``; a session of
Ray 2.50.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

_WORKER = re.compile(r"worker-[0-9a-f]+-([0-9a-f]{8})-(\d+)\.(?:out|err)")
_DRIVER = re.compile(r"job-driver-.+\.log")
_RAYS_OWN = re.compile(r"worker-[0-9a-f]{8}|job-driver-|python-core-|raylet\.|gcs_server\.")
_JOB = re.compile(rb"^:job_id:([0-9a-f]{8})$", re.MULTILINE)
_NAMES = re.compile(rb"^:(?:actor|task)_name:(.+)$", re.MULTILINE)
_SPEAKERS = re.compile(rb"\((\w+) pid=(\d+)(, ip=)?")
_TRAINER = re.compile(r"TaskRunner|main_task|Trainer")
_OF_A_TRAINING = re.compile(rf"{_TRAINER.pattern}|WorkerDict")
_NO_JOB = "ffffffff"
_WORKER_HEAD = 4 << 10
_DRIVER_HEAD = 64 << 10


class _Worker(NamedTuple):
    pid: str
    job: str
    names: str

    @property
    def is_sure(self) -> bool:
        """Whether nothing that matters can follow."""
        return _OF_A_TRAINING.search(self.names) is not None


class _Driver(NamedTuple):
    pids: frozenset[str]
    """Those of workers on this host."""
    names: str

    @property
    def is_sure(self) -> bool:
        """Whether nothing that matters can follow."""
        return bool(self.pids)


_Head = TypeVar("_Head", _Worker, _Driver)


class Session(NamedTuple):
    """A session, or one ``job`` of it: the number as in Ray's file names, or the submission id."""

    logs: str
    job: str = ""


class Sessions:
    """Looks into sessions again and again; what the beginnings of their files said is kept."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[int, _Worker | _Driver]] = {}

    def find(self, path: str) -> Session | None:
        """What ``path`` names, links resolved: a session, ``SESSION/JOB``, or neither."""
        if logs := _logs_of(path):
            return Session(logs)
        session, _, job = path.rpartition("/")
        logs = None if os.path.lexists(path) else _logs_of(session)
        return Session(logs, job) if logs else None

    def files(self, session: Session) -> list[str]:
        """The files of the newest training, or of the job, the trainer's own first; empty if there are none yet."""
        workers, drivers = self._read(session.logs)
        trainings = {worker.job for worker in workers.values() if _OF_A_TRAINING.search(worker.names)}
        job = session.job or max(trainings, key=_number, default="")
        submitted = f"{session.logs}/job-driver-{job}.log"
        if submitted in drivers:
            pids = drivers[submitted].pids
            job = max((worker.job for worker in workers.values() if worker.pid in pids), key=_number, default="")
        mine = {path: worker for path, worker in workers.items() if worker.job == job}
        if not mine:
            return [submitted] if submitted in drivers else [] if session.job else _elsewhere(drivers)
        pids = frozenset(worker.pid for worker in mine.values())
        own = sorted(path for path, worker in mine.items() if _TRAINER.search(worker.names))
        theirs = sorted(path for path, driver in drivers.items() if driver.pids & pids)
        return [*own, *theirs, *sorted(mine.keys() - own)]

    def _read(self, logs: str) -> tuple[dict[str, _Worker], dict[str, _Driver]]:
        """The workers that have a job, and the drivers, by path."""
        workers: dict[str, _Worker] = {}
        drivers: dict[str, _Driver] = {}
        listed = _listed(logs)
        for path, name in listed.items():
            if match := _WORKER.fullmatch(name):
                worker = self._head(path, _WORKER_HEAD, _worker)
                if (job := worker.job or match[1]) != _NO_JOB:
                    workers[path] = worker._replace(pid=match[2], job=job)
            else:
                drivers[path] = self._head(path, _DRIVER_HEAD, _driver)
        self._heads = {path: head for path, head in self._heads.items() if path in listed or not _is_in(path, logs)}
        return workers, drivers

    def _head(self, path: str, most: int, read: Callable[[bytes], _Head]) -> _Head:
        """What the first bytes of a file say; they are read again while they may say more."""
        before, head = self._heads.get(path, (-1, None))
        if before < most:
            try:
                size = min(Path(path).stat().st_size, most)
                if size != before:
                    head = read(_first(path, size))
                    self._heads[path] = (most if head.is_sure else size, head)
            except OSError:  # deleted, or not ours to read: its source tells why, once there is one
                head = head or read(b"")
        return head  # type: ignore[return-value]  # a path is read as one kind of file


def _logs_of(path: str) -> str | None:
    """The folder of logs of the session ``path``; None if that is no session."""
    for folder in (f"{path}/logs", path):
        try:
            with os.scandir(folder) as entries:
                if any(_RAYS_OWN.match(entry.name) for entry in entries):
                    return os.path.realpath(folder)
        except OSError:
            continue
    return None


def is_session_file(path: str, logs: str) -> bool:
    """Whether ``path`` is a worker's or driver's log in ``logs``, or in another session beside that one."""
    folder, _, name = path.rpartition("/")
    return is_log(name) and (folder == logs or _sessions_of(folder) == _sessions_of(logs) != "")


def is_log(name: str) -> bool:
    """Whether a file of that name is a worker's or driver's log."""
    return bool(_WORKER.fullmatch(name) or _DRIVER.fullmatch(name))


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")


def _sessions_of(logs: str) -> str:
    """Where sessions lie: ``/tmp/ray`` for ``/tmp/ray/session_1/logs``; empty for logs that were put elsewhere."""
    root, _, session = logs.removesuffix("/logs").rpartition("/")
    return root if session.startswith("session_") and logs.endswith("/logs") else ""


def _listed(logs: str) -> dict[str, str]:
    """Path and name of each log of a worker or driver."""
    try:
        with os.scandir(logs) as entries:
            return {
                entry.path: entry.name
                for entry in entries
                if is_log(entry.name) and entry.is_file(follow_symlinks=False)
            }
    except OSError:  # deleted meanwhile
        return {}


def _first(path: str, size: int) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(size)


def _worker(head: bytes) -> _Worker:
    job = _JOB.search(head)
    return _Worker("", job[1].decode() if job else "", b" ".join(_NAMES.findall(head)).decode("utf-8", "replace"))


def _driver(head: bytes) -> _Driver:
    speakers = _SPEAKERS.findall(head)
    return _Driver(
        frozenset(pid.decode() for _, pid, ip in speakers if not ip),
        b" ".join(name for name, _, _ in speakers).decode("utf-8", "replace"),
    )


def _elsewhere(drivers: dict[str, _Driver]) -> list[str]:
    """Where no worker of a training is on this host: the newest driver that repeats a trainer."""
    of_trainings = [path for path, driver in drivers.items() if _TRAINER.search(driver.names)]
    return [max(of_trainings, key=changed_at)] if of_trainings else []


def changed_at(path: str) -> float:
    """When a file was last written to; 0 where it cannot be looked at."""
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return 0.0


def _number(job: str) -> int:
    """Ray counts jobs from 1 and writes the number with its lowest byte first."""
    return int.from_bytes(bytes.fromhex(job), "little")
