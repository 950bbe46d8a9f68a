"""A report as one self-contained HTML file."""

from __future__ import annotations

from html import escape

from verlwatch.report._model import Report
from verlwatch.report._terminal import terminal
from verlwatch.report._words import Words

LAST = 50
"""Steps of the table."""


def render(model: Report) -> str:
    """The file's content; it asks the network for nothing."""
    text = terminal(model, Words(model.language), LAST)
    title = escape(model.run.name)
    head = f'<html lang="{model.language}"><meta charset="utf-8"><title>{title}</title>'
    return f"<!doctype html>\n{head}<pre>{escape(text)}</pre></html>\n"
