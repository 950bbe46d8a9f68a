"""What a finished or running log says, for eyes."""

from __future__ import annotations

from verlwatch.report._history import Found, History, Line, read
from verlwatch.report._table import render

__all__ = ["Found", "History", "Line", "read", "render"]
