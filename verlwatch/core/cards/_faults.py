"""What is wrong with cards themselves: told by the driver, or by counters that a sample brings.

An occurrence (an Xid, an ECC error, a driver that was loaded anew) holds for HOLD_S; a card that cannot be seen until
it is; throttling while most of the last samples say it.  A power cap is what a busy card has, and no fault.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from verlwatch.core.cards._card import Card, Key
from verlwatch.core.rules import CardFault
from verlwatch.core.types import Event

HOLD_S = 1800.0
SEEN_KINDS = frozenset({"xid", "ecc", "driver_reload", "unreadable", "nvlink", "pcie", "thermal", "hw_slowdown"})
"""All but a card that is gone."""
_UNTIL_SEEN = ("missing", "unreadable")
_COUNTERS = {"ecc_uncorrected": ("ecc", 1.0), "nvlink_errors": ("nvlink", 10.0), "pcie_replay": ("pcie", 100.0)}
"""Counter -> kind of fault, and by how much it must have grown."""
_HOT = ("thermal", "hw_slowdown")
_MOST, _FEW, _OF = 0.75, 0.25, 12
_XID = re.compile(r"\b([0-9]{1,3})\b")
_DETAIL, _KEPT = 200, 200


class _Place(NamedTuple):
    """Which card has what kind of fault; the number of an Xid tells more."""

    card: str
    kind: str
    code: int | None = None


class Faults:
    """The faults of one run's cards that hold, and when each was seen last."""

    def __init__(self) -> None:
        self._known: dict[_Place, tuple[float, CardFault]] = {}

    def hear(self, event: Event, card: Card | None, step: int, now: float) -> None:
        """Takes a ``gpu_fault``; ``card`` is the one it names, None where it names none that is known."""
        kind, detail = str(event.attributes.get("kind", "")), str(event.attributes.get("detail", ""))[:_DETAIL]
        if kind not in SEEN_KINDS and kind != "missing":
            return
        scope = dict(event.scope)
        place = _card(scope.get("host", ""), scope["gpu"]) if "gpu" in scope else scope.get("host", "")
        code = int(found[1]) if kind == "xid" and (found := _XID.search(detail)) else None
        label, where = (card.label, card.scope) if card is not None else (place, event.scope)
        self._note(_Place(place, kind, code), CardFault(label, where, kind, detail, step, 1, code), now)

    def see(self, card: Card, step: int, now: float) -> None:
        """A sample of the card: it is there; its counters, and what slows it."""
        place = _card(*card.key)
        for kind in _UNTIL_SEEN:
            self._known.pop(_Place(place, kind), None)
        for name, (kind, least) in _COUNTERS.items():
            grown = card.values.get(name, 0.0) - card.counts.get(name, 0.0)
            if grown >= least:
                card.counts[name] = card.values[name]
                fault = CardFault(card.label, card.scope, kind, f"{grown:.0f} more", step)
                self._note(_Place(place, kind), fault, now)
        for kind in _HOT if any(card.throttled) else ():
            share = sum(kind in told.split(",") for told in card.throttled) / max(_OF, len(card.throttled))
            known = _Place(place, kind)
            if share >= _MOST or (known in self._known and share > _FEW):
                heat = card.values.get("temperature_c")
                detail = f"{heat:.0f} °C" if heat is not None else ""
                self._note(known, CardFault(card.label, card.scope, kind, detail, step), now)
            else:
                self._known.pop(known, None)

    def of(self, kinds: Collection[str], now: float) -> tuple[CardFault, ...]:
        """Those of these kinds that hold."""
        for place, (at, _) in list(self._known.items()):
            if place.kind not in _UNTIL_SEEN and now - at > HOLD_S:
                del self._known[place]
        return tuple(fault for place, (_, fault) in self._known.items() if place.kind in kinds)

    def forget(self, key: Key) -> None:
        """A card that is not expected any more."""
        for kind in _UNTIL_SEEN:
            self._known.pop(_Place(_card(*key), kind), None)

    def state(self) -> list[list[Any]]:
        """JSON-safe; the inverse of `restore`."""
        return [[*place, at, *fault] for place, (at, fault) in self._known.items()]

    def restore(self, rows: Iterable[Sequence[Any]]) -> None:
        """The inverse of `state`."""
        for card, kind, code, at, subject, scope, *rest in rows:
            pairs = tuple((label, value) for label, value in scope)
            self._known[_Place(card, kind, code)] = (at, CardFault(subject, pairs, *rest))

    def _note(self, place: _Place, fault: CardFault, now: float) -> None:
        known = self._known.get(place)
        if known is not None:
            before = known[1]
            fault = before._replace(detail=fault.detail or before.detail, seen=before.seen + 1)
        elif len(self._known) >= _KEPT:
            del self._known[min(self._known, key=lambda one: self._known[one][0])]
        self._known[place] = (now, fault)


def _card(host: str, gpu: str) -> str:
    return f"gpu {gpu}@{host}"
