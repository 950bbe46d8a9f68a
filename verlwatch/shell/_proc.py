"""What Linux tells of the processes of this host.  Everything is read from /proc, nobody is traced or signalled.

A process is known by its pid *and* the tick at which it started: pids are used again, by strangers.  Inside a container
it has another pid than outside; `/proc/PID/status` tells both (``NSpid``).

Sources: proc(5), cgroups(7), pidfd_open(2), and Linux ``include/uapi/linux/pidfd.h`` (PIDFD_GET_INFO, since 6.15 with
the exit code of a process that has been waited for).
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv6Address
from pathlib import Path
from typing import NamedTuple

from verlwatch.shell.printable import shortened

TITLE_LIMIT = 80
HOST_OOM = "/proc/vmstat"
"""Counts those of the whole host."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_ARGUMENTS = 4096
_AFTER_NAME = re.compile(rb"\((.*)\) (.+)", re.DOTALL)
_PARENT, _SESSION, _STARTED, _EXIT = 1, 3, 19, 49  # of the fields of /proc/PID/stat that follow the name
_GET_INFO = 0xC040FF0B  # _IOWR(0xFF, 11, struct pidfd_info of 64 bytes)
_INFO = struct.Struct("=QQ11Ii")  # mask, cgroup, eleven ids, exit code
_INFO_EXIT = 1 << 3
_OOM_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_LOCAL = re.compile(r"\|-- (\S+)\n\s+/32 host LOCAL")


class Process(NamedTuple):
    """``started`` are clock ticks after boot; ``state`` is proc(5)'s letter; ``exit_code`` as waitpid(2) gives it."""

    pid: int
    started: int
    name: str
    state: str
    parent: int
    session: int
    exit_code: int

    @property
    def is_over(self) -> bool:
        """Whether it has ended and only waits for its parent to take note."""
        return self.state in "ZXx"

    @property
    def age_s(self) -> float:
        """How long ago it began."""
        return uptime_s() - self.started / _TICKS_PER_S


class Link(NamedTuple):
    """An open file of a process: where /proc/PID/fd/FD points, ``pipe:[4711]`` or a path."""

    pid: int
    fd: int
    target: str

    @property
    def path(self) -> str:
        """The same as a path in /proc."""
        return f"/proc/{self.pid}/fd/{self.fd}"

    def is_for(self, *, writing: bool) -> bool:
        """Whether it was opened for writing, or else for reading; False where it is closed by now."""
        try:
            return bool(os.lstat(self.path).st_mode & (0o200 if writing else 0o400))
        except OSError:
            return False


def uptime_s() -> float:
    """Seconds since the host was booted, those asleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def pids() -> list[int]:
    """All that may be seen, the oldest numbers first."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - a third of the time


def look(pid: int) -> Process | None:
    """The process that has this pid now; None if none has."""
    try:
        found = _AFTER_NAME.search(Path(f"/proc/{pid}/stat").read_bytes())
    except OSError:
        return None
    if found is None:
        return None
    fields = found[2].split()
    started, parent, session, code = (int(fields[at]) for at in (_STARTED, _PARENT, _SESSION, _EXIT))
    name = found[1].decode("utf-8", "replace")
    return Process(pid, started, name, fields[0].decode(), parent, session, code)


def title(pid: int) -> str:
    """What a process calls itself: ``ray::TaskRunner``, ``python -m verl.trainer.main_ppo``, ``tee``.

    Its other arguments may hold what is nobody's business and are left out.  Empty for one that is over.
    """
    try:
        with Path(f"/proc/{pid}/cmdline").open("rb") as file:
            arguments = file.read(_ARGUMENTS).decode("utf-8", "replace").rstrip("\0").split("\0")
    except OSError:
        return ""
    first = arguments[0].strip()
    if first.startswith("ray::"):  # set by setproctitle: ray::TaskRunner.run()
        return shortened(re.split(r"[.( ]", first)[0], TITLE_LIMIT)
    program = first.rpartition("/")[2].split(" ")[0]
    if not program.startswith("python"):
        return shortened(program, TITLE_LIMIT)
    return shortened(f"python {_script(arguments[1:])}".rstrip(), TITLE_LIMIT)


def _script(arguments: list[str]) -> str:
    """What a Python runs: ``-m verl.trainer.main_ppo``, ``train.py``; empty for code that is given to it."""
    words = iter(arguments)
    for word in words:
        if word in {"-m", "-c"}:
            return f"-m {next(words, '')}" if word == "-m" else ""
        if word in {"-X", "-W"}:
            next(words, "")
        elif not word.startswith("-"):
            return word.rpartition("/")[2]
    return ""


def links(pid: int, most: int | None = None) -> Iterator[Link]:
    """The open files of a process, up to ``most`` of them.

    Raises:
        PermissionError: it belongs to somebody else.
        FileNotFoundError: it has ended.
    """
    for name in sorted(map(int, os.listdir(f"/proc/{pid}/fd")))[:most]:  # noqa: PTH208 - as above
        with suppress(OSError):  # closed meanwhile
            yield Link(pid, name, os.readlink(f"/proc/{pid}/fd/{name}"))  # noqa: PTH115 - as above


def inner_pid(pid: int) -> int:
    """The pid by which a process knows itself: another one in a container.  ``pid`` where that is not told."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_bytes().splitlines():
            if line.startswith(b"NSpid:"):
                return int(line.split()[-1])
    return pid


def addresses() -> frozenset[str]:
    """The IP addresses of this host."""
    found: set[str] = set()
    with suppress(OSError):
        found.update(_LOCAL.findall(Path("/proc/net/fib_trie").read_text("ascii")))
    with suppress(OSError):
        lines = Path("/proc/net/if_inet6").read_text("ascii").splitlines()
        found.update(str(IPv6Address(int(line.split()[0], 16))) for line in lines)
    return frozenset(found)


def exit_code(process: Process, pidfd: int | None = None) -> int | None:
    """How a process that is over ended, as waitpid(2) gives it; None where that cannot be known.

    Its parent takes note of it sooner or later, and then only Linux 6.15 and newer tell, through the pidfd.
    """
    now = look(process.pid)
    if now is not None and now.started == process.started and now.is_over and _is_ours(process.pid):
        return now.exit_code
    if pidfd is not None:
        with suppress(OSError):
            info = _INFO.unpack(fcntl.ioctl(pidfd, _GET_INFO, _INFO.pack(_INFO_EXIT, *(0,) * 13)))
            return int(info[-1]) if info[0] & _INFO_EXIT else None
    return None


def exit_text(code: int | None) -> str:
    """``signal 9``, ``code 1``, or empty: unknown."""
    if code is None:
        return ""
    return f"signal {os.WTERMSIG(code)}" if os.WIFSIGNALED(code) else f"code {os.waitstatus_to_exitcode(code)}"


def oom_counter(pid: int) -> str:
    """The file that counts whom the kernel killed for want of memory in the process' cgroup; `HOST_OOM` without one.

    Of the cgroup alone, where the kernel counts so (5.2): sandboxes below it are killed for themselves.
    """
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text(errors="surrogateescape").split("\n"):
            _, controllers, group = line.split(":", 2) if line.count(":") > 1 else ("", "", "/")
            if group == "/" or (controllers and "memory" not in controllers.split(",")):
                continue
            folder = f"/sys/fs/cgroup{'/memory' if controllers else ''}{group}"
            for name in ("memory.oom_control",) if controllers else ("memory.events.local", "memory.events"):
                if oom_kills(found := f"{folder}/{name}") is not None:
                    return found
    return HOST_OOM


def oom_kills(counter: str) -> int | None:
    """What the file counts; None where it cannot be read, as when the cgroup is gone."""
    try:
        found = _OOM_KILLS.search(Path(counter).read_text())
    except OSError:
        return None
    return int(found[1]) if found else None


def _is_ours(pid: int) -> bool:
    """Whether the kernel shows us the exit code of a process (ptrace(2), access mode checking); else it shows 0."""
    try:
        return os.geteuid() in {0, Path(f"/proc/{pid}").stat().st_uid}
    except OSError:
        return False
