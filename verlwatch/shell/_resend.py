"""Receivers that forget: what they show of an open incident is sent again and again until it ends.

Alertmanager takes an alert for resolved when it has not heard of it for some minutes, and knows none after a restart.
So each RESEND_S, and at the start, the receiver gets all that it noted of incidents that are still open, in one piece.
A repetition that fails is no lost message: the next one says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import structlog

from verlwatch.shell._places import Places
from verlwatch.shell.notifiers import DeliveryError, Notifier, Repeater

_log = structlog.get_logger(__name__)


class Resend:
    """The repetitions to one receiver; ``open_incidents`` tells the ids of those that are open."""

    def __init__(
        self, places: Places, name: str, notifier: Notifier, open_incidents: Callable[[], Collection[str]]
    ) -> None:
        self.error: str | None = None
        """Why the last repetition was not taken."""
        self._places = places
        self.name = name
        self._notifier = notifier
        self._open_incidents = open_incidents
        self._due_at = 0.0

    async def turn(self, now: float) -> float | None:
        """Repeats what is due; when to look again, None if never."""
        if not isinstance(self._notifier, Repeater):
            return None
        every = self._notifier.RESEND_S
        if not now < self._due_at <= now + every:  # further away: the clock was set back
            still_open = set(self._open_incidents())
            noted = await self._places.of(self.name)
            self._due_at = now + every
            await self._send(self._notifier, [text for incident, text in noted.items() if incident in still_open])
        return self._due_at

    async def _send(self, notifier: Repeater, places: list[str]) -> None:
        before, self.error = self.error, None
        try:
            if places:
                await notifier.resend(places)
        except DeliveryError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 - a guarded border: a defect of one notifier stops nobody else
            self.error = f"defect of the notifier, please report: {type(error).__name__} while repeating"
        if self.error is not None and before is None:
            _log.warning("open incidents were not repeated", receiver=self.name, error=self.error)
