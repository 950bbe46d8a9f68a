"""An engine that judges nothing: what its sources say goes on, whole, to the engine of a hub.

It has the engine's door, so that the same loop feeds either; its outcomes hold extracts in place of findings.
"""

from __future__ import annotations

from collections.abc import Iterable

from verlwatch.core._run import Run
from verlwatch.core._sources import Reads, Sources
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk, Extract, Outcome, Snapshot


class Gatherer(Reads):
    """Reads what sources say.  Synchronous, and not to be shared between threads."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.runs: dict[str, Run] = {}
        self.strange_states = self.refused_runs = 0  # here nothing is judged, and so nothing strange or too much
        self._sources = Sources(self.settings.line_limit)

    def feed(self, chunk: Chunk, now: float) -> Outcome:
        """Takes bytes that continue a source; a new generation begins at its first byte."""
        extracts, cursors = self._sources.feed(chunk, now)
        return Outcome(tuple(cursors), extracts=tuple(extracts))

    def accept(self, extracts: Iterable[Extract], now: float) -> Outcome:  # noqa: ARG002 - an engine's entries take the time
        """Takes what was seen beside the logs."""
        return Outcome(extracts=tuple(extracts))

    def tick(self, now: float) -> Outcome:
        """Lets time pass: closes constructs that nothing continued."""
        extracts, cursors = self._sources.tick(now)
        return Outcome(tuple(cursors), extracts=tuple(extracts))

    def deadline(self) -> float | None:
        """When `tick` is wanted; None when only bytes can change anything."""
        return self._sources.deadline()

    def due(self) -> float | None:
        """Never: nothing is judged here."""
        return None

    def restore(self, snapshot: Snapshot) -> None:
        """Takes up where the store's last commit left off."""
        self._sources.restore(snapshot.cursors)

    def reconfigure(self, settings: Settings) -> None:
        """Swaps what a user may tune."""
        self.settings = settings
        self._sources.tune(settings.line_limit)
