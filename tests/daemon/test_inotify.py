"""Where inotify is used up, overrun, silent or unwanted the real daemon polls, says so, and misses nothing.

Reported of others: watches and instances used up (fluent-bit#1018, fluent-bit#1777), the queue overrun
(fluent-bit#1108).
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.daemon.conftest import Starter
from tests.daemon.harness import Daemon

NONE_LEFT = "until then new files are found by polling"


def limited(name: str) -> tuple[str, ...]:
    """A user namespace in which that kind of inotify's means is used up; skips where there can be none."""
    through = ("unshare", "-Ur", "sh", "-c", f'echo 0 > /proc/sys/user/{name} && exec "$@"', "sh")
    if subprocess.run([*through, "true"], check=False, capture_output=True).returncode:
        pytest.skip("user namespaces are not allowed here")
    return through


async def found(daemon: Daemon, log: Path, recorded: Path) -> None:
    """A log that appears is read to its end."""
    log.write_bytes((recorded / "verl-0.1.locallogger.log").read_bytes())
    status = await daemon.until(lambda s: bool(s["runs"]) and s["runs"][0]["step"] == 299)
    assert status["ready"], status["not_ready"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("max_inotify_watches", "no inotify watch is left; raise fs.inotify.max_user_watches"),
        ("max_inotify_instances", "no inotify instance is left; raise fs.inotify.max_user_instances"),
    ],
)
async def test_where_the_kernel_gives_no_more_inotify_new_files_are_polled_for(
    recorded: Path, tmp_path: Path, start: Starter, name: str, remedy: str
) -> None:
    (tmp_path / "logs").mkdir()
    daemon = await start("--log", tmp_path / "logs" / "*.log", "--state-dir", tmp_path / "state", through=limited(name))
    status = await daemon.until(lambda s: bool(s["notices"]))
    assert status["notices"] == [f"{remedy}; {NONE_LEFT}"]
    await found(daemon, tmp_path / "logs" / "train.log", recorded)
    assert len(await notices(daemon)) == 1
    assert await daemon.stop() == 0


async def notices(daemon: Daemon) -> list[str]:
    told: list[str] = (await daemon.status())["notices"]
    return told


async def test_an_overflow_of_the_queue_is_told_and_what_appeared_is_found(
    recorded: Path, tmp_path: Path, start: Starter
) -> None:
    queued = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if queued > 100_000:
        pytest.skip(f"{queued} events fit into the queue of this host")
    folder = tmp_path / "logs"
    folder.mkdir()
    daemon = await start("--log", folder / "*.log", "--state-dir", tmp_path / "state")
    await daemon.until(lambda _: watches(daemon) == 1)
    daemon.process.send_signal(signal.SIGSTOP)
    await daemon.stopped()
    for number in range(queued // 2 + 500):
        os.close(os.open(folder / f"{number}.tmp", os.O_CREAT | os.O_WRONLY))
        os.unlink(folder / f"{number}.tmp")  # noqa: PTH108  # two fast calls, thousands of times
    (folder / "train.log").write_bytes((recorded / "verl-0.1.locallogger.log").read_bytes())
    daemon.process.send_signal(signal.SIGCONT)
    status = await daemon.until(lambda s: bool(s["notices"]) and bool(s["runs"]) and s["runs"][0]["step"] == 299)
    (notice,) = status["notices"]
    assert notice.startswith("inotify lost events (1 times since the start); what appeared then was found by polling")
    assert status["ready"]
    assert "Inotify queue overflowed" in await daemon.said("Inotify queue overflowed")
    assert await daemon.stop() == 0


async def test_on_an_overlay_no_watch_is_set_and_nobody_complains(
    recorded: Path, tmp_path: Path, start: Starter
) -> None:
    script = (
        'mount -t tmpfs none "$1" && mkdir "$1/low" "$1/up" "$1/work" "$1/logs" && mount -t overlay overlay '
        '-o "lowerdir=$1/low,upperdir=$1/up,workdir=$1/work" "$1/logs" && shift && exec "$@"'
    )
    disk = tmp_path / "disk"
    disk.mkdir()
    through = ("unshare", "-rm", "sh", "-c", script, "sh", str(disk))
    if subprocess.run([*through, "true"], check=False, capture_output=True).returncode:
        pytest.skip("mounting an overlay is not allowed here")
    daemon = await start("--log", disk / "logs" / "*.log", "--state-dir", tmp_path / "state", through=through)
    inside = Path(f"/proc/{daemon.process.pid}/root{disk}/logs")
    await found(daemon, inside / "train.log", recorded)
    (notice,) = await notices(daemon)
    assert f"(overlay mounted at {disk}/logs); new files are found there by polling" in notice
    assert watches(daemon) == 0
    assert await daemon.stop() == 0


@pytest.mark.parametrize(("watch", "expected"), [("poll", 0), ("auto", 1)])
async def test_who_wants_polling_gets_it_and_no_watch(
    recorded: Path, tmp_path: Path, start: Starter, watch: str, expected: int
) -> None:
    (tmp_path / "logs").mkdir()
    daemon = await start(
        "--log", tmp_path / "logs" / "*.log", "--state-dir", tmp_path / "state", "--reading-watch", watch
    )
    await found(daemon, tmp_path / "logs" / "train.log", recorded)
    if not await notices(daemon):  # a host without inotify has none to count
        assert watches(daemon) == expected
    assert await daemon.stop() == 0


def watches(daemon: Daemon) -> int:
    """How many inotify watches the daemon holds."""
    lines: list[str] = []
    for file in Path(f"/proc/{daemon.process.pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile: it opens and closes files as it looks around
            lines += file.read_text().splitlines()
    return sum(line.startswith("inotify ") for line in lines)
