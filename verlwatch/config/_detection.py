"""The section ``detection``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from verlwatch import fields
from verlwatch.core.metrics import DEFAULT_MEASURES, EFFICIENCY, HEALTH
from verlwatch.core.phases import JUDGED, THROUGHPUT
from verlwatch.fields import Model, Rate, Share, within

LIMITED = tuple(name for name in JUDGED if name != THROUGHPUT)
_LIMIT = re.compile(r"\s*(\w+)\s*>\s*(.+)")


def parse_limit(value: object) -> tuple[str, float]:
    """Phase (or ``step``) and seconds of ``gen > 300s``."""
    limit = _LIMIT.fullmatch(value) if isinstance(value, str) else None
    if limit is None:
        raise ValueError("must be a phase, > and a duration; write for example gen > 300s")
    if limit[1] not in LIMITED:
        raise ValueError(f"{limit[1]!r} is no phase; give one of {', '.join(LIMITED)}")
    seconds = fields.parse_duration(limit[2])
    if seconds <= 0:
        raise ValueError("must be over 0s")
    return limit[1], seconds


Limit = Annotated[
    tuple[str, float],
    BeforeValidator(parse_limit),
    WithJsonSchema({"type": "string", "examples": ["gen > 300s"]}),
]


def parse_metric(name: str) -> str:
    """A metric that may be judged beside the phases."""
    if name not in EFFICIENCY:
        raise ValueError(f"{name!r} is no metric that is judged; give one of {', '.join(EFFICIENCY)}")
    return name


Metric = Annotated[str, AfterValidator(parse_metric), WithJsonSchema({"type": "string", "enum": list(EFFICIENCY)})]


def parse_health(name: str) -> str:
    """A number of the training itself that may be judged."""
    if name not in HEALTH:
        raise ValueError(f"{name!r} is no number of the training that is judged; give one of {', '.join(HEALTH)}")
    return name


Health = Annotated[str, AfterValidator(parse_health), WithJsonSchema({"type": "string", "enum": list(HEALTH)})]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


class Detection(Model):
    """How readily a change is told."""

    false_alarms: Annotated[Rate, within(fields.parse_rate, "1 per year per run", "1 per hour per run")] = Field(
        default="1 per month per run",
        validate_default=True,
        description="False alarms you accept, all series of a run together: N per hour, day, week, month or year.",
    )
    min_step_share: Share = Field(
        default="1%",
        validate_default=True,
        description="Smallest part of the step time that a change must add to be told.",
    )
    accept_after_steps: int = Field(
        default=200,
        ge=10,
        le=100_000,
        description="Steps at a new level after which it becomes the baseline (10 to 100000).",
    )
    limits: tuple[Limit, ...] = Field(
        default=(),
        max_length=len(LIMITED),
        description="The most that a phase, or `step`, may take, whatever its past says: for example `gen > 300s`.",
    )
    metrics: tuple[Metric, ...] = Field(
        default=DEFAULT_MEASURES,
        max_length=len(EFFICIENCY),
        description=f"What is judged beside the phases and the step, of {_listed(EFFICIENCY)}.",
    )
    health: tuple[Health, ...] = Field(
        default=(),
        max_length=len(HEALTH),
        description=f"What is judged of the training itself, of {_listed(HEALTH)}; "
        "nan and inf in losses and gradients are always told.",
    )
