"""Who a process on a card is: the Ray actor that its command line names, and the rank in its environment.

The process ids that a driver tells are those of the host.  In a container of its own process ids another process may
have that id: where the open files of a process can be seen, it must have a GPU's device open.

Source: Ray sets the title of a worker to ``ray::NAME`` or ``ray::NAME.method`` (``_private/worker.py``); verl gives
each worker ``RANK`` by its runtime environment (``single_controller/ray/base.py``), which Ray puts in place before the
process starts, so that /proc shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

KEPT_S = 30.0
"""How long what is known of a process is not looked up again; a worker of Ray becomes another actor."""
_BYTES = 1 << 16
_TITLE = re.compile(rb"ray::([A-Za-z_][\w-]{0,60})")
_RANK = re.compile(rb"(?:^|\0)RANK=([0-9]{1,6})(?=\0|$)")
_DEVICE = re.compile(r"/dev/(?:nvidia[0-9]|kfd|davinci[0-9]|dri/)")
_IDLE = "IDLE"
_MOST = 4096


class Who(NamedTuple):
    """What is known of a process; empty where nothing tells."""

    actor: str = ""
    rank: str = ""


class CardProcesses:
    """Those of this host, by their ids.  Nothing else of an environment is kept, shown or logged."""

    def __init__(self, now: Callable[[], float], proc: str = "/proc") -> None:
        self._now = now
        self._proc = Path(proc)
        self._known: dict[int, tuple[float, Who]] = {}

    def who(self, pid: int) -> Who:
        """The actor and rank of a process."""
        now = self._now()
        looked_at, who = self._known.get(pid, (float("-inf"), Who()))
        if not 0 <= now - looked_at < KEPT_S:
            if len(self._known) >= _MOST:
                self._known.clear()
            who = self._looked_up(pid)
            self._known[pid] = now, who
        return who

    def _looked_up(self, pid: int) -> Who:
        folder = self._proc / str(pid)
        title = _TITLE.match(_read(folder / "cmdline"))
        rank = _RANK.search(_read(folder / "environ"))
        if not (title or rank) or not _uses_a_device(folder / "fd"):
            return Who()
        actor = title[1].decode() if title else ""
        return Who("" if actor == _IDLE else actor, rank[1].decode() if rank else "")


def _uses_a_device(folder: Path) -> bool:
    """False only where its open files can be seen, and none is a GPU's."""
    try:
        opened = list(folder.iterdir())
    except OSError:
        return True
    for link in opened:
        try:
            if _DEVICE.match(str(link.readlink())):
                return True
        except OSError:  # closed meanwhile
            continue
    return False


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_BYTES)
    except OSError:
        return b""
