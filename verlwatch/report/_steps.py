"""The steps of a report: one column per series, one row per step.

Part of `report._model`, which has everything that a report says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Role = Literal["step", "phase", "apart", "part", "work", "measure"]
"""Of a column: the whole step, one of its phases, validation or checkpoint, a part of a phase, work, anything else."""


@dataclass(frozen=True, slots=True)
class Column:
    """One series over the steps.  ``values`` has nan where a step does not print it.

    ``expected`` is what the metric's baseline expected of each step's work (nan before there is one), empty for what
    is not judged.  ``label`` is for people, ``name`` the metric's own name or verl's key.
    """

    name: str
    label: str
    unit: str
    role: Role
    values: Sequence[float]
    expected: Sequence[float] = ()


class Remark(NamedTuple):
    """What is to be said of one step: ``row`` is its place in the columns."""

    row: int
    text: str


@dataclass(frozen=True, slots=True)
class Steps:
    """Every step with timing, in order: the i-th of each sequence belongs to one step.

    ``columns`` by name: the step, its phases in the order of a step, then parts, work, measures.  The step is without
    validation and checkpoint; as it was printed it stands under ``printed_step``.
    """

    attempt: Sequence[int]
    step: Sequence[int]
    columns: Mapping[str, Column]
    remarks: tuple[Remark, ...] = ()

    def __len__(self) -> int:
        return len(self.step)
