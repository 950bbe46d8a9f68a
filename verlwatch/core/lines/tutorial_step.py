"""A step line that people add themselves: ``Step 498: total=3210ms, gen=2980ms, old_log_prob=120ms``.

Source: verl tutorials; no release prints it.  The names are the phases of ``timing_s/``, ``total`` is the step.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Line, Numbers
from verlwatch.core.lines._quantity import NUMBER, SECONDS, seconds
from verlwatch.core.phases import PHASES

NAME: Final = "tutorial_step"
NEEDLES: Final = (b": total=", b": gen=")

_HEAD = re.compile(r"(?:\[[A-Z]{4,8}\] )?[Ss]tep ([0-9]{1,18}): (?=\w)")
_ITEM = re.compile(rf"(\w{{1,60}})=({NUMBER}) ?({SECONDS})")
_ITEMS_MAX = 40
_PHASES = frozenset(key.rpartition("/")[2] for phase in PHASES for key in phase.keys)


def parse(line: Line) -> Numbers | None:
    """Step and seconds under the keys of verl's own step line; an item at the end that misses its unit is left out.

    One item, or none of a phase, is somebody else's: ``Step 3: total=12s`` counts anything.
    """
    head = _HEAD.match(line.text) if not line.from_rollout else None
    if head is None:
        return None
    *items, last = line.text[head.end() :].rstrip().split(", ", _ITEMS_MAX)
    found = [_ITEM.fullmatch(item) for item in items]
    if end := _ITEM.fullmatch(last):
        found.append(end)
    values: dict[str, float] = {}
    names: set[str] = set()
    for item in found:
        if item is None:
            return None
        names.add(item[1])
        values[f"timing_s/{'step' if item[1] == 'total' else item[1]}"] = seconds(item[2], item[3])
    return Numbers(int(head[1]), values) if items and names & _PHASES else None
