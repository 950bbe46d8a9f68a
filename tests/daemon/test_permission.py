"""A log that may not be read, and later may."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.daemon.conftest import Starter

NO_OVERRIDE = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
"""Without the right of root to read everything."""


async def test_a_log_that_may_not_be_read_is_told_and_read_once_it_may(
    recorded: Path, tmp_path: Path, start: Starter
) -> None:
    log, other = tmp_path / "train.log", tmp_path / "other.log"
    log.write_bytes((recorded / "verl-0.1.locallogger.log").read_bytes())
    other.touch()
    log.chmod(0)
    through = NO_OVERRIDE if os.geteuid() == 0 else ()
    if subprocess.run([*through, "true"], check=False, capture_output=True).returncode:
        pytest.skip("root cannot give up its rights here")
    if not subprocess.run([*through, "cat", log], check=False, capture_output=True).returncode:
        pytest.skip("root keeps its rights here")
    config = tmp_path / "verlwatch.yaml"
    config.write_text("runs: [{name: r, logs: [train.log, other.log]}]\n")
    daemon = await start("--config", config, "--state-dir", tmp_path / "state", through=through)
    status = await daemon.until(lambda s: "unreadable" in {source["state"] for source in s["sources"]})
    assert any("train.log" in reason and "Permission denied" in reason for reason in status["not_ready"])
    assert {source["state"] for source in status["sources"]} == {"unreadable", "live"}
    log.chmod(0o600)
    status = await daemon.until(lambda s: bool(s["runs"]) and s["runs"][0]["step"] == 299)
    assert status["ready"]
    assert await daemon.stop() == 0
