"""The report's sentences in the language of its reader.

A sentence is an English template with its values; the template is the key of its translation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from verlwatch.core.incidents import duration
from verlwatch.core.statement import Seconds, Statement, state
from verlwatch.core.types import Language
from verlwatch.report._words_zh import LABELS, PHRASES, seconds

LABELS_EN: Mapping[str, str] = {"other": "between phases", "printed_step": "step as printed"}


class Words:
    """Says statements in one language."""

    def __init__(self, language: Language = "en") -> None:
        self.language: Language = language

    def __call__(self, said: Statement | str, **values: object) -> str:
        """The sentence; what has no translation stays English."""
        statement = state(said, **values) if isinstance(said, str) else said
        template = PHRASES.get(statement.template, statement.template) if self.language == "zh" else statement.template
        return template.format(**{name: self._value(value) for name, value in statement.values})

    def joined(self, sentences: Iterable[str]) -> str:
        """Sentences one behind the other: Chinese puts no blanks between them."""
        return ("" if self.language == "zh" else " ").join(sentences)

    def listed(self, parts: Iterable[str]) -> str:
        """Parts of a sentence."""
        return ("，" if self.language == "zh" else ", ").join(parts)  # noqa: RUF001 - as Chinese writes it

    def label(self, name: str) -> str:
        """What people call a metric: verl's own name, in Chinese with the word beside it."""
        if self.language == "zh" and name in LABELS:
            return f"{name} {LABELS[name]}" if name.isascii() and name not in LABELS_EN else LABELS[name]
        return LABELS_EN.get(name, name)

    def span(self, value: float) -> str:
        """Seconds as a person says them."""
        return seconds(value) if self.language == "zh" else duration(value)

    def _value(self, value: object) -> str:
        if isinstance(value, Statement):
            return self(value)
        return self.span(value) if isinstance(value, Seconds) else str(value)
