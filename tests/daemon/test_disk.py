"""A disk that is smaller than wished for, or turns read-only, while the daemon runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.conftest import Starter
from tests.daemon.harness import projection
from tests.daemon.test_live import run_to_end

CAP = 16 << 20
SLACK = 4 << 20
"""What one commit adds, in the file and in the write-ahead log."""


async def test_the_database_stays_at_its_size_while_much_is_read(tmp_path: Path, start: Starter) -> None:
    log, state = tmp_path / "train.log", tmp_path / "state"
    more = " - ".join(f"actor/some_number_{n}:{n}.123456" for n in range(150))
    with log.open("w") as file:
        for step in range(1, 6001):
            file.write(f"step:{step} - timing_s/gen:40.1 - timing_s/step:60.1 - {more}\n")
    config = tmp_path / "verlwatch.yaml"
    config.write_text("runs: [{logs: [train.log]}]\nstorage: {max_size: 16MiB}\n")
    daemon = await start("--config", config, "--state-dir", state)
    sizes: list[int] = []

    def is_done(status: dict[str, Any]) -> bool:
        sizes.append(sum(file.stat().st_size for file in state.iterdir()))
        return bool(status["sources"]) and status["sources"][0]["position"] == log.stat().st_size

    await daemon.until(is_done)
    assert max(sizes) <= CAP + SLACK
    await daemon.until(lambda s: s["store"]["bytes"] <= CAP)
    assert await daemon.stop() == 0
    steps = [step for _, _, step, _ in projection(state)["steps"]]
    assert steps == list(range(6001 - len(steps), 6001))
    assert CAP // 3 < (state / "state.db").stat().st_size <= CAP


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that can be made to fail."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(24 << 20)

    def done(*command: str | Path) -> bool:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    if os.geteuid() != 0 or not done("mkfs.ext4", "-q", "-F", image) or not done("mount", "-o", "loop", image, folder):
        pytest.skip("making and mounting a file system is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


async def test_a_disk_that_turns_read_only_stops_the_reading_and_loses_nothing(
    recorded: Path, tmp_path: Path, disk: Path, start: Starter
) -> None:
    log, state = tmp_path / "train.log", disk / "state"
    data = (recorded / "verl-0.3.0.post1.driver.log").read_bytes()
    log.write_bytes(data[: len(data) // 2])
    command = ("--log", log, "--state-dir", state, "--delivery-grace", "0s")
    daemon = await start(*command)
    position = (await daemon.caught_up(log))["sources"][0]["position"]
    subprocess.run(["mount", "-o", "remount,abort", disk], check=True)  # as ext4 does where the device fails
    with log.open("ab") as file:
        file.write(data[len(data) // 2 :])
    status = await daemon.until(lambda s: not s["store"]["ok"])
    assert "cannot be written" in status["store"]["error"]
    assert status["sources"][0]["position"] == position
    assert await daemon.stop() == 0

    code, said = await run_to_end("run", "--http-listen", "127.0.0.1:0", *command)
    assert (code, "Read-only file system" in said, "--state-dir" in said) == (1, True, True)
    subprocess.run(["umount", disk], check=True)
    subprocess.run(["mount", "-o", "loop", tmp_path / "image", disk], check=True)
    daemon = await start(*command)
    await daemon.caught_up(log)
    assert await daemon.stop() == 0
    assert len(projection(state)["steps"]) == 301
