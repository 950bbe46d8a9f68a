"""The state of a part of a watch: its fields, as they are."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def fields_of(part: DataclassInstance) -> dict[str, Any]:
    """The fields that ``__init__`` takes, by name; lists are copied, floats keep every digit.

    ``type(part)(**fields_of(part))`` therefore goes on exactly as ``part`` would.
    """
    values = {f.name: getattr(part, f.name) for f in fields(part) if f.init}
    return {name: list(value) if isinstance(value, list) else value for name, value in values.items()}
