"""A phase that begins or ends: ``[2026-03-24 06:36:51] timer.py:24 - Timer actor_train start``.

Source: slime ``slime/utils/timer.py`` (``Timer X start``, ``Timer X end (elapsed: 12.3s)``), on rank 0.  verl prints
nothing of the kind: it tells a phase's seconds when the step is over.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line
from verlwatch.core.lines._quantity import NUMBER, SECONDS, seconds

NAME: Final = "phase_timer"
NEEDLES: Final = (b"Timer ",)

_TIMER = re.compile(
    r"(?:\[[0-9-]{10} [0-9:.,]{8,12}\] )?(?:[\w.]{1,60}:[0-9]{1,6} - )?"
    rf"Timer (\w{{1,60}}) (?:(start)|end \((?:elapsed: )?({NUMBER})({SECONDS})\))$"
)


def parse(line: Line) -> Fact | None:
    """``phase``, and ``what``: start, or end with the ``elapsed_s``."""
    timer = _TIMER.match(line.text.rstrip()) if not line.shows_samples else None
    if timer is None:
        return None
    if timer[2]:
        return Fact(NAME, {"phase": timer[1], "what": "start"})
    return Fact(NAME, {"phase": timer[1], "what": "end", "elapsed_s": seconds(timer[3], timer[4])})
