"""Steps that have no number: phases told one a line are counted into steps.

``[INFO] step: gen: 2487.3ms`` names no step, so a step is what lies between two tellings of the same phase by the same
writer, and its number is how many came before.  Only a run whose log numbers no steps is counted so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verlwatch.core.phases import PHASES
from verlwatch.core.types import Event, Samples

_KEYS = {phase.name: phase.keys[0] for phase in PHASES}
WRITERS = 16
"""More than so many tell no single training."""


class Ordinals:
    """The steps of one run, counted for each writer."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, float]] = {}
        self._counted: dict[str, int] = {}

    def take(self, event: Event) -> Samples | None:
        """Takes the time of one phase; the step before it, once a phase comes again."""
        key = _KEYS.get(str(event.attributes.get("phase")))
        seconds = event.attributes.get("seconds")
        if key is None or not isinstance(seconds, int | float):
            return None
        origin = event.origin
        voice = f"{origin.source}\0{origin.writer.pid}\0{origin.writer.ip}"
        if voice not in self._open and len(self._open) >= WRITERS:
            return None
        told = self._open.setdefault(voice, {})
        done = None
        if key in told:
            self._counted[voice] = step = self._counted.get(voice, 0) + 1
            done = Samples(origin, step, {**told, "timing_s/step": sum(told.values())})
            told.clear()
        told[key] = float(seconds)
        return done

    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `restore`."""
        return {"open": self._open, "counted": self._counted}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes up where `state` left off."""
        self._open = {voice: dict(told) for voice, told in data["open"].items()}
        self._counted = dict(data["counted"])
