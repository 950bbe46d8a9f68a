"""Samples of many hosts -> instants that are complete, in their order.

A host sends its cards in the order of time.  An instant is complete when every host has told all its cards, or has
gone on to a later one; a host that lags more than PATIENCE periods behind, or is silent, is not waited for.  What comes
after that is late: counted, and used for nothing.
"""

from __future__ import annotations

from statistics import median
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=tuple[str, str])
PATIENCE = 6
SILENT_S = 90.0
GRAIN_S = 0.5
"""Instants that are nearer to each other are the same: clocks of hosts differ by milliseconds."""
_DEFAULT_PERIOD_S = 10.0


class Instants(Generic[Key]):
    """By instant: what each card held.  ``late`` counts samples that came when their instant was over."""

    def __init__(self) -> None:
        self.late = 0
        self.newest: dict[str, float] = {}
        """The last instant of each host."""
        self.closed_at = float("-inf")
        self._pending: dict[float, dict[Key, float]] = {}
        self._heard: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self._live: dict[Key, float] = {}
        self._gaps: list[float] = []

    @property
    def period(self) -> float:
        """Seconds between two instants."""
        return median(self._gaps) if self._gaps else _DEFAULT_PERIOD_S

    def add(self, key: Key, at: float, value: float | None, now: float) -> float | None:
        """Takes a sample of card ``key``; its instant as it is counted here, None if that is over.

        A card that does not tell its memory (``value`` None) lives as well.
        """
        at = round(at / GRAIN_S) * GRAIN_S
        host = key[0]
        before = self.newest.get(host)
        self._heard[host] = now
        self._first.setdefault(host, at)
        self._live[key] = max(at, self._live.get(key, at))
        if before is None or at > before:
            if before is not None:
                self._gaps = [*self._gaps[-8:], at - before]
            self.newest[host] = at
        if at <= self.closed_at:
            self.late += 1
            return None
        values = self._pending.setdefault(at, {})
        if value is not None:
            values[key] = value
        return at

    def ready(self, now: float) -> list[tuple[float, dict[Key, float]]]:
        """The instants that are complete by now, oldest first."""
        out = []
        for at in sorted(self._pending):
            if not self._is_complete(at, now) and len(self._pending) <= 4 * PATIENCE:
                break
            out.append((at, self._pending.pop(at)))
            self.closed_at = at
        return out

    def lost(self, periods: int) -> list[tuple[Key, float]]:
        """Cards that their host has left out for so many periods while it told others, and their last instant."""
        least = periods * self.period
        return [(key, at) for key, at in self._live.items() if self.newest[key[0]] - at >= least]

    def forget(self, key: Key) -> None:
        """A card that is not expected any more."""
        self._live.pop(key, None)

    def _is_complete(self, at: float, now: float) -> bool:
        last = max(self.newest.values())
        for host, newest in self.newest.items():
            gone = last - newest > PATIENCE * self.period or now - self._heard[host] > SILENT_S
            if newest > at or gone:
                continue
            if newest < at or at == self._first[host]:  # how many cards it has is not known yet
                return False
            values = self._pending[at]
            cards = [key for key, seen in self._live.items() if key[0] == host and at - seen <= 2 * self.period]
            if any(self._live[key] < at and key not in values for key in cards):
                return False
        return True
