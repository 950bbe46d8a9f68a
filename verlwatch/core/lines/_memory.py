"""How much memory the lines that are not yet whole may take, all sources together.

Each is bounded by the line limit, but hundreds of files may stand in the middle of a long line at once: progress bars
rewrite one line for hours.  Where all together are too long, whole lines of them are let go, until half of the room is
free again: first those that hold no needle, of which nothing would be read, and the longest first.  What is read
depends on this only while there is so much, so it is no limit of a line.
"""

from __future__ import annotations

from collections.abc import Iterable

from verlwatch.core.lines._reader import Reader

ROOM_BYTES = 8 << 20
LONG_BYTES = 1 << 14
"""Shorter half lines are neither counted nor let go."""


def too_much(readers: Iterable[Reader], room: int = ROOM_BYTES) -> list[Reader]:
    """The readers that have to let go of their half line; none while all together keep within ``room`` bytes."""
    holding = [reader for reader in readers if reader.held > LONG_BYTES]
    total = sum(reader.held for reader in holding)
    if total <= room:
        return []
    chosen = []
    for reader in sorted(holding, key=lambda reader: (reader.may_say_something, -reader.held)):
        if total <= room // 2:
            break
        total -= reader.held
        chosen.append(reader)
    return chosen
