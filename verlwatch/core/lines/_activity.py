"""That a source goes on growing, told now and then: activity is no progress, but silence is no stall either.

The event ``activity`` says how many lines came with the bytes, and how the last one reads.
"""

from __future__ import annotations

from typing import Final

from verlwatch.core.lines._envelope import messages
from verlwatch.core.lines._secrets import blanked
from verlwatch.core.types import NOBODY, Event, Origin

ACTIVITY_S: Final = 10.0
"""A source that says nothing of interest is told to be active at most so often."""
_LINE: Final = 2000
_EXCERPT: Final = 200


def activity(source: str, generation: int, end: int, data: bytes) -> Event:
    """What ``data``, which ends at byte ``end`` of the source, shows of it."""
    rows = data[-_LINE:].splitlines()
    last = next((row for row in reversed(rows) if row.strip()), b"")
    said = messages(last.decode(errors="replace")) if last else []
    writer = said[-1].writer if said else NOBODY
    text = blanked(said[-1].text).strip()[:_EXCERPT] if said else ""
    origin = Origin(source, generation, end, writer, "activity")
    return Event(origin, "activity", {"lines": data.count(b"\n")}, excerpt=text)
