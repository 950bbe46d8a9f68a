"""What the HTTP server needs of the rest of verlwatch: a status, and a word on whether it still turns."""

from __future__ import annotations

from typing import Protocol

from verlwatch.status import Status


class StatusSource(Protocol):
    """Whoever knows how things stand.  Both are called from the event loop on each request: they must not wait."""

    def status(self) -> Status:
        """How everything stands now."""
        ...

    def stalled(self) -> str | None:
        """What has stopped turning, as a sentence, e.g. ``judging has not turned for 95 s``; None while alive.

        Waiting for work is alive: the judging loop turns at least once within its limit, work or none.
        """
        ...
