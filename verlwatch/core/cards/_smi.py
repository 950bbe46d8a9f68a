"""Rows of nvidia-smi in a log or a file -> samples: whose they are and of which instant.

A row names neither its host nor, in many loops, its time.  The file stands for the host.  An instant begins where the
index of the card does not grow any more; without a time stamp it is when the row was read, and of a file that is read
at once, a period after the one before.
"""

from __future__ import annotations

from pathlib import PurePath

from verlwatch.core.types import Event

PERIOD_S = 10.0
FILES = 1024
"""So many are read."""
_LEAST_S = 0.5
_DAY = 86_400


class SmiRows:
    """The rows of every file of one run."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float]] = {}
        """By file: the card and the instant of the last row."""

    def place(self, event: Event, now: float) -> tuple[str, str, float] | None:
        """Host, index and instant of a row; None where it names no card."""
        gpu = event.attributes.get("gpu")
        if not isinstance(gpu, int):
            return None
        source = event.origin.source
        if source not in self._last and len(self._last) >= FILES:
            return None
        before, at = self._last.get(source, (-1, float("-inf")))
        stamp = event.attributes.get("timestamp")
        if gpu <= before or at == float("-inf"):
            read_at = now if now - at >= _LEAST_S else at + PERIOD_S
            at = (_seconds(stamp) if isinstance(stamp, str) else None) or read_at
        self._last[source] = (gpu, at)
        return PurePath(source).stem, str(gpu), at


def _seconds(stamp: str) -> float | None:
    """``2026/05/21 10:30:00.123`` as seconds of the host's own time; None where it is no such stamp.

    Source: days from the civil calendar, https://howardhinnant.github.io/date_algorithms.html.
    """
    try:
        date, _, clock = stamp.partition(" ")
        year, month, day = (int(part) for part in date.split("/"))
        hours, minutes, seconds = clock.split(":")
        year -= month <= 2  # noqa: PLR2004 - the year begins in March
        era, of_era = divmod(year, 400)
        of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
        days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
        return days * _DAY + int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        return None
