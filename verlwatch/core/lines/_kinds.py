"""The kinds of line that are read.  A new one is a file beside this one, a line here, and a corpus file."""

from __future__ import annotations

from verlwatch.core.lines import (
    actor,
    checkpoint,
    config_dump,
    decoded_sample,
    file_logger,
    final_validation,
    hydra_config,
    hydra_overrides,
    plan,
    progress,
    resume,
    step_metrics,
)
from verlwatch.core.lines._line import Kind

KINDS: tuple[Kind, ...] = (
    step_metrics,
    file_logger,
    progress,
    plan,
    resume,
    checkpoint,
    final_validation,
    actor,
    config_dump,
    hydra_overrides,
    hydra_config,
    decoded_sample,
)
"""A message belongs to the first kind that reads it."""
