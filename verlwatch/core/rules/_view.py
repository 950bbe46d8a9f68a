"""What a rule sees: one run at one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from verlwatch.core.rules._ahead import NOTHING_AHEAD, Ahead
from verlwatch.core.types import ChangePoint


class NotFinite(NamedTuple):
    """Losses and gradients of a step that are nan or infinite.

    ``values`` by key, nan or inf as the step prints them; ``ranks`` say so themselves ("" where a line names none).
    They have been so ``since`` that step, for ``steps`` steps in a row.
    """

    values: Mapping[str, str]
    ranks: Mapping[str, str]
    since: int
    steps: int


@dataclass(frozen=True, slots=True)
class View:
    """A run as the rules see it at ``step``.

    ``changes`` are the open changes by metric; ``now`` and ``expected`` the metric's value at this step and what its
    old baseline expects of this step's work (seconds; tokens/s/GPU for throughput).  A change in a phase that adds less
    than ``min_step_share`` of a step is not worth a person's time; what is ``told`` already stays told until it ends.
    ``early`` are changes seen by a plain comparison where there is no baseline yet, ``limits`` the most seconds that
    a metric may take.  ``metrics`` are the measures judged beside the phases, in the units of `core.metrics`, and
    ``release`` says what they cover.  ``per_token`` are milliseconds per token at this step.  Of a trainer that
    ``is_async`` gen is the time it waits for samples.  ``values`` is all that the step prints, under the log's own
    keys, ``not_finite`` what of it should be a number and is none.  ``ahead`` is what
    the run is heading for.
    """

    run: str
    step: int
    changes: Mapping[str, ChangePoint]
    now: Mapping[str, float]
    expected: Mapping[str, float]
    min_step_share: float = 0.01
    told: frozenset[str] = frozenset()
    early: Mapping[str, ChangePoint] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    is_async: bool = False
    metrics: frozenset[str] = frozenset()
    release: str = ""
    per_token: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    not_finite: NotFinite | None = None
    ahead: Ahead = NOTHING_AHEAD
