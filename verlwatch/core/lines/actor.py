"""The head of a worker file: ``:actor_name:TaskRunner``, who writes the lines that follow.

Source: Ray ``_private/worker.py`` prints ``:job_id:01000000`` and ``:actor_name:NAME`` (an actor) or
``:task_name:NAME`` (a task) at the beginning of ``worker-*.out`` and ``.err``, and again where a process changes its
work.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line

NAME: Final = "actor"
NEEDLES: Final = (b"_name:",)

_HEAD = re.compile(r":(?:actor|task)_name:([\w.:<>()=, -]{1,100})$")


def parse(line: Line) -> Fact | None:
    """The ``name``."""
    head = _HEAD.match(line.text) if not line.cut else None
    return Fact(NAME, {"name": head[1]}) if head else None
