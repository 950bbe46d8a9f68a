"""A report for a terminal: plain text, readable without colour, at most WIDTH columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verlwatch.report._model import Report
from verlwatch.report._sections import Block, Section, Table, sections
from verlwatch.report._text import left, right, width, wrapped
from verlwatch.report._words import Words
from verlwatch.shell.printable import printable

WIDTH = 100


def terminal(report: Report, words: Words, last: int) -> str:
    """The whole report."""
    return "\n".join(line for section in sections(report, words, last) for line in lines(section)).strip("\n") + "\n"


def lines(section: Section) -> Iterator[str]:
    """A section, a blank line before it."""
    yield ""
    if section.title:
        yield f"== {section.title}"
    for i, block in enumerate(section.blocks):
        if i and not section.title:
            yield ""
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from table(block)
    elif isinstance(block, str):
        yield from wrapped(printable(block), WIDTH)
    else:
        first, *rest = block
        yield from wrapped(printable(first), WIDTH, "* ", "  ")
        for text in rest:
            yield from wrapped(printable(text), WIDTH, "  ", "  ")


def table(found: Table) -> Iterator[str]:
    """Columns as wide as they need to be; those that may go do where there is no room.

    A last column of text that has no room in its row follows in lines of its own.
    """
    rows = [tuple(map(printable, row)) for row in found.rows]
    keep = list(range(len(found.head)))
    text_last = found.align.endswith("l")
    for dropped in found.droppable:
        if _needed(found, rows, keep, text_last=text_last) <= WIDTH:
            break
        keep.remove(dropped)
    fixed = keep[:-1] if text_last else keep
    widths = {i: max(width(cell) for cell in (found.head[i], *(row[i] for row in rows))) for i in fixed}
    pads = {i: right if found.align[i] == "r" else left for i in fixed}
    for row in (found.head, *rows):
        line = "  ".join(pads[i](row[i], widths[i]) for i in fixed)
        if not text_last or not row[keep[-1]]:
            yield line.rstrip()
        elif width(line) + 2 + width(row[keep[-1]]) <= WIDTH:
            yield f"{line}  {row[keep[-1]]}".rstrip()
        else:
            yield line.rstrip()
            yield from (right(part, WIDTH) for part in wrapped(row[keep[-1]], WIDTH - 8))
    if found.note:
        yield from wrapped(found.note, WIDTH)


def _needed(found: Table, rows: Sequence[tuple[str, ...]], keep: Sequence[int], *, text_last: bool) -> int:
    """Columns that the table needs, a last column of text counted by its heading."""
    total = 0
    for i in keep:
        cells = (found.head[i],) if text_last and i == keep[-1] else (found.head[i], *(row[i] for row in rows))
        total += max(map(width, cells)) + 2
    return total - 2
