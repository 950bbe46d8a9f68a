"""The kinds of line that are read.  A new one is a file beside this one, a line here, and a corpus file."""

from __future__ import annotations

from verlwatch.core.lines import actor, checkpoint, file_logger, final_validation, plan, progress, resume, step_metrics
from verlwatch.core.lines._line import Kind

KINDS: tuple[Kind, ...] = (step_metrics, file_logger, progress, plan, resume, checkpoint, final_validation, actor)
"""A message belongs to the first kind that reads it."""
