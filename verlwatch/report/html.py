"""A report as one self-contained HTML file: it asks the network for nothing, and its charts are read without script.

What stands in a log is text here, never markup; the page's own policy lets nothing run but the one script whose hash
it names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from verlwatch.report import _html_parts as parts
from verlwatch.report._html_charts import series, stack
from verlwatch.report._html_data import data
from verlwatch.report._html_memory import memory
from verlwatch.report._html_scatter import against_tokens
from verlwatch.report._html_tags import Html, joined, section, tag
from verlwatch.report._model import Report
from verlwatch.report._sections import sections
from verlwatch.report._words import Words

LAST = 50
"""Steps of the table."""
_HERE = Path(__file__).parent
_SHEETS = (_HERE.parent / "shell/http/static/style.css", _HERE / "static/report.css")
"""The status page's look, and what a report has beside it."""
_SCRIPT = _HERE / "static/report.js"
_TEXT = (
    "From the first steps to the last", "Layout", "Engine", "Communication", "Data supply", "Utilisation", "Cost",
    "Last steps",
)  # fmt: skip
"""Sections of words and tables alone."""


def render(report: Report, last: int = LAST) -> str:
    """The file's content."""
    words = Words(report.language)
    script = _SCRIPT.read_text(encoding="utf-8")
    sheet = "\n".join(path.read_text(encoding="utf-8") for path in _SHEETS)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_hash(script)}'; base-uri 'none'"
    head = joined(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=Html(f"{policy}; form-action 'none'")),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{report.run.name} – verlwatch"),
        tag("style", Html(sheet)),
    )
    body = joined(
        tag("main", *_body(report, words, last)),
        tag("script", data(report, words), type="application/json", id="data"),
        tag("script", Html(script)),
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang=report.language)}\n"


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _body(report: Report, words: Words, last: int) -> Iterator[Html]:
    """What somebody needs first comes first; the evidence stands below."""
    said = {found.title: found.blocks for found in sections(report, words, last)}

    def text(title: str) -> Html:
        return parts.blocks(said.get(words(title), ()), words(title))

    yield parts.header(report, words)
    if len(report.steps):
        yield section(words("Steps"), stack(report, words))
        yield parts.changes(report, said.get(words("Changes"), ()), words)
    yield parts.findings(report, words)
    yield parts.advice(report, said.get(words("What to try"), ()), words)
    if len(report.steps):
        lead = words("Each phase over the steps; the grey line is what its baseline expects of each step's work.")
        yield section(
            words("Where the time goes"), _many(series(report, words)), text("Where the time goes"), lead=lead
        )
        lead = words("What lies on the same line only had more to do; what lies above it got slower.")
        yield section(words("Seconds against tokens"), _many(against_tokens(report, words)), lead=lead)
    yield section(words("Memory"), *memory(report, words), text("Memory"))
    for title in _TEXT:
        yield section(words(title), text(title))
    yield parts.missing(report, words)
    yield tag("footer", tag("p", words("Made by verlwatch {version}.", version=report.verlwatch), class_="quiet"))


def _many(figures: Iterable[Html]) -> Html:
    found = list(figures)
    return tag("div", *found, class_="many") if found else Html("")
