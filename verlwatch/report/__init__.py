"""What a finished or running log says, for eyes: read it, build the report, and draw it in one of several forms."""

from __future__ import annotations

from verlwatch.report._build import JUDGED_FROM, build
from verlwatch.report._compare import Comparison, compare
from verlwatch.report._csv import write as write_csv
from verlwatch.report._json import as_json
from verlwatch.report._markdown import markdown
from verlwatch.report._model import SCHEMA, Report
from verlwatch.report._reading import Reading, read
from verlwatch.report._terminal import terminal
from verlwatch.report._versus import versus, versus_markdown
from verlwatch.report._words import Words

__all__ = [
    "JUDGED_FROM",
    "SCHEMA",
    "Comparison",
    "Reading",
    "Report",
    "Words",
    "as_json",
    "build",
    "compare",
    "markdown",
    "read",
    "terminal",
    "versus",
    "versus_markdown",
    "write_csv",
]
