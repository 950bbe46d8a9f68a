"""Validation before the first step, and after the last: the run has finished.

Source: verl ``RayPPOTrainer.fit``, ``pprint(f"Final validation metrics: {...}")``: a quoted text wrapped at 80 columns,
of which this is the first line; where it fits or is None it stands unquoted or unwrapped.  Its numbers are also in the
step lines.  What a run prints while it shuts down comes after this line and is noise.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line

NAME: Final = "final_validation"
NEEDLES: Final = (b"al validation metrics: ",)

_LINE = re.compile(r"""\(?["']?(Initial|Final) validation metrics: """)


def parse(line: Line) -> Fact | None:
    """An event ``finished`` for the final validation, ``validated`` for the initial one."""
    found = _LINE.match(line.text) if not line.from_rollout else None
    return Fact("finished" if found[1] == "Final" else "validated") if found else None
