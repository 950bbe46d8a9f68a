"""What a configuration becomes: one attribute for each of its values, under its dotted key.

Truth values are the words ``true`` and ``false``, lists their JSON text.  What is null, empty or not finite is left
out, and so is what is or may be secret.  The limits hold whatever somebody writes into a log.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from verlwatch.core.lines._line import TEXT_LENGTH, Attributes
from verlwatch.core.lines._secrets import is_secret

KEYS = 600
KEY_LENGTH = 200
DEPTH = 24

_SIGNED_64 = 1 << 63


def attributes(values: Iterable[tuple[str, Any]]) -> Attributes:
    """Those of ``values`` that can be told, at most KEYS; the shallow first, as whoever has less room cuts the end."""
    told = {key: attribute for key, value in values if (attribute := _attribute(key, value)) is not None}
    return {key: told[key] for key in sorted(told, key=_level)[:KEYS]}


def flat(tree: Mapping[Any, Any], above: str = "", depth: int = DEPTH) -> Iterator[tuple[str, Any]]:
    """The values of nested mappings under their dotted keys."""
    for name, value in tree.items():
        key = f"{above}{name}"
        if not isinstance(value, Mapping):
            yield key, value
        elif depth:
            yield from flat(value, f"{key}.", depth - 1)


def _level(key: str) -> int:
    return key.count(".")


def _attribute(key: str, value: Any) -> str | int | float | None:
    if len(key) > KEY_LENGTH or is_secret(key, value):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return value if -_SIGNED_64 <= value < _SIGNED_64 else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        value = _json(value)
    return _text(value) if isinstance(value, str) and _text(key) else None


def _json(values: Any) -> str | None:
    try:
        return orjson.dumps(values, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        return None


def _text(value: str) -> str | None:
    r"""None for what cannot be written again: ``\ud800`` by itself is no character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value[:TEXT_LENGTH]
