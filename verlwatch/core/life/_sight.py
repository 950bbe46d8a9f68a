"""How the sources of a run stand, as their readers see them: what is not seen is judged neither as late nor as well."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

FRESH_S = 3600.0
"""A log that was written within so long before it was first seen is of a run that may live."""


AGENT = "agent "
"""In front of an agent's name where it stands for all logs that it reads; theirs begin with ``NAME:``."""


class Sight(NamedTuple):
    """How a source stands, as its reader sees it; ``behind`` says that bytes are there which are not judged yet."""

    source: str
    run: str
    readable: bool = True
    error: str = ""
    behind: bool = False
    changed_at: float = 0.0


class Sights:
    """Of the sources of one run, at the last look."""

    def __init__(self) -> None:
        self.unseen: dict[str, str] = {}
        """Source that cannot be read -> why."""
        self.unseen_at: float | None = None
        """Since when any cannot."""
        self.is_behind = False
        self.is_known = True
        """False after a restart, until somebody has looked."""

    def see(self, sights: Collection[Sight], now: float) -> bool:
        """Takes how they stand; whether that changes anything."""
        before = self.unseen.keys(), self.is_behind, self.is_known
        self.unseen = {one.source: one.error for one in sights if not one.readable}
        self.is_behind, self.is_known = any(one.behind for one in sights), True
        if not self.unseen:
            self.unseen_at = None
        elif self.unseen_at is None:
            self.unseen_at = now
        return before != (self.unseen.keys(), self.is_behind, self.is_known)

    def hides(self, source: str) -> bool:
        """Whether what a run does cannot be seen: ``source`` tells of its steps, any where none has yet."""
        agents = (one.removeprefix(AGENT) for one in self.unseen if one.startswith(AGENT))
        return (
            source in self.unseen
            or any(source.startswith(f"{name}:") for name in agents)
            or (not source and bool(self.unseen))
        )

    def forget(self) -> None:
        """A restart: nothing is known until somebody looks."""
        self.is_known = False

    def words(self) -> tuple[str, ...]:
        """Which cannot be read, and why.  An agent that is gone or blind is told of itself (see `core.fleet`)."""
        own = ((source, why) for source, why in self.unseen.items() if not source.startswith(AGENT))
        return tuple(f"{source}: {why}" if why else source for source, why in own)
