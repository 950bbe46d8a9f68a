"""One card as it is known: who it is, what it held lately, and its offset from its group."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from verlwatch.core.cards._offset import Offset, Pair
from verlwatch.core.cards._rows import Reading
from verlwatch.core.types import Scope

STRIP = 24
Key = tuple[str, str]
"""Host and index of the card; of a process that is known from a log its ip and ``pid N``."""
_LONG = 40
_PID = re.compile(r"[0-9]{1,10}")
_UTILIZATIONS = 1200


class Card:
    """A card, or the process that a log tells of in its place."""

    __slots__ = (
        "actor", "at", "counts", "group", "key", "last_peak", "offset", "peak", "peers", "pid", "rank", "strip",
        "subject", "throttled", "total", "used", "used_points", "utilization", "utilizations", "values",
    )  # fmt: skip

    def __init__(self, key: Key, *, exact: bool = False) -> None:
        self.key = key
        self.offset = Offset(exact=exact)
        self.group = -1
        self.pid: int | None = None
        self.rank: str | None = None
        self.actor: str | None = None
        self.at: float | None = None
        self.used: float | None = None
        self.total: float | None = None
        self.peers: float | None = None
        self.utilization: float | None = None
        self.values: dict[str, float] = {}
        """Power, temperature and the like, as the last sample told them."""
        self.peak = 0.0
        """The most it held since the last step; ``last_peak`` in that step."""
        self.last_peak = 0.0
        self.used_points: deque[float] = deque(maxlen=8)
        self.strip: deque[float] = deque(maxlen=STRIP)
        self.utilizations: list[tuple[float, float]] = []
        """Instant and percent, since the last step."""
        self.counts: dict[str, float] = {}
        """Counters of errors as they were first seen."""
        self.throttled: deque[str] = deque(maxlen=12)
        self.subject = ""
        """What its open incident is called: a rank that becomes known later renames none."""

    @property
    def host(self) -> str:
        """Its host, empty for the driver's own in a log."""
        return self.key[0]

    @property
    def limit(self) -> float:
        """GB from which on an offset is worth telling."""
        return max(2.0, 0.05 * (self.total or 0.0))

    @property
    def place(self) -> str:
        """Where it is: ``GPU 3 on node-1``, or the process of a log."""
        index = self.key[1]
        what = index if index.startswith("pid ") else f"GPU {index}"
        return f"{what} on {self.host}" if self.host else what

    @property
    def name(self) -> str:
        """Its rank where that is known, else its place."""
        return f"rank {self.rank}" if self.rank is not None else self.place

    @property
    def label(self) -> str:
        """The name in subjects, without blanks that would need quotes beside one."""
        if self.rank is not None:
            return f"rank {self.rank}"
        index = self.key[1] if self.key[1].startswith("pid ") else f"gpu {self.key[1]}"
        return f"{index}@{self.host}" if self.host else index

    @property
    def scope(self) -> Scope:
        """Host, gpu and rank, as far as they are known."""
        host = (("host", self.host),) if self.host else ()
        gpu = () if self.key[1].startswith("pid ") else (("gpu", self.key[1]),)
        return (*host, *gpu, *((("rank", self.rank),) if self.rank is not None else ()))

    def begin(self) -> None:
        """Another attempt: another process and other memory."""
        self.offset.forget()
        self.rank, self.subject, self.peak, self.last_peak = None, "", 0.0, 0.0

    def read(self, reading: Reading, now: float) -> None:
        """What a line of a log says of its process."""
        self.pid, self.actor = reading.pid or self.pid, reading.actor or self.actor
        self.at, self.total, self.peers = now, reading.total or self.total, reading.peers
        self.used = reading.value if reading.used is None else reading.used
        self.peak = max(self.peak, self.used)
        self.strip.append(reading.value)
        self.offset.see(Pair(reading.x, reading.step, reading.value, reading.peers))

    def take(
        self, at: float, used: float | None, said: Mapping[str, str | int | float], ranks: Mapping[int, str]
    ) -> None:
        """What a sample says of it; ``ranks`` are those that logs tell by pid.  What it does not say stays known."""
        self.at, self.used = at, used
        self.peak = max(self.peak, used or 0.0)
        self.total = finite(said, "total_gb") or self.total
        self.utilization = finite(said, "utilization")
        if self.utilization is not None and len(self.utilizations) < _UTILIZATIONS:
            self.utilizations.append((at, self.utilization))
        names = ("power_w", "temperature_c", "pcie_replay", "nvlink_errors", "ecc_uncorrected")
        self.values = {name: value for name in names if (value := finite(said, name)) is not None}
        self.throttled.append(str(said.get("throttle", "")))
        for name in names[2:]:
            if name in self.values:
                first = self.counts.setdefault(name, self.values[name])
                if self.values[name] < first:  # the driver was loaded anew
                    self.counts[name] = self.values[name]
        pids = _pairs(said.get("pids"))
        if pids:
            self.pid = int(max(pids, key=lambda pair: _gb(pair[1]))[0])
            known = {ranks[int(pid)] for pid, _ in pids if int(pid) in ranks}
            if len(known) == 1:
                self.rank = known.pop()
        if names_of := sorted({name for _, name in _pairs(said.get("actors")) if name}):
            self.actor = ",".join(names_of)[:_LONG]
        if told := {rank for _, rank in _pairs(said.get("ranks")) if rank}:
            self.rank = ",".join(sorted(told, key=lambda rank: (len(rank), rank)))[:_LONG]

    def state(self) -> list[Any]:
        """JSON-safe, at most 256 bytes beside the name of its host."""
        total = None if self.total is None else round(self.total, 2)
        return [
            *self.key, self.rank, self.actor, total, self.group, self.subject or None,
            int(self.offset.exact), self.offset.state(),
        ]  # fmt: skip

    @classmethod
    def from_state(cls, data: Sequence[Any]) -> Card:
        """The inverse of `state`."""
        host, index, rank, actor, total, group, subject, exact, offset = data
        card = cls((host, index), exact=bool(exact))
        card.rank, card.actor, card.total, card.group, card.subject = rank, actor, total, group, subject or ""
        card.offset.restore(offset)
        return card


def finite(said: Mapping[str, str | int | float], name: str) -> float | None:
    """A finite number that is not negative; None for anything else: whoever sends it is not always right."""
    value = said.get(name)
    return float(value) if isinstance(value, int | float) and isfinite(value) and value >= 0.0 else None


def _pairs(text: str | float | None) -> list[tuple[str, str]]:
    """``123:40.21,456:1.02`` as pairs; what has no number in front, as a process id is, is left out."""
    if not isinstance(text, str):
        return []
    parts = (part.strip().partition(":") for part in text.split(","))
    return [(pid, value) for pid, _, value in parts if _PID.fullmatch(pid)]


def _gb(text: str) -> float:
    """How much a process holds; 0 where that is not told."""
    try:
        return float(text)
    except ValueError:
        return 0.0
