"""Durations, amounts and lists as a person says them."""

from __future__ import annotations

from collections.abc import Iterable


def duration(seconds: float) -> str:
    """Seconds as a person says them: 0.31 s, 41.2 s, 12 min, 3.4 h."""
    if seconds < 100:  # noqa: PLR2004 - up to here seconds are what people think in
        return f"{seconds:.3g} s"
    if seconds < 600:  # noqa: PLR2004 - the same
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"  # noqa: PLR2004 - two hours


def amount(value: float) -> str:
    """A number of things in two digits, without an exponent: 0.42, 6.9, 118."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"  # noqa: PLR2004 - two digits


def listed(values: Iterable[str], most: int = 8) -> str:
    """Numbers in spans and names one by one: ``0-3, 7, node-2``; ``and 5 more`` where there are many."""
    given = list(dict.fromkeys(values))
    numbers = sorted(int(value) for value in given if value.isascii() and value.isdigit())
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    shown += sorted(value for value in given if not (value.isascii() and value.isdigit()))
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
