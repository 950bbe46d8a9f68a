"""Whether names in directories may have changed: a stat of each tells, without listing any."""

from __future__ import annotations

import os
from collections.abc import Iterable

RECENT_S = 2.0  # file systems tell times in steps of up to so much: what changes twice within one step shows once

_Seen = tuple[int, int, int]  # device, inode, time of change: of names in it, and of the right to list them


class Folders:
    """What was seen of directories when they were searched; until then they count as changed."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen | None] = {}
        self._recent = True

    def searched(self, folders: Iterable[str], now: float) -> None:
        """These have been searched in a search that began at ``now``."""
        self._seen = {folder: _look(folder) for folder in folders}
        self._recent = any(seen is not None and seen[2] / 1e9 > now - RECENT_S for seen in self._seen.values())

    @property
    def changed(self) -> bool:
        """Whether a name may have appeared, moved or vanished in them since."""
        return self._recent or any(_look(folder) != seen for folder, seen in self._seen.items())


def _look(folder: str) -> _Seen | None:
    try:
        status = os.stat(folder)  # noqa: PTH116  # a Path costs as much again
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns
