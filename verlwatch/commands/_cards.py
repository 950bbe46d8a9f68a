"""Cards of a run as a table for a terminal: at most 100 columns, and nothing in it needs a colour."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from verlwatch.shell.printable import shortened
from verlwatch.status import GpuStatus, RunStatus

WIDTH = 100
_BARS = "▁▂▃▄▅▆▇█"
_MARGIN = "  "
_HEADINGS = ("host", "gpu", "rank", "actor", "used / total GB", "util", "offset")
_MOST = (20, 10, 7, 16, 15, 6, 7)
"""Columns of a text; longer ones are cut."""
_RIGHT = frozenset({4, 5, 6})
_LEAST_STRIP, _MOST_STRIP = 7, 24
_GROUPS_APART = 1


def table(cards: Sequence[GpuStatus]) -> Iterator[str]:
    """Heading and a line for each card, by groups where there are several."""
    groups = list(dict.fromkeys(card.group for card in cards))
    rows = [_row(card) for card in cards]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    strip = max(_LEAST_STRIP, min(_MOST_STRIP, WIDTH - len(_MARGIN) - sum(widths) - 2 * len(widths)))
    yield _line(_HEADINGS, widths, "lately")
    for group in groups:
        if len(groups) > _GROUPS_APART:
            yield f"{_MARGIN}group {shortened(group, 40)}:" if group is not None else f"{_MARGIN}alone:"
        for card, row in zip(cards, rows, strict=True):
            if card.group == group:
                yield _line(row, widths, bars(card, strip))


def bars(card: GpuStatus, width: int) -> str:
    """A bar for each of the last values, from nothing to all of the card's memory; a blank where one is not known."""
    known = [value for value in card.recent if value is not None]
    most = card.total_gb or max(known, default=0.0) or 1.0
    steps = len(_BARS) - 1
    return "".join(
        " " if value is None else _BARS[min(steps, max(0, round(steps * value / most)))]
        for value in card.recent[-width:]
    )


def wrapped(text: str) -> list[str]:
    """A sentence in lines of their own below what it is about."""
    return textwrap.wrap(text, WIDTH, initial_indent=_MARGIN, subsequent_indent=_MARGIN, break_on_hyphens=False)


def hints(runs: Sequence[RunStatus]) -> Iterator[str]:
    """Why ranks are not compared and what to switch on: once for all runs of which the same is so."""
    by_hint: dict[str, list[str]] = {}
    for run in runs:
        if run.ranks_hint and run.state != "finished":
            by_hint.setdefault(run.ranks_hint, []).append(run.name)
    for hint, named in by_hint.items():
        yield f"{names(named)}:"
        yield from wrapped(hint)


def names(texts: Iterable[str], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    found = list(texts)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(shortened(text, 40) for text in found[:most]) + more


def _row(card: GpuStatus) -> tuple[str, ...]:
    index = card.gpu if card.gpu is not None else f"pid {card.pid}"
    total = f"{card.total_gb:.1f}" if card.total_gb is not None else "?"
    used = f"{card.used_gb:.1f}" if card.used_gb is not None else "?"
    texts = (
        card.host or "-",
        index,
        card.rank or "-",
        card.actor or "-",
        "missing" if card.missing else f"{used} / {total}",
        "-" if card.missing or card.utilization is None else f"{card.utilization:.0f} %",
        "-" if card.missing or card.offset_gb is None else f"{round(card.offset_gb, 1) + 0.0:+.1f}",
    )
    return tuple(shortened(text, most) for text, most in zip(texts, _MOST, strict=True))


def _line(cells: Sequence[str], widths: Sequence[int], last: str) -> str:
    shown = (
        cell.rjust(width) if place in _RIGHT else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"{_MARGIN}{'  '.join(shown)}  {last}".rstrip()
