"""``.hydra/config.yaml`` beside a log: the configuration as Hydra composed it, before references were resolved.

    actor_rollout_ref:
      rollout:
        tensor_model_parallel_size: 2
    trainer:
      logger:
      - console

Source: Hydra ``_internal/hydra.py`` and OmegaConf ``to_yaml``: PyYAML's block style, two blanks a level, a key or item
a row; a long text goes on in deeper rows.  That subset alone is read.  A value that refers to others (``${...}``), and
a list of anything but plain values, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from verlwatch.core.lines import _config
from verlwatch.core.lines._line import Fact, Line, Said, Take

NAME: Final = "hydra_config"
NEEDLES: Final = (b"actor_rollout_ref", b"data:")

_SECTIONS = frozenset({"actor_rollout_ref", "algorithm", "critic", "data", "reward_model", "trainer"})
_SECTIONS_MIN = 2
"""A text with one such word before a colon is no configuration yet."""

_ROWS_MIN = 2 * _SECTIONS_MIN  # each section has a value

_HEAD = re.compile(r"(?:actor_rollout_ref|data): *")  # one of them comes first
_TOP = re.compile(r"[a-z_]\w{0,60}:(?: .*)?|- .*", re.DOTALL)
_ENTRY = re.compile(r"(?:([\w./@-]{1,100})|'([\w./@-]{1,100})'):(?: +(.*))?", re.DOTALL)
_SECTION = re.compile(r"[\w./@-]{1,100}:|'[\w./@-]{1,100}':")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_FLOAT = re.compile(r"-?[0-9]{1,40}\.[0-9]{0,40}(?:e[-+]?[0-9]{1,3})?")
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None, "{}": None, "[]": []}
_NOT_PLAIN = ("&", "*", "!", "|", ">", "%", "@", "`", "{", "[", "'", '"', "- ", ".")
_UNREAD: Final = object()


def parse(line: Line) -> Config | None:
    """An event ``config`` with the dotted key of each value as an attribute."""
    if line.writer.pid or line.cut:
        return None
    return Config(line.text) if _HEAD.fullmatch(line.text) else None


class Config:
    """The rows that may belong to such a file, until one cannot."""

    LINES = 3000
    BYTES = 1 << 18

    def __init__(self, first: str) -> None:
        self._rows = [first]

    def take(self, line: Line, _said: Said | None) -> Take:
        """A section, or what is indented below it."""
        if len(self._rows) == 1 and not line.text.startswith((" ", "- ")):
            return Take.ENDED  # words like data: stand alone in many texts
        if line.cut or not (not line.text or line.text.startswith(" ") or _TOP.fullmatch(line.text)):
            return Take.ENDED
        self._rows.append(line.text)
        return Take.TAKEN

    def close(self) -> Fact | None:
        """None for what is no configuration of verl."""
        if len(self._rows) < _ROWS_MIN:
            return None
        rows = _joined(self._rows)
        sections = {row[:-1] for indent, row in rows if indent == 0}
        if len(sections & _SECTIONS) < _SECTIONS_MIN:
            return None
        found = _config.attributes((key, value) for key, value in _values(rows) if "." in key)
        return Fact("config", found, excerpt=f"{self._rows[0]} …") if found else None


def _joined(rows: Iterable[str]) -> list[tuple[int, str]]:
    """Indent and text of each entry and item; deeper rows behind a value belong to it."""
    joined: list[tuple[int, list[str]]] = []
    deepest = -1
    for row in rows:
        text = row.strip()
        indent = len(row) - len(row.lstrip())
        if joined and (not text or 0 <= deepest < indent):
            joined[-1][1].append(text)
        else:
            joined.append((indent, [text]))
            deepest = -1 if _SECTION.fullmatch(text) else indent
    return [(indent, " ".join(filter(None, texts))) for indent, texts in joined]


def _values(rows: Iterable[tuple[int, str]]) -> Iterator[tuple[str, Any]]:
    """Plain values and lists of them under their dotted keys."""
    above: list[tuple[int, str]] = []
    lists: dict[str, list[Any]] = {}
    for indent, text in rows:
        item = text.startswith("- ")
        while above and above[-1][0] >= indent + item:
            above.pop()
        below, around = above[-1] if above else (-1, "")
        if item and below == indent:
            lists.setdefault(around, []).append(_scalar(text[2:]))
        elif entry := _ENTRY.fullmatch(text):
            key = f"{around}.{entry[1] or entry[2]}" if around else entry[1] or entry[2]
            if not entry[3]:
                above.append((indent, key))
            elif (value := _scalar(entry[3])) is not _UNREAD:
                yield key, value
    yield from ((key, values) for key, values in lists.items() if _UNREAD not in values)


def _scalar(text: str) -> Any:
    """A value as YAML writes it; _UNREAD for what is none, or more than one."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if "${" in text:
        return _UNREAD
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return _UNREAD
    plain = not text.startswith(_NOT_PLAIN) and ": " not in text and not text.endswith(":")
    return text if plain else _UNREAD
