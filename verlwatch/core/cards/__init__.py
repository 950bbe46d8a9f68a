"""The GPUs of a run beside each other, at the same instants or at the same lines of its logs (docs/GPU.md)."""

from __future__ import annotations

from verlwatch.core.cards._card import Card, Key
from verlwatch.core.cards._cards import Cards
from verlwatch.core.cards._history import by_instant, row_of

__all__ = ["Card", "Cards", "Key", "by_instant", "row_of"]
