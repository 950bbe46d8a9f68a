"""A file system that never answers, for real: FUSE without anybody who serves it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.daemon.conftest import Starter

MOUNT = """
import ctypes, os, sys
fuse = os.open("/dev/fuse", os.O_RDWR)
os.set_inheritable(fuse, True)  # the mount lives for as long as the process that becomes the daemon
mount = ctypes.CDLL(None, use_errno=True).mount
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fuse
if mount(b"hung", os.fsencode(sys.argv[1]), b"fuse", 0, options):
    raise OSError(ctypes.get_errno(), "mount")
os.execvp(sys.argv[2], sys.argv[2:])
"""


async def test_a_file_system_that_never_answers_is_told_and_keeps_nobody_from_stopping(
    tmp_path: Path, start: Starter
) -> None:
    if not SOAK:
        pytest.skip("takes ten seconds; `make soak` has it")
    hung = tmp_path / "hung"
    hung.mkdir()
    through = ("unshare", "-rm", sys.executable, "-c", MOUNT, str(hung))
    if subprocess.run([*through, "true"], check=False, capture_output=True).returncode:
        pytest.skip("mounting FUSE is not allowed here")
    daemon = await start(
        "--log", hung / "train.log", "--state-dir", tmp_path / "state", "--delivery-grace", "1s", through=through
    )
    status = await daemon.until(lambda s: bool(s["notices"]))
    assert status["notices"] == [
        "a file system does not answer the search for files; the reading of all files waits for it"
    ]
    assert (await daemon.get("/healthz"))["alive"]
    asked = time.monotonic()
    assert await daemon.stop() == 0
    assert time.monotonic() - asked < 5.0
