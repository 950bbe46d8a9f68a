"""Whether what a step says of losses and gradients are numbers: nan and infinity are told at once."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from verlwatch.core.rules import NotFinite
from verlwatch.core.types import Event

NAME = "not_finite"
"""The class of the fault that workers print of a gradient (`core.lines.not_finite`)."""
_ENDS = ("grad_norm", "loss")
_GROUPS = ("actor/", "critic/", "train/")
_MOST_RANKS = 64


class Finite:
    """Of one run: how long losses or gradients have been no numbers, and which ranks say so."""

    def __init__(self) -> None:
        self._step = -1
        self._known: NotFinite | None = None  # of that step
        self._ranks: dict[str, str] = {}  # of the step that is told next -> nan or inf; "" where a line names no rank

    def hear(self, event: Event) -> None:
        """Takes a fault that a worker printed; it belongs to the step that is told next."""
        if event.attributes.get("class") == NAME and len(self._ranks) < _MOST_RANKS:
            self._ranks[str(event.attributes.get("rank", ""))] = str(event.attributes.get("value", "nan"))

    def look(self, step: int, values: Mapping[str, float]) -> NotFinite | None:
        """What is no number at this step; None where all are.  Two sources may tell the same step."""
        found: dict[str, str] = {}
        if not all(map(isfinite, values.values())):
            found = {key: str(v) for key, v in values.items() if not isfinite(v) and _is_watched(key)}
        known, again = self._known, step == self._step
        if again and not found:
            return known
        ranks, self._ranks = self._ranks, {}
        self._step, self._known = step, None
        if found or ranks:
            since, steps = (known.since, known.steps) if known is not None and known.since <= step else (step, 0)
            self._known = NotFinite(found, ranks, since, steps + (not again or not steps))
        return self._known

    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `restore`."""
        return {"step": self._step, "known": self._known and list(self._known), "ranks": self._ranks}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes up where `state` left off."""
        self._step, self._ranks = data["step"], dict(data["ranks"])
        self._known = NotFinite(*data["known"]) if data["known"] else None


def _is_watched(key: str) -> bool:
    return key.startswith(_GROUPS) and key.endswith(_ENDS)
