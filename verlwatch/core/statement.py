"""A sentence that is not in any language yet: an English template and its values.

What the core finds is said in the reader's language by whoever shows it; the template itself is the key of its
translation.  ``str()`` gives the English sentence.
"""

from __future__ import annotations

from typing import NamedTuple

from verlwatch.core.words import duration


class Seconds(float):
    """A time, written as a person says it."""

    __slots__ = ()

    def __str__(self) -> str:
        return duration(float(self))


class Statement(NamedTuple):
    """``template`` in the form of `str.format`, with its ``values`` by name: texts, numbers, times or statements."""

    template: str
    values: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return self.template.format(**{name: str(value) for name, value in self.values})


def state(template: str, **values: object) -> Statement:
    """A statement; floats among the values get three significant digits."""
    return Statement(
        template, tuple((name, f"{value:.3g}" if type(value) is float else value) for name, value in values.items())
    )
