"""The shape of a rule's words in Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Rule(NamedTuple):
    """What a rule says: patterns of a title while it holds and a summary, a cause, advice by phase ("": any other)."""

    title: str
    summary: str
    cause: str
    advice: Mapping[str, tuple[str, ...]]
