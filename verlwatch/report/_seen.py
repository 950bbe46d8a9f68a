"""Numbers that a log tells beside its steps, kept within bounds: gauges, and what each card held over time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from verlwatch.core.types import Event
from verlwatch.report._model import MemoryKind

ROOM = 1 << 14
"""Values kept of one gauge, points of one card at one moment of the step."""
HEADS = 48
KINDS: tuple[MemoryKind, ...] = ("used", "reserved", "allocated")
"""What is told of memory, that which holds the others first."""
TRACKS = 4096


class Seen:
    """A number that is seen again and again: count, least and most of all, and a sample that grows no further."""

    def __init__(self) -> None:
        self.count = 0
        self.low = float("inf")
        self.high = float("-inf")
        self.last = 0.0
        self.over = 0
        """How many of them were counted as too much."""
        self.values = array("d")
        """All of them, or every n-th where there are very many."""
        self.steps = array("q")
        """In which step each of ``values`` was seen."""
        self._every = 1

    def add(self, value: float, step: int, *, is_over: bool = False) -> None:
        """Takes a value."""
        if self.count % self._every == 0:
            self.values.append(value)
            self.steps.append(step)
            if len(self.values) > ROOM:
                del self.values[1::2]
                del self.steps[1::2]
                self._every *= 2
        self.count += 1
        self.over += is_over
        self.low, self.high, self.last = min(self.low, value), max(self.high, value), value

    @property
    def median(self) -> float:
        """Of ``values``."""
        return median(self.values)


@dataclass(slots=True)
class Points:
    """Memory of one card at one moment of the step: when it was read and how much it was."""

    at: array[int] = field(default_factory=lambda: array("q"))
    gb: array[float] = field(default_factory=lambda: array("d"))
    count: int = 0
    every: int = 1

    def add(self, step: int, gb: float) -> None:
        """Takes what was read in a step; of a file that shows no steps, only the order is known."""
        if self.count % self.every == 0:
            self.at.append(step if step >= 0 else self.count)
            self.gb.append(gb)
            if len(self.at) > ROOM:
                del self.at[1::2]
                del self.gb[1::2]
                self.every *= 2
        self.count += 1


@dataclass(slots=True)
class Card:
    """One card or process, and its points by the moment that the log names."""

    name: str
    host: str
    kind: MemoryKind
    gpu: int | None = None
    pid: int = 0
    source: str = ""
    rank: int | None = None
    total_gb: float | None = None
    heads: dict[str, Points] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How often it was seen."""
        return sum(points.count for points in self.heads.values())

    def add(self, head: str, step: int, gb: object) -> None:
        """Takes what it holds at a moment of a step."""
        if isinstance(gb, int | float) and (head in self.heads or len(self.heads) < HEADS):
            self.heads.setdefault(head, Points()).add(step, float(gb))

    def size(self, total: object) -> None:
        """Takes the size of the card."""
        if isinstance(total, int | float):
            self.total_gb = float(total)


class Cards:
    """Everybody's memory, from lines of processes about themselves and lines about all cards of a host."""

    def __init__(self) -> None:
        self.cards: dict[tuple[str, str, str, int], Card] = {}
        self.ranks: dict[tuple[str, int, str], int] = {}

    def take_rank(self, event: Event) -> None:
        """A process tells its rank."""
        rank = event.attributes.get("rank")
        if isinstance(rank, int):
            self.ranks[self._who(event)] = rank

    def take(self, event: Event, step: int) -> None:
        """Memory of one process, or of all cards in a line, read in ``step``."""
        said = event.attributes
        head = str(said.get("head", ""))
        gpus = [(int(name[8:]), value) for name, value in said.items() if name.startswith("used_gb.")]
        for gpu, gb in gpus:
            self._gpu(event, gpu, said.get(f"total_gb.{gpu}")).add(head, step, gb)
        kind = next((kind for kind in KINDS if f"{kind}_gb" in said), None)
        if gpus or kind is None:
            return
        pid = event.origin.writer.pid
        card = self._card(event, "pid", pid, f"pid {pid}" if pid else "", kind)
        card.size(said.get("total_gb"))
        card.add(head, step, said[f"{kind}_gb"])

    def take_sample(self, event: Event, step: int) -> None:
        """A row of nvidia-smi."""
        gpu, gb = event.attributes.get("gpu"), event.attributes.get("used_gb")
        if isinstance(gpu, int) and gb is not None:
            self._gpu(event, gpu, event.attributes.get("total_gb")).add("", step, gb)

    def _gpu(self, event: Event, gpu: int, total: object) -> Card:
        card = self._card(event, "gpu", gpu, f"GPU {gpu}", "used")
        card.gpu = gpu
        card.size(total)
        return card

    def _card(self, event: Event, what: str, number: int, name: str, kind: MemoryKind) -> Card:
        """The card of that name on the host that this source tells of; one of too many is forgotten again."""
        writer = event.origin.writer
        host = writer.ip or dict(event.scope).get("host", "")
        key = (event.origin.source, host, what, number)
        card = self.cards.get(key)
        if card is None:
            card = Card(name, host, kind, pid=writer.pid, source=event.origin.source)
            if len(self.cards) < TRACKS:
                self.cards[key] = card
        return card

    def known(self) -> Iterator[Card]:
        """Each card once, with its rank where a process has told it: as the source that tells most of it has it."""
        best: dict[tuple[str, str, int], Card] = {}
        for (source, host, what, number), card in self.cards.items():
            card.rank = self.ranks.get((card.host, card.pid, "" if card.pid else card.source))
            who = (host if number or what == "gpu" else source, what, number)
            if who not in best or card.count > best[who].count:
                best[who] = card
        yield from best.values()

    @staticmethod
    def _who(event: Event) -> tuple[str, int, str]:
        writer = event.origin.writer
        return writer.ip, writer.pid, "" if writer.pid else event.origin.source
