r"""Hostile text made harmless for eyes: what would steer a terminal or reorder a line shows as an escape.

Model output, file names and run names may hold ANSI sequences, bidirectional overrides, zero-width characters, line
breaks and bytes that are no UTF-8.  They stay visible here (``\x1b``, ``\u202e``), so that nobody is misled and
nothing is lost.  Each channel still escapes for itself (HTML, JSON, a metric's label).
"""

from __future__ import annotations

import re
import unicodedata

TEXT_LIMIT = 300
"""Characters of a text from a log that a person is shown."""

_HOSTILE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_SUSPECT = re.compile(r"[^\x20-\x7e]")


def printable(text: str) -> str:
    """``text`` on one line, each character that is not plainly visible written as its Python escape."""
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_escaped, text)


def shortened(text: str, limit: int = TEXT_LIMIT) -> str:
    """``printable(text)``, cut with an ellipsis at ``limit`` characters."""
    shown = printable(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def encodable(text: str) -> str:
    """``text`` with what UTF-8 cannot hold (bytes of a file name that are no text) written as an escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if unicodedata.category(character) not in _HOSTILE_CATEGORIES:
        return character
    return character.encode("unicode_escape").decode()
