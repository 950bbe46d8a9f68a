"""One series on its way to a limit: told from the second step on that says so, and until three say otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verlwatch.core.outlook._forecast import Growth, Lead, Trend
from verlwatch.core.rules import Span

AGREEING = 2
DISAGREEING = 3


class Approach:
    """The trend of one series, and what is told of it."""

    def __init__(self) -> None:
        self.trend = Trend()
        self.lead: Lead | None = None
        """What is told; None where nothing is."""
        self._agreed = self._disagreed = 0
        self._since = 0

    def add(self, step: int, value: float, limit: float | None, remaining: float) -> None:
        """Takes the value of a step; what comes after the ``remaining`` steps is no matter."""
        self.trend.add(step, value)
        found = None if limit is None else self.trend.lead(limit, told=self.lead is not None)
        if found is not None and found.steps.mid > remaining:
            found = None
        self._agreed, self._disagreed = (self._agreed + 1, 0) if found else (0, self._disagreed + 1)
        if self.lead is None and found is not None and self._agreed >= AGREEING:
            self._since = found.growth.since
            self.lead = found
        elif self.lead is not None and found is not None:
            self.lead = found
        elif self._disagreed >= DISAGREEING:
            self.lead = None

    @property
    def since(self) -> int:
        """First step of the growth as it was when it was told first: an incident keeps its onset."""
        return self._since

    def state(self) -> dict[str, Any]:
        """JSON-safe."""
        lead = (
            None if self.lead is None else [list(self.lead.growth.slope), *self.lead.growth[1:], list(self.lead.steps)]
        )
        return {"trend": self.trend.state(), "lead": lead, "n": [self._agreed, self._disagreed, self._since]}

    @classmethod
    def from_state(cls, data: Mapping[str, Any]) -> Approach:
        """The inverse of `state`."""
        self = cls()
        self.trend = Trend.from_state(data["trend"])
        self._agreed, self._disagreed, self._since = data["n"]
        if data["lead"] is not None:
            slope, *rest, steps = data["lead"]
            self.lead = Lead(Growth(Span(*slope), *rest), Span(*steps))
        return self
