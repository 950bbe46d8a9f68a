"""Spans of local time that come again every week, and local time itself, as plain arithmetic on epoch seconds.

The core knows no clock and no time zones: a Zone says from which epoch second on which offset holds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from verlwatch.core.incidents._grouping import fits
from verlwatch.core.types import Incident

_DAY, _WEEK = 86_400, 7 * 86_400
_MONDAY = 4 * _DAY
"""The epoch began on a Thursday: the first Monday began so many seconds later."""

Zone = tuple[tuple[float, float], ...]
"""(epoch seconds, offset from UTC in seconds that holds from then on), in order; empty: UTC."""


class Window(NamedTuple):
    """A span of local time: the ``days`` on which it begins (0: Monday), and minutes after midnight.

    One whose ``end`` is not after its ``begin`` ends on the following day.
    """

    begin: int
    end: int
    days: frozenset[int] = frozenset(range(7))

    def holds(self, now: float, zone: Zone) -> bool:
        """Whether ``now`` (epoch seconds) lies in it."""
        local = (now + offset(now, zone) - _MONDAY) % _WEEK
        length = 60 * (self.end - self.begin) % _DAY or _DAY
        return any((local - day * _DAY - 60 * self.begin) % _WEEK < length for day in self.days)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A time in which nobody is told of the runs that fit: every week, or once from ``starts_at`` to ``ends_at``."""

    run: str = "*"
    window: Window | None = None
    starts_at: float = 0.0
    ends_at: float = 0.0

    def covers(self, incident: Incident) -> bool:
        """Whether the incident's run fits."""
        return fits(incident.run, self.run)

    def holds(self, now: float, zone: Zone) -> bool:
        """Whether it goes on."""
        return self.window.holds(now, zone) if self.window else self.starts_at <= now < self.ends_at


def offset(now: float, zone: Zone) -> float:
    """Seconds by which local time is ahead of UTC."""
    if not zone:
        return 0.0
    return zone[max(0, bisect_right(zone, now, key=lambda entry: entry[0]) - 1)][1]


def any_holds(windows: Iterable[Window], now: float, zone: Zone) -> bool:
    """Whether ``now`` lies in one of them."""
    return any(window.holds(now, zone) for window in windows)
