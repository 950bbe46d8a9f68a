"""Programs that print numbers of GPUs, as shell scripts on a PATH of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a program of that name, with that shell script, on the PATH, on which there is no other."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def put(name: str, script: str) -> Path:
        file = folder / name
        file.write_text(f"#!/bin/sh\nPATH={os.defpath}\n{script}\n")
        file.chmod(0o755)
        return file

    return put
