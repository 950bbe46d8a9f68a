"""What a finished or running log says, for eyes."""

from __future__ import annotations

from verlwatch.report._history import Found, History, Line, read
from verlwatch.report._table import JUDGED_FROM, render

__all__ = ["JUDGED_FROM", "Found", "History", "Line", "read", "render"]
