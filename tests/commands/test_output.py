"""Standard output that is closed, full, left by its reader, or of ASCII only: no traceback, the right exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

ASCII = {"PYTHONIOENCODING": "ascii"}
C = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
HELP = ["--help"]
DRY_RUN = ["test-notify", "--dry-run", "--webhook-url", "http://127.0.0.1:9/"]


def run(
    arguments: Sequence[str | Path],
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    stdout: int | None = subprocess.PIPE,
) -> subprocess.CompletedProcess[bytes]:
    """Runs the command as a process of its own; its standard output is closed where ``stdout`` is None."""
    command = [sys.executable, "-m", "verlwatch", *map(str, arguments)]
    if stdout is None:
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    where = subprocess.DEVNULL if stdout is None else stdout
    done = subprocess.run(
        command,
        stdout=where,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert b"Exception" not in done.stderr, done.stderr.decode()
    return done


@pytest.fixture
def log(recorded: Path) -> Path:
    return recorded / "verl-0.4.1.debug.driver.log"


@pytest.mark.parametrize("command", [["report"], ["parse", "--json"], HELP, DRY_RUN], ids=" ".join)
def test_a_full_output_is_told_and_fails(command: list[str], log: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run(command if command in (DRY_RUN, HELP) else [*command, log], stdout=full.fileno())
    assert done.returncode == 1
    assert done.stderr == b"standard output: No space left on device\n"


@pytest.mark.parametrize("command", [["replay"], ["parse"], ["parse", "--json"]], ids=" ".join)
def test_a_reader_that_has_left_is_no_trouble(command: list[str], log: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run([*command, log], stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", [["report"], ["parse", "--json"]], ids=" ".join)
def test_a_closed_output_is_no_trouble(command: list[str], log: Path) -> None:
    done = run([*command, log], stdout=None)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("command", "environment"), [(["report"], ASCII), (["report"], C), (["replay", "--json"], ASCII), (DRY_RUN, ASCII)]
)
def test_what_an_output_cannot_show_is_replaced_and_json_stays_json(
    command: list[str], environment: dict[str, str], log: Path
) -> None:
    done = run(command if command in (DRY_RUN, HELP) else [*command, log], environment)
    assert (done.returncode, done.stderr) == (0, b"")
    if command == ["report"]:
        assert b"  ?1.57 at equal work" in done.stdout
        assert done.stdout.isascii()
    elif command == DRY_RUN:
        assert json.loads(done.stdout)["title"]
    else:
        assert "×" in json.loads(done.stdout.splitlines()[0])["summary"]
