"""What waits for further lines: a line that began a Block, and the pieces of one that a container runtime has cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from verlwatch.core.lines._line import Block, Fact, Kind, Line, Numbers, Said

PIECES_BYTES = 1 << 17
"""Characters of a line that a container runtime has cut."""
PIECES_LINES = 1000
PIECES_PAST = 1 << 20
"""So many lines and bytes of the source may go by while its pieces come."""


class Place(NamedTuple):
    """Where a physical line stands: its first byte, where its records are certain, the up to 64 bytes before it."""

    start: int
    end: int
    mark: bytes


class Heard(NamedTuple):
    """A message, and what a kind has read in it, if any; the physical line it stands in is the ``number``-th."""

    line: Line
    kind: Kind | None
    said: Said | None
    place: Place
    now: float
    number: int


Told = tuple[Kind, Line, Numbers | Fact]


@dataclass(slots=True)
class Open:
    """A block that waits for its end.

    ``doubted`` is what was read in lines that the block may prove to be something else, up to the block ``inner``,
    which has begun in them and waits as well.
    """

    kind: Kind
    line: Line
    block: Block
    place: Place
    since: float
    number: int
    doubts: bool = False
    doubted: list[Told] = field(default_factory=list)
    inner: Open | None = None

    @property
    def last_line(self) -> int:
        """Number of the last line for which it waits."""
        return self.number + self.block.LINES

    @property
    def last_byte(self) -> int:
        """Where the last line for which it waits begins at the latest."""
        return self.place.end + self.block.BYTES


@dataclass(slots=True)
class Pieces:
    """A line that a container runtime has cut, as far as it came from one ``stream``."""

    stream: str
    place: Place
    since: float
    number: int
    texts: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def last_line(self) -> int:
        """Number of the last line for which they wait."""
        return self.number + PIECES_LINES

    @property
    def last_byte(self) -> int:
        """Where the last line for which they wait begins at the latest."""
        return self.place.start + PIECES_PAST

    def add(self, text: str) -> bool:
        """Takes a further piece; whether there is room for more."""
        self.texts.append(text)
        self.size += len(text)
        return self.size <= PIECES_BYTES
