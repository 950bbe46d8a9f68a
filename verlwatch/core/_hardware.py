"""The cards of a run, and what is open about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verlwatch.core.cards import Cards
from verlwatch.core.incidents import Change, Conditions, Moment, Policy
from verlwatch.core.settings import Settings

FEW = 64
"""So many cards are kept with every commit."""


class Hardware:
    """Cards are asked when something about them has changed, and with each step."""

    def __init__(self, run: str, settings: Settings) -> None:
        self._groups = settings.card_groups
        self.cards = Cards(run, self._groups)
        self.conditions = Conditions(settings.policy)
        self._kept: dict[str, Any] | None = None

    def tune(self, settings: Settings) -> None:
        """Takes up other settings."""
        self._groups = settings.card_groups
        self.cards.tune(self._groups)

    def turn(self, now: float) -> bool:
        """Lets time pass; whether that changes anything."""
        if self.cards.cards:
            self.cards.tick(now)
        return self.cards.changed

    def look(self, moment: Moment) -> tuple[Change, ...]:
        """What holds of the cards at this moment, and what has ended."""
        told = frozenset(incident.diagnoses[0].subject for incident in self.conditions)
        found = self.cards.diagnose(moment.step, moment.now, told)
        self._kept = None
        changes = self.conditions.update(found, moment, self.cards.outcomes())
        self.conditions.forget(moment.attempt, moment.step)
        return changes

    def state(self, now: float) -> dict[str, Any]:
        """JSON-safe; many cards as they were up to a minute ago, unless something has opened or closed since."""
        if self._kept is None or len(self.cards.cards) <= FEW or self.cards.due(now):
            self._kept = self.cards.state()
        return {"cards": self._kept, "conditions": self.conditions.state()}

    def restore(self, data: Mapping[str, Any], policy: Policy) -> None:
        """Takes up where it was."""
        self.cards.restore(data["cards"])
        self.cards.tune(self._groups)
        self.conditions = Conditions.from_state(data["conditions"], policy)
