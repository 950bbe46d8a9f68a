"""Ray misses a worker: ``A worker died or was killed while executing a task by an unexpected system error. ...``.

Source: Ray ``src/ray/raylet/node_manager.cc``, published as an error of the driver (``(raylet)`` in front, or nothing).
It is the weakest evidence there is: the ids of the process, and a list of what Ray takes for possible.  The ``OOM
killer`` in that list is a guess, never evidence; why the process died is in its own last lines.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line, fault

NAME: Final = "worker_died"
NEEDLES: Final = (b" killed ",)

_HEAD = "A worker died or was killed while executing a "
_PROCESS = re.compile(r" Worker IP address: ([\w.:]{1,64}) Worker port: [0-9]{1,6} Worker PID: ([0-9]{1,10}) ")
_EXIT = re.compile(r" Worker exit type: (\w{1,60}) Worker exit detail: ")


def parse(line: Line) -> Fact | None:
    """``pid``, ``ip`` and ``exit_type`` as far as the line has them."""
    if line.shows_samples:
        return None
    text = bare(line).text
    if not text.startswith(_HEAD):
        return None
    process = _PROCESS.search(text)
    exited = _EXIT.search(text)
    ip, pid = process.groups() if process else (None, None)
    found = {"pid": int(pid) if pid else None, "ip": ip, "exit_type": exited[1] if exited else None}
    return fault(NAME, found, "warning")
