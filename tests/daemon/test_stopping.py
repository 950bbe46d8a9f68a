"""SIGTERM ends the daemon within its grace, whatever the disk, a file system or a receiver does."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from pathlib import Path

from tests.daemon.conftest import Starter
from tests.daemon.harness import Sink

LIMIT_S = 8.0
"""A grace of one second, two for the HTTP server, and room for a busy host; a send may take a minute."""

HANGS = """
import os, time
really = os.pread
def pread(fd, *more):
    if os.readlink(f"/proc/self/fd/{fd}").endswith("hangs.log"):
        time.sleep(3600)
    return really(fd, *more)
os.pread = pread
"""
"""What a file of a server that does not answer does to whoever reads it."""


async def test_with_a_full_disk_and_a_backlog(recorded: Path, tmp_path: Path, start: Starter, sink: Sink) -> None:
    log = tmp_path / "train.log"
    log.touch()
    daemon = await start("--log", log, "--state-dir", tmp_path / "state", "--delivery-grace", "1s")
    daemon.fill_disk()
    log.write_bytes((recorded / "verl-0.9.1.numpy2.nocolor.driver.log").read_bytes() * 12)
    status = await daemon.until(lambda s: not s["store"]["ok"])
    assert status["sources"][0]["lag_bytes"] > 2 << 20
    assert await asyncio.wait_for(daemon.stop(), LIMIT_S) == 0
    assert "read again at the next start" in "".join(daemon.output)

    daemon = await start("--log", log, "--state-dir", tmp_path / "state")
    status = await daemon.caught_up(log)
    assert status["runs"][0]["steps_seen"] > 0
    assert await daemon.stop() == 0


async def test_with_a_file_system_that_does_not_answer(tmp_path: Path, start: Starter) -> None:
    (tmp_path / "sitecustomize.py").write_text(HANGS)
    log = tmp_path / "hangs.log"
    log.write_text("x\n")
    daemon = await start(
        "--log", log, "--state-dir", tmp_path / "state", "--delivery-grace", "1s", env={"PYTHONPATH": str(tmp_path)}
    )
    await daemon.until(lambda s: [source["state"] for source in s["sources"]] == ["stalled"])
    assert await asyncio.wait_for(daemon.stop(), LIMIT_S) == 0


async def test_during_a_reload_that_waits_for_a_receiver(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    log = tmp_path / "train.log"
    log.write_bytes((recorded / "verl-0.3.0.post1.driver.log").read_bytes())
    config = tmp_path / "verlwatch.yaml"
    config.write_text(
        "runs: [{logs: [train.log], from: beginning}]\ndelivery: {grace: 1s}\n"
        f"receivers: [{{name: hook, type: webhook, url: '{sink.url}'}}]\n"
    )
    sink.answers.clear()
    daemon = await start("--config", config, "--state-dir", tmp_path / "state")
    await asyncio.wait_for(sink.asked.wait(), 30)
    daemon.process.send_signal(signal.SIGHUP)
    await asyncio.sleep(0.3)
    assert await asyncio.wait_for(daemon.stop(), LIMIT_S) == 0
    assert "reloaded" not in "".join(daemon.output), "the stop came before the reload was done"


async def test_the_service_manager_is_asked_for_as_much_time_as_the_grace(tmp_path: Path, start: Starter) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(5)
        daemon = await start(
            "--log", tmp_path / "later.log", "--state-dir", tmp_path / "state", "--delivery-grace", "5m",
            env={"NOTIFY_SOCKET": str(tmp_path / "notify")},
        )  # fmt: skip
        began = time.monotonic()
        assert await daemon.stop() == 0
        assert time.monotonic() - began < LIMIT_S, "nobody waits where nothing is left to do"
        said = [manager.recv(4096).decode() for _ in range(2)]
    assert said[0].startswith("READY=1")
    assert said[1] == "STOPPING=1\nEXTEND_TIMEOUT_USEC=310000000"
