"""What a run has done so far: steps, seconds by phase, the best validation.  Told when it is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from verlwatch.core.phases import STEP, THROUGHPUT
from verlwatch.core.words import amount, duration

SHOWN = 4
"""Phases that are named; the others count together."""
_SCORES = ("val-core/", "val/test_score/")
"""Source: verl ``RayPPOTrainer._validate``; ``val/test_score/`` up to 0.3."""


class Ledger:
    """Sums over all attempts; a step that another source tells again is not taken twice."""

    def __init__(self) -> None:
        self.steps = 0
        self.seconds: dict[str, float] = {}
        self.whole_s = 0.0
        self.scores: dict[str, list[float]] = {}
        """Validation metric -> its highest value and that step, the last value."""

    def take(self, seconds: Mapping[str, float]) -> None:
        """The seconds of a step by phase, STEP without validation and checkpoint."""
        self.steps += 1
        parts = {name: value for name, value in seconds.items() if name not in {STEP, THROUGHPUT} and value > 0.0}
        for name, value in parts.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + value
        apart = sum(parts.get(name, 0.0) for name in ("testing", "save_checkpoint"))
        self.whole_s += seconds.get(STEP, sum(parts.values()) - apart) + apart

    def score(self, step: int, values: Mapping[str, float]) -> None:
        """Keeps the validation scores among the numbers of a step; the first of them names the run's result."""
        for name, value in values.items():
            if name.startswith(_SCORES) and value == value:  # noqa: PLR0124 - nan is no score
                best = self.scores.get(name)
                if best is None and len(self.scores) < SHOWN:
                    self.scores[name] = [value, step, value]
                elif best is not None:
                    self.scores[name] = [value, step, value] if value > best[0] else [best[0], best[1], value]

    def facts(self, gpus: int | None, lived_s: float) -> Iterator[tuple[str, str]]:
        """(label, value) pairs of a message; a log that was read late shows less than its steps took."""
        took = max(lived_s, self.whole_s)
        yield "Steps", str(self.steps)
        yield "Duration", duration(took) if took else ""
        if gpus and took:
            yield "GPU-hours", amount(gpus * took / 3600)
        yield "Time by phase", self._shares()
        for name, (best, at, last) in self.scores.items():
            yield "Best validation", f"{name.partition('/')[2]} {best:.4g} at step {at:g}, {last:.4g} at the end"
            break

    def _shares(self) -> str:
        whole = self.whole_s
        if not whole:
            return ""
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        shown = [f"{name} {seconds / whole:.0%}" for name, seconds in ordered[:SHOWN]]
        rest = whole - sum(seconds for _, seconds in ordered[:SHOWN])
        return ", ".join([*shown, f"other {rest / whole:.0%}"] if rest > 0.005 * whole else shown)

    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `restore`."""
        return {"steps": self.steps, "seconds": self.seconds, "whole_s": self.whole_s, "scores": self.scores}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes up where it was."""
        self.steps, self.seconds, self.whole_s = data["steps"], dict(data["seconds"]), data["whole_s"]
        self.scores = {name: list(score) for name, score in data["scores"].items()}
