"""Every excerpt of tests/corpus is read as its notes say."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from verlwatch.core.lines import KINDS
from verlwatch.core.types import Record

CORPUS = Path(__file__).parents[2] / "corpus"
SILENT = {"decoded_sample"}  # kinds that tell of nothing: they keep what others read in their lines from being believed
NAMES = sorted(path.stem for path in CORPUS.glob("*.log"))


def expected(name: str) -> list[dict[str, Any]]:
    notes = yaml.safe_load((CORPUS / f"{name}.yaml").read_text())
    for record in notes["records"]:
        for key, value in record.get("values", {}).items():
            assert isinstance(value, float), f"{name}: {key} is written as {value!r}, not as a float"
            record["values"][key] = "nan" if math.isnan(value) else value
    records: list[dict[str, Any]] = notes["records"]
    return records


@pytest.mark.parametrize("piece", [0, 1, 7, 64])
@pytest.mark.parametrize("name", NAMES)
def test_an_excerpt_reads_as_its_notes_say(
    name: str, piece: int, read: Callable[..., list[Record]], plain: Callable[[Record], dict[str, Any]]
) -> None:
    assert [plain(record) for record in read((CORPUS / f"{name}.log").read_bytes(), piece=piece)] == expected(name)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.NAME not in SILENT], ids=lambda kind: kind.NAME)
def test_every_kind_has_an_excerpt(kind: Any) -> None:
    assert any(record["kind"] == kind.NAME for name in NAMES for record in expected(name))


def test_every_excerpt_has_notes_and_every_note_an_excerpt() -> None:
    assert sorted(path.stem for path in CORPUS.glob("*.yaml")) == NAMES
    assert len(NAMES) >= len(KINDS)
