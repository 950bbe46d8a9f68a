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
AHEAD_S = 60.0
"""No sample comes so long before its instant: a clock has been set."""
_DEFAULT_PERIOD_S = 10.0


class Instants(Generic[Key]):
    """By instant: what each card held.  ``late`` counts samples that came when their instant was over."""

    def __init__(self) -> None:
        self.late = 0
        self.period = _DEFAULT_PERIOD_S
        """Seconds between two instants."""
        self.closed_at = float("-inf")
        self._pending: dict[float, dict[Key, float]] = {}
        self._hosts: dict[str, _Host] = {}
        self._live: dict[Key, float] = {}
        self._gaps: list[float] = []

    def add(self, key: Key, at: float, value: float | None, now: float) -> float | None:
        """Takes a sample of card ``key``; its instant as it is counted here, None if that is over.

        A card that does not tell its memory (``value`` None) lives as well.
        """
        at = round(at / GRAIN_S) * GRAIN_S
        host = self._hosts.get(key[0])
        if host is None:
            host = self._hosts[key[0]] = _Host(at)
        if at > host.newest:
            self._gaps = [*self._gaps[-8:], at - host.newest]
            self.period = median(self._gaps)
            host.begin(at)
        host.heard_at = now
        host.told += at == host.newest
        self._live[key] = max(at, self._live.get(key, at))
        if at <= self.closed_at:
            self.late += 1
            return None
        values = self._pending.setdefault(at, {})
        if value is not None:
            values[key] = value
        return at

    def turn(self, now: float) -> bool:
        """It is ``now``; whether the clock was set back: instants begin anew then, or all would be late for so long."""
        if all(host.newest <= now + AHEAD_S for host in self._hosts.values()):
            return False
        self._pending, self._hosts, self._live, self.closed_at = {}, {}, {}, float("-inf")
        return True

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
        return [(key, at) for key, at in self._live.items() if self._hosts[key[0]].newest - at >= least]

    def forget(self, key: Key) -> None:
        """A card that is not expected any more."""
        self._live.pop(key, None)
        if not any(host == key[0] for host, _ in self._live):
            self._hosts.pop(key[0], None)

    def _is_complete(self, at: float, now: float) -> bool:
        last = max((host.newest for host in self._hosts.values()), default=at)
        return all(
            host.has_told(at) or last - host.newest > PATIENCE * self.period or now - host.heard_at > SILENT_S
            for host in self._hosts.values()
        )


class _Host:
    """How far a host has come: its newest instant, the cards told of it, and how many there were before."""

    __slots__ = ("expected", "first", "heard_at", "newest", "told")

    def __init__(self, at: float) -> None:
        self.first = self.newest = at
        self.heard_at = 0.0
        self.told = self.expected = 0

    def begin(self, at: float) -> None:
        """The next instant; a card that is left out once is waited for at one more."""
        self.expected = max(self.told, min(self.expected, self.told + 1))
        self.newest, self.told = at, 0

    def has_told(self, at: float) -> bool:
        """Whether it has gone on, or told all its cards; how many it has is not known at its first instant."""
        return self.newest > at or (self.newest == at and at > self.first and self.told >= self.expected)
