"""Shared by all tests: recorded logs."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
SOAK = bool(os.environ.get("VERLWATCH_SOAK"))
"""`make soak`: the long forms of the crash, history, fuzz and silence tests."""


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every recorded log of tests/data, unpacked."""
    folder = tmp_path_factory.mktemp("recorded")
    for packed in DATA.glob("*.gz"):
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return folder
