r"""What Python's ``pprint`` writes: literals over several rows, each row whole tokens, all but the first indented.

    {'data': {'train_batch_size': 16},
     'trainer': {'project_name': 'a text of which two rows '
                                 'hold a part each'}}

Only what ``repr`` writes of plain values is taken, so that looking at hostile text costs a pass over it and no warning.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Final

LONGEST: Final = 1 << 17
"""Characters of the rows of one value, several times what verl's configuration takes: Python's parser takes up to 500
bytes of memory for each."""

_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"
_STRING = rf"'(?:[^'\\]|{_ESCAPE})*+'|\"(?:[^\"\\]|{_ESCAPE})*+\""
_NUMBER = r"-?(?:[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[-+]?[0-9]{1,4})?|inf|nan)"

_LITERAL = re.compile(_STRING)
_LITERAL_OR_WORD = re.compile(rf"{_STRING}|\binf\b|\bnan\b")
_NO_LITERAL = re.compile(r"\b(?:inf|nan)\b")
_BRACKET = re.compile(r"[\[\](){}]")
_WORDS = {"inf": "1e999", "nan": "None"}  # no literals to Python
_ROW = re.compile(rf"(?:[\[\](){{}},:\s]++|{_STRING}|{_NUMBER}\b|\b(?:True|False|None)\b)*+")


def is_row(text: str) -> bool:
    """Whether the text is tokens of plain values and nothing else."""
    return _ROW.fullmatch(text) is not None


def depth(row: str) -> int:
    """How many brackets a row opens, less those that it closes."""
    if not _BRACKET.search(row):
        return 0  # most rows
    return sum(1 if bracket in "[({" else -1 for bracket in _BRACKET.findall(_LITERAL.sub("", row)))


def string(text: str) -> str | None:
    """The text that a literal stands for; None if it is no literal, or not only one."""
    if not _LITERAL.fullmatch(text):
        return None
    return text[1:-1] if "\\" not in text else str(ast.literal_eval(text))


def value(rows: str) -> Any:
    """What the rows stand for, each of them a row of plain values; None where they make no value, or are too long."""
    if len(rows) > LONGEST:
        return None
    if _NO_LITERAL.search(rows):
        rows = _LITERAL_OR_WORD.sub(_literal, rows)
    try:
        return ast.literal_eval(rows)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _literal(found: re.Match[str]) -> str:
    return _WORDS.get(found[0], found[0])
