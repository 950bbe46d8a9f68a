"""What opens and closes of the cards' offsets, and in words how that ended which held until then."""

from __future__ import annotations

from collections.abc import Iterable

from verlwatch.core.cards._card import Card
from verlwatch.core.cards._offset import Change
from verlwatch.core.cards._view import outcome

ACCEPT_STEPS = 200


class Openings:
    """The part of `Cards` that says so."""

    def __init__(self) -> None:
        self.changed = False
        """Whether something opened or closed since it was last asked for."""
        self._step = -1
        self._outcomes: dict[str, str] = {}

    def outcomes(self) -> dict[str, str]:
        """By subject: in words how that ended which held until now; each is given once."""
        out, self._outcomes = self._outcomes, {}
        return out

    def _point(self, card: Card, *, tells: bool = True, of_two: bool = False) -> None:
        before = card.offset.change
        change = card.offset.close(card.limit)
        card.used_points.append(card.used or 0.0)
        if before is not None and card.offset.change is None:
            self._over(card, outcome(card, before))
        elif change is not None and tells and not (of_two and (card.offset.points[-1].offset < (change.before or 0.0))):
            self._open(card, change)

    def _open(self, card: Card, change: Change, instants: int = 0) -> None:
        card.offset.open(change, instants)
        card.subject = f"memory {card.label}"
        self.changed = True

    def _over(self, card: Card, words: str) -> None:
        self._outcomes[card.subject] = words
        card.subject = ""
        self.changed = True

    def _regrouped(self, cards: Iterable[Card]) -> None:
        """They have other peers from now on."""
        for card in cards:
            card.offset.forget()
            if card.subject:
                self._over(card, f"{card.name} does other work than the cards that it was compared with")

    def _accept(self, card: Card) -> None:
        """An offset that has stayed where it is for very long is the card's own."""
        change = card.offset.change
        if change is None or self._step - change.onset < ACCEPT_STEPS or card.offset.slope() is not None:
            return
        card.offset.settle()
        self._over(card, f"{card.name} has stayed where it is for {ACCEPT_STEPS} steps; this is its normal now")
