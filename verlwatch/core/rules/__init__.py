"""What verlwatch diagnoses: `ls` of this folder is the list.

A rule is a module with ``NAME`` (the same in config, metrics, documents and messages), ``NEEDS`` (what must be in the
log) and ``diagnose(view)``, a pure function that says what holds at this step.  A diagnosis lasts as long as the rule
repeats it.
"""

from __future__ import annotations

from typing import Protocol

from verlwatch.core.rules import (
    all_slow,
    early_slow,
    limit,
    metric_shift,
    phase_drift,
    phase_noise,
    phase_shift,
    phase_spike,
    step_slow,
)
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

__all__ = ["RULES", "Rule", "View"]


class Rule(Protocol):
    """The shape of a module in this folder."""

    NAME: str
    NEEDS: str

    def diagnose(self, view: View, /) -> tuple[Diagnosis, ...]:
        """What holds now; empty when nothing is wrong."""
        ...


RULES: tuple[Rule, ...] = (
    limit,
    early_slow,
    metric_shift,
    phase_noise,
    phase_spike,
    phase_drift,
    phase_shift,
    step_slow,
    all_slow,
)
"""Of what two rules say about the same phase the later one counts."""
