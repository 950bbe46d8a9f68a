"""Files as Ray 2.50 writes them into a session, seen in a real one."""

from __future__ import annotations

from pathlib import Path

from tests.shell.tail.driver import append

_WORKER_ID = "{:056x}"


class Session:
    """A session's folder of logs, and the processes that write into it."""

    def __init__(self, root: Path, name: str = "session_1") -> None:
        self.root = root
        self.path = root / name
        self.logs = self.path / "logs"
        self.logs.mkdir(parents=True)
        append(self.logs / "raylet.out", b"[2026-05-21 20:26:15] raylet\n")
        append(self.logs / "python-core-driver-01000000ffff_410.log", b"driver\n")

    def worker(self, job: str, pid: int, name: str, *, named_job: str | None = None, task: bool = False) -> Path:
        """The ``.out`` of a worker, with the lines it begins with; its ``.err`` beside it."""
        kind = "task" if task else "actor"
        for ending in ("err", "out"):
            path = self.logs / f"worker-{_WORKER_ID.format(pid)}-{named_job or job}-{pid}.{ending}"
            append(path, f":job_id:{job}\n:{kind}_name:{name}\n".encode())
        return path

    def driver(self, submission: str, *speakers: str) -> Path:
        """The log of a submitted driver that repeats lines of ``TaskRunner pid=7`` and the like."""
        path = self.logs / f"job-driver-{submission}.log"
        append(path, b"2026-05-21 20:26:33,078\tINFO job_manager.py:568 -- Runtime env is setting up.\n")
        append(path, "".join(f"\x1b[36m({speaker})\x1b[0m hello\n" for speaker in speakers).encode())
        return path

    def become_latest(self) -> Path:
        link = self.root / "session_latest"
        link.unlink(missing_ok=True)
        link.symlink_to(self.path)
        return link
