"""Bytes of a log -> records.

One file for each kind of line that is read: `ls` of this folder is the list, and KINDS its order.  Feed a Reader with
the bytes of one source as they come, in pieces of any size; the records do not depend on where the pieces end.
"""

from verlwatch.core.lines._activity import ACTIVITY_S, activity
from verlwatch.core.lines._counts import Counts
from verlwatch.core.lines._kinds import KINDS
from verlwatch.core.lines._line import Block, Fact, Kind, Line, Numbers, Take
from verlwatch.core.lines._memory import LONG_BYTES, ROOM_BYTES, too_much
from verlwatch.core.lines._own import GROUPS, OwnLine, Search, UnreadableError
from verlwatch.core.lines._paste import rejoined
from verlwatch.core.lines._reader import Reader

__all__ = [
    "ACTIVITY_S",
    "GROUPS",
    "KINDS",
    "LONG_BYTES",
    "ROOM_BYTES",
    "Block",
    "Counts",
    "Fact",
    "Kind",
    "Line",
    "Numbers",
    "OwnLine",
    "Reader",
    "Search",
    "Take",
    "UnreadableError",
    "activity",
    "rejoined",
    "too_much",
]
