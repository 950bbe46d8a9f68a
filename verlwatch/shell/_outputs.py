"""Which files a process' output goes to: `verlwatch run --pid`.

Its standard output and error are a file, or a pipe to a program that writes one (``| tee train.log``).  Where they are
neither, it may be a launcher: then the processes below it in its session are asked, then those above.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from verlwatch.shell import _proc
from verlwatch.shell._proc import Link, Process
from verlwatch.shell._writers import Looks
from verlwatch.shell.printable import printable

_ADVICE = "name it with --log, or start the training with `2>&1 | tee train.log`"
_DELETED = " (deleted)"
_NO_RESULT = frozenset({0, 2})  # of a program in a pipe: what it is given, and what it complains of
_PIPES, _FILES, _RELATIVES = 4, 8, 256
_LOOK_S = 5.0


class NoOutput(Exception):  # noqa: N818 - names the situation
    """What a process says goes to no file that can be read here; the text says where it goes and what to do."""


class _End(NamedTuple):
    """Where an output goes: to a file that can be named here, or why not."""

    file: str = ""
    why: str = ""


def outputs(pid: int) -> tuple[str, ...]:
    """The files that a process' output goes to, standard output's first.

    Raises:
        NoOutput: it is not there, may not be looked at, or writes to no file.
    """
    process = _proc.look(pid)
    if process is None or process.is_over:
        raise NoOutput(f"--pid {pid}: no such process on this host; `ps -ef` shows those that there are")
    pipes = Looks().look((), _LOOK_S).pipes
    try:
        ends = _ends(pid, pipes)
    except PermissionError:
        raise NoOutput(
            f"--pid {pid}: belongs to another user; run verlwatch as that user or as root, or name its log with --log"
        ) from None
    except OSError:
        raise NoOutput(f"--pid {pid}: ended just now") from None
    for relative in _relatives(process):
        if files := tuple(dict.fromkeys(end.file for end in ends if end.file)):
            return files
        try:
            ends += _ends(relative, pipes)
        except OSError:
            continue
    if files := tuple(dict.fromkeys(end.file for end in ends if end.file)):
        return files
    why = next((end.why for end in ends), "it has no output")
    raise NoOutput(f"--pid {pid}: no file holds what {_proc.title(pid) or process.name} says: {why}; {_ADVICE}")


def _ends(pid: int, pipes: dict[str, list[Link]]) -> list[_End]:
    """Where standard output and error go.  Raises OSError."""
    standard = [link for link in _proc.links(pid, 3) if link.fd in {1, 2}]
    return [end for link in standard for end in _end(link, pipes)]


def _end(link: Link, pipes: dict[str, list[Link]], depth: int = _PIPES) -> list[_End]:
    target = link.target
    if target.startswith("pipe:"):
        return _beyond(link, pipes, depth)
    if target == "/dev/null":
        return [_End(why="its output is thrown away (/dev/null)")]
    if target.startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
        return [_End(why=f"its output goes to a terminal ({target})")]
    if not target.startswith("/"):
        kind = target.split(":")[0]
        return [_End(why=f"its output goes to a {printable(kind)}, perhaps that of a service or a container")]
    return [_file(link)]


def _file(link: Link) -> _End:
    """The file of a link, if it is there and its path means the same here as it does for the process."""
    path = link.target
    if path.endswith(_DELETED):
        return _End(why=f"its log was deleted ({printable(path.removesuffix(_DELETED))})")
    try:
        if os.path.samestat(os.stat(link.path), os.stat(path)):  # noqa: PTH116 - names of bytes that are no text
            return _End(path) if os.path.isfile(path) else _End(why=f"its output goes to {printable(path)}")  # noqa: PTH113
    except OSError:
        pass
    return _End(why=f"it writes {printable(path)} in a container, which is another path on this host")


def _beyond(link: Link, pipes: dict[str, list[Link]], depth: int) -> list[_End]:
    """The files of whoever reads a pipe."""
    readers = {
        end.pid
        for end in pipes.get(link.target, ())
        if end.fd == 0 and end.pid != link.pid and end.is_for(writing=False)
    }
    ends: list[_End] = []
    for reader in sorted(readers) if depth else ():
        name = f"{_proc.title(reader)} (pid {reader})"
        try:
            written = [end for end in _proc.links(reader) if end.fd not in _NO_RESULT and end.is_for(writing=True)]
        except OSError:
            ends.append(_End(why=f"its output goes through a pipe to {name}, which may not be looked at"))
            continue
        files = [end for end in written if end.target.startswith("/") and not end.target.startswith("/dev/")]
        onward = [end for end in written if end.target.startswith("pipe:") and end.target != link.target]
        if files and len(files) <= _FILES:
            ends += map(_file, files)
        elif onward and not files:
            ends += _end(onward[0], pipes, depth - 1)
        else:
            ends.append(_End(why=f"its output goes through a pipe to {name}, which writes no file of its own"))
    return ends or [_End(why="its output goes into a pipe, and who reads that is not to be seen")]


def _relatives(process: Process) -> Iterator[int]:
    """The processes below one in its session, the nearest first, then those above it."""
    family: dict[int, list[int]] = {}
    for pid in _proc.pids():
        one = _proc.look(pid)
        if one is not None and one.session == process.session and not one.is_over:
            family.setdefault(one.parent, []).append(pid)
    below = deque(family.get(process.pid, ()))
    for _ in range(_RELATIVES):
        if not below:
            break
        yield (pid := below.popleft())
        below += family.get(pid, ())
    above = _proc.look(process.parent)
    while above is not None and above.session == process.session:
        yield above.pid
        above = _proc.look(above.parent)
