"""Reading bytes in one call, and records as plain data that can be compared and printed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from verlwatch.core.lines import Reader
from verlwatch.core.types import Record, Samples

Read = Callable[..., list[Record]]
Plain = Callable[[Record], dict[str, Any]]


@pytest.fixture
def read() -> Read:
    """Reads a whole source; ``piece`` bytes at a time where it is given."""

    def read(data: bytes, *, piece: int = 0, **options: Any) -> list[Record]:
        reader = Reader("run.log", **options)
        size = piece or max(1, len(data))
        records = [record for at in range(0, len(data), size) for record in reader.feed(data[at : at + size], 0.0)]
        return records + reader.finish(0.0)

    return read


@pytest.fixture
def plain() -> Plain:
    """A record as the corpus writes it: what is at its default is left out, nan is a word so that it equals itself."""

    def plain(record: Record) -> dict[str, Any]:
        data: dict[str, Any] = {"kind": record.origin.kind}
        if any(record.origin.writer):
            data["writer"] = list(record.origin.writer)
        if not isinstance(record, Samples):
            attributes = {"attributes": dict(record.attributes)} if record.attributes else {}
            return {**data, "name": record.name, **attributes}
        if record.decimals is not None:
            data["decimals"] = record.decimals
        return {**data, "step": record.step, "values": {key: _word(value) for key, value in record.values.items()}}

    return plain


def _word(value: float) -> float | str:
    return "nan" if math.isnan(value) else value
