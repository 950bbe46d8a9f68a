"""The shape of a rule's words in Chinese, and units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

Pairs = tuple[tuple[str, str], ...]
"""Pattern of the whole English text -> the Chinese one, see `_zh_worded`."""

_UNITS = {"s": "秒", "min": "分钟", "h": "小时", "d": "天", "steps": "步", "step": "步", "to": "至"}
_UNIT = re.compile(r"(?<=[0-9] )(?:steps?|min|to|s|h|d)(?![A-Za-z])")


class Rule(NamedTuple):
    """What a rule says: patterns of a title while it holds and a summary, a cause, advice by phase ("": any other)."""

    title: str
    summary: str
    cause: str
    advice: Mapping[str, tuple[str, ...]]


class Words(NamedTuple):
    """What ``rules`` say that word themselves: titles and summaries, values and labels of facts, evidence, advice.

    The values of ``quoted`` labels are names and texts of others, and stay.
    """

    rules: tuple[str, ...] = ()
    titles: Pairs = ()
    values: Pairs = ()
    evidence: Pairs = ()
    advice: Pairs = ()
    labels: Mapping[str, str] = {}
    quoted: frozenset[str] = frozenset()


def with_units(text: str) -> str:
    """``394 s`` as ``394 秒``; what is no number with a unit stays."""
    return _UNIT.sub(lambda found: _UNITS[found[0]], text)


def exactly(sentences: Mapping[str, str]) -> Pairs:
    """Sentences that are always the same."""
    return tuple((re.escape(english), _literal(chinese)) for english, chinese in sentences.items())


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
