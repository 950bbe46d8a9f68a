"""A report as Markdown: the same sections, for an issue or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verlwatch.report._model import Report
from verlwatch.report._sections import Block, Section, Table, sections
from verlwatch.report._words import Words
from verlwatch.shell.printable import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!@])")


def markdown(report: Report, words: Words, last: int) -> str:
    """The whole report."""
    return "\n".join(line for section in sections(report, words, last) for line in lines(section)).strip("\n") + "\n"


def lines(section: Section) -> Iterator[str]:
    """A section, a blank line before it."""
    if section.title:
        yield from ("", f"## {escaped(section.title)}")
    for block in section.blocks:
        yield ""
        yield from _block(block)


def escaped(text: str) -> str:
    """Text that means itself, on one line."""
    return _SPECIAL.sub(r"\\\1", printable(text))


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield _row(block.head)
        yield "|" + "|".join("---:" if side == "r" else "---" for side in block.align) + "|"
        yield from map(_row, block.rows)
        if block.note:
            yield from ("", escaped(block.note))
    elif isinstance(block, str):
        yield escaped(block)
    else:
        first, *rest = block
        yield f"- {escaped(first)}"
        yield from (f"  - {escaped(text)}" for text in rest)


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(map(escaped, cells)) + " |"
