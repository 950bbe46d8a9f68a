"""Plain text in columns: Chinese characters take two of them, and lines break between any two of those."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import east_asian_width

_WORD = re.compile(r"\s+|[ -~]+?(?=\s|$|[^ -~])|.", re.DOTALL)
_CLINGS = frozenset("，。；：、！？）》」%…")  # noqa: RUF001 - as Chinese writes it
"""What no line begins with."""


def width(text: str) -> int:
    """Columns of a terminal."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def left(text: str, columns: int) -> str:
    """Padded behind."""
    return text + " " * (columns - width(text))


def right(text: str, columns: int) -> str:
    """Padded before."""
    return " " * (columns - width(text)) + text


def wrapped(text: str, columns: int, first: str = "", rest: str = "") -> Iterator[str]:
    """Lines of at most so many columns; a word that is longer is cut."""
    columns -= 2 if width(text) > len(text) else 0  # room for what clings to the end
    line, empty = first, True
    for word in _words(text, columns - max(width(first), width(rest))):
        if word.isspace():
            line += "" if empty else " "
            continue
        if width(line) + width(word) > columns and not empty and word not in _CLINGS:
            yield line.rstrip()
            line = rest
        line += word
        empty = False
    if line.strip():
        yield line.rstrip()


def _words(text: str, longest: int) -> Iterator[str]:
    for found in _WORD.finditer(text):
        word = found[0]
        while len(word) > longest:
            yield word[:longest]
            word = word[longest:]
        yield word
