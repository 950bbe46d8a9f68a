"""NCCL complains: ``node3:4711:4790 [2] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer``.

Source: NCCL ``src/debug.cc`` (host:pid:tid, CUDA device, place; a time stamp before it since 2.27), printed at
``NCCL_DEBUG=WARN``, which is verl's default (``trainer/constants_ppo.py``).  The device is garbage in a process that is
being torn down, and then left out.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line, fault

NAME: Final = "nccl_warning"
NEEDLES: Final = (b" NCCL WARN ",)

_LINE = re.compile(
    r"([\w.-]{1,100}):([0-9]{1,10}):[0-9]{1,10} \[([0-9]{1,10})\] (?:([\w./-]{1,100}:[0-9]{1,6}) )?NCCL WARN (\S.*)"
)
_DEVICES = 64


def parse(line: Line) -> Fact | None:
    """``host``, ``pid``, ``gpu``, the ``place`` in NCCL's source and the ``text``."""
    found = _LINE.match(bare(line).text) if not line.shows_samples else None
    if found is None:
        return None
    host, pid, device, place, text = found.groups()
    gpu = int(device) if int(device) < _DEVICES else None
    return fault(NAME, {"host": host, "pid": int(pid), "gpu": gpu, "place": place, "text": text}, "warning")
