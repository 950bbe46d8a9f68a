"""The JSONL file logger: ``{"step": 12, "data": {"timing_s/gen": 41.2, ...}}``, the best source there is.

Source: verl ``utils/tracking.py:FileLogger`` (since 0.6.0).  Up to 0.7.0 written by the standard library's json, with
``NaN`` and ``Infinity`` as literals; since 0.7.1 by orjson, with null for both.  So a loss or a gradient norm that is
null is nan, for verl logs them as numbers only; any other null is unknown and left out.  A truth value counts 1 or 0,
as in the console line, but is no step; a number that no float holds is infinite.  Of a key that occurs twice the last
value counts, as usual in JSON.  A cut line is no JSON and says nothing.
"""

from __future__ import annotations

import json
from math import nan
from typing import Any, Final

import orjson

from verlwatch.core.lines._line import Line, Numbers

NAME: Final = "file_logger"
NEEDLES: Final = (b'{"step":',)

_STEPS = 10**18
_NUMBERS = ("grad_norm", "loss")


def parse(line: Line) -> Numbers | None:
    """Step and values; what is neither number nor truth value is left out."""
    if line.writer.pid or not line.text.startswith('{"step":'):
        return None
    match _decoded(line.text):
        case {"step": int() | float() as step, "data": dict() as data} if _is_step(step):
            values = {
                key: nan if value is None else float(value)
                for key, value in data.items()
                if isinstance(value, (int, float)) or (value is None and key.endswith(_NUMBERS))
            }
            return Numbers(int(step), values) if _is_text("".join(values)) else None
    return None


def _is_step(step: float) -> bool:
    """Whether it is a whole number in range; Python takes True for 1."""
    return not isinstance(step, bool) and 0 <= step < _STEPS and step == step // 1


def _is_text(keys: str) -> bool:
    r"""Whether the keys can be written again: ``\\ud800`` by itself, which JSON allows, is no character."""
    try:
        keys.encode()
    except UnicodeEncodeError:
        return False
    return True


def _decoded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass  # NaN, Infinity, a number beyond 1.8e308, or no JSON
    try:
        return json.loads(text, parse_int=float)  # an int has no limit, and its digits have one
    except (ValueError, RecursionError):
        return None
