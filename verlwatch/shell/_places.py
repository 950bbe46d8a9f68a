"""The table of places: what a channel notes of an incident, in that channel's own words.

A message that is to be edited, a thread to reply in, an alert to repeat.  It is written as soon as the channel has said
yes, before the outbox row is done: whoever is killed between the two sends nothing twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from verlwatch.shell.clock import Clock

Within = Callable[..., Awaitable[Any]]
"""Runs a function that takes the connection first, in a transaction, with the arguments behind it."""


class Places:
    """The table, for those who wait for it; raises as `Store` does."""

    def __init__(self, within: Within) -> None:
        self._within = within

    async def read(self, receiver: str, incident: str) -> str:
        """What was noted last; empty if nothing was."""
        text: str = await self._within(_read, receiver, incident)
        return text

    async def note(self, receiver: str, incident: str, text: str, now: float) -> None:
        """Replaces what was noted; an empty ``text`` forgets it."""
        await self._within(_note, receiver, incident, text, now)

    async def of(self, receiver: str) -> dict[str, str]:
        """All that a receiver has noted, by incident, oldest first."""
        noted: dict[str, str] = await self._within(_of, receiver)
        return noted


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """The place of one incident at one receiver; ``stored`` calls the store until the disk lets it."""

    places: Places
    receiver: str
    incident: str
    clock: Clock
    stored: Callable[..., Awaitable[Any]]

    async def read(self) -> str:
        """See `Place`."""
        text: str = await self.stored(self.places.read, self.receiver, self.incident)
        return text

    async def note(self, text: str) -> None:
        """See `Place`."""
        await self.stored(self.places.note, self.receiver, self.incident, text, self.clock.now())


def _read(sql: sqlite3.Connection, receiver: str, incident: str) -> str:
    row = sql.execute("SELECT text FROM place WHERE receiver = ? AND incident = ?", (receiver, incident)).fetchone()
    return row[0] if row else ""


def _note(sql: sqlite3.Connection, receiver: str, incident: str, text: str, now: float) -> None:
    if text:
        sql.execute("INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?)", (receiver, incident, text, now))
    else:
        sql.execute("DELETE FROM place WHERE receiver = ? AND incident = ?", (receiver, incident))


def _of(sql: sqlite3.Connection, receiver: str) -> dict[str, str]:
    return dict(sql.execute("SELECT incident, text FROM place WHERE receiver = ? ORDER BY at", (receiver,)))
