"""Programs that tests use where they are there or can be had: found, else taken out of a Debian package."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_TOOLS = ROOT / "build" / "tools"
_TIMEOUT_S = 180


def need(tool: str, package: str, reads: str = "/") -> Path:
    """The path of ``tool``; skips the test where it is not installed and cannot be had from Debian's ``package``.

    The package is unpacked below ``build/tools`` and not installed, so no service starts.  Only where the tool does
    not run from there (it needs other packages, or the file ``reads`` of its own) and the tests run as root is it
    installed.
    """
    if found := shutil.which(tool):
        return Path(found)
    unpacked = _TOOLS / package / "usr" / "bin" / tool
    if not unpacked.exists():
        _unpack(package)
    if unpacked.exists() and Path(reads).exists() and _runs(unpacked):
        return unpacked
    if unpacked.exists() and os.geteuid() == 0:
        _run("apt-get", "install", "-y", "--no-install-recommends", package)
    if found := shutil.which(tool):
        return Path(found)
    pytest.skip(f"needs {tool}: install the package {package}")


def _unpack(package: str) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return
    with tempfile.TemporaryDirectory() as folder:
        download = ("apt-get", "-o", "APT::Sandbox::User=root", "download", package)
        if not _run(*download, cwd=folder) and os.geteuid() == 0 and _run("apt-get", "update"):
            _run(*download, cwd=folder)
        archive = next(Path(folder).glob("*.deb"), None)
        if archive is None or not _run("dpkg-deb", "-x", str(archive), f"{folder}/unpacked"):
            return
        (_TOOLS / package).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(f"{folder}/unpacked", _TOOLS / package)


def _runs(program: Path) -> bool:
    return _run(str(program), "--version")


def _run(*command: str, cwd: str | None = None) -> bool:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
