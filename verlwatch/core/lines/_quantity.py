"""Quantities as lines print them: a number, and what it is counted in.

A unit is changed by moving the decimal point, so that a value keeps the digits of the line: 2487.3ms is 2.4873 s.
"""

from __future__ import annotations

from typing import Final

NUMBER: Final = r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][-+]?[0-9]{1,2})?"
"""A pattern of a number without sign; without groups."""

SECONDS: Final = r"(?:seconds|secs|sec|ms|us|µs|ns|s)"
"""A pattern of the units of time that `seconds` takes; without groups."""

SIZE: Final = r"([0-9]{1,18}(?:\.[0-9]{1,6})?) (bytes|[KMGT]iB)"
"""A pattern of a size in bytes as torch writes it; two groups, as `gib` takes them."""

_GIB = {"bytes": 2**-30, "KiB": 2**-20, "MiB": 2**-10, "GiB": 1, "TiB": 2**10}
_EXPONENTS = {"ms": -3, "us": -6, "µs": -6, "ns": -9}


def number(text: str) -> int | float:
    """An int where no digit stands behind a point."""
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def seconds(text: str, unit: str) -> float:
    """``text`` of a unit of time in seconds."""
    digits, _, exponent = text.lower().partition("e")
    return float(f"{digits}e{int(exponent or 0) + _EXPONENTS.get(unit, 0)}")


def gib(text: str, unit: str) -> float:
    """``text`` of a unit of memory in GiB, by powers of two."""
    return float(text) * _GIB[unit]
