"""A Slurm of one's own: `scontrol` in the $PATH, and the jobs that it knows."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

SCONTROL = Path(__file__).with_name("scontrol")


class FakeSlurm:
    """Jobs of `tests/fakes/scontrol`, which says what they hold."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        folder.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        script = programs / "scontrol"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{SCONTROL}" "$@"\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        monkeypatch.setenv("FAKE_SLURM", str(folder))

    def job(self, job: str, *records: Mapping[str, object], **values: object) -> None:
        """What `show job` prints for a job: a record, or several, with these values."""
        text = "\n".join(map(json.dumps, records or (values,)))
        (self.folder / job).write_text(text)

    def forget(self, job: str) -> None:
        """As Slurm does some minutes after the end."""
        (self.folder / job).unlink()

    def down(self, *, is_down: bool = True) -> None:
        """Whether the controller cannot be reached."""
        if is_down:
            (self.folder / "down").touch()
        else:
            (self.folder / "down").unlink()

    def slow(self, seconds: float) -> None:
        """How long an answer takes."""
        (self.folder / "slow").write_text(str(seconds))
