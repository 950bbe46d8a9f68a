"""Where the trainer runs: ``TaskRunner hostname: gpu-node-01, PID: 10691``.

Source: verl ``trainer/main_ppo.py`` since 0.4, and ``[ASYNC MAIN] `` before it in ``fully_async_main.py``.  The pid is
the one of Ray's prefix.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line

NAME: Final = "host"
NEEDLES: Final = (b"TaskRunner hostname: ",)

_HOST = re.compile(r"(?:\[ASYNC MAIN\] )?TaskRunner hostname: (\S{1,253}), PID: ([0-9]{1,10})$")


def parse(line: Line) -> Fact | None:
    """``host`` and ``pid`` of the process that trains."""
    host = _HOST.match(line.text.rstrip()) if not line.cut and not line.from_rollout else None
    return Fact(NAME, {"host": host[1], "pid": int(host[2])}) if host else None
