"""A report as JSON: the model as it is, nan and infinities as null.  ``schema`` says which form it has."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

from verlwatch.report._compare import Comparison
from verlwatch.report._model import Report


def as_json(report: Report | Comparison) -> dict[str, Any]:
    """Dictionaries, lists, texts and numbers alone."""
    plain = _plain(report)
    assert isinstance(plain, dict)  # noqa: S101 - for the type checker: a dataclass is a dictionary
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, array):
        return list(value) if value.typecode == "q" else [v if isfinite(v) else None for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(part) for name, part in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    return value
