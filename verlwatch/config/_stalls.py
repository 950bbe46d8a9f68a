"""The section ``stalls``: how long a run may take for what it has no past of its own in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from verlwatch import fields
from verlwatch.core.settings import Patience
from verlwatch.fields import Duration, Model, within

_Limit = Annotated[Duration, within(fields.parse_duration, "10s", "7d")]


class Stalls(Model):
    """Limits before a run has steps of its own to be measured by, and whether its end is told."""

    start: _Limit = Field(
        default="30m", validate_default=True, description="Longest start-up without any sign of progress (10s to 7d)."
    )
    loading: _Limit = Field(
        default="1h", validate_default=True, description="Longest loading of a model or a checkpoint (10s to 7d)."
    )
    first_step: _Limit = Field(default="1h", validate_default=True, description="Longest first step (10s to 7d).")
    first_validation: _Limit = Field(
        default="1h", validate_default=True, description="Longest first validation or checkpoint (10s to 7d)."
    )
    finished: Literal["told", "off"] = Field(
        default="told", description="Whether a run that is done is `told`, with what it took, or `off`."
    )


def patience(stalls: Stalls) -> Patience:
    """What the core needs of the section."""
    return Patience(stalls.start, stalls.loading, stalls.first_step, stalls.first_validation)
