"""systemd/verlwatch.service: systemd accepts it, finds little exposed, and it says what the program needs."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.tools import ROOT, need
from verlwatch.shell.wake import FOLDERS

UNIT = ROOT / "systemd" / "verlwatch.service"
PROGRAM = "/opt/verlwatch/bin/verlwatch"


def settings(section: str) -> dict[str, list[str]]:
    """Every value of every key of a section, in the order of the file."""
    found: dict[str, list[str]] = defaultdict(list)
    inside = False
    for line in UNIT.read_text().replace("\\\n ", "").splitlines():
        if line.startswith("["):
            inside = line == f"[{section}]"
        elif inside and line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[key].append(value)
    return found


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """A copy that starts a program which exists: verify asks for it."""
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace(PROGRAM, "/bin/true"))
    return copy


def test_systemd_accepts_every_setting_without_a_warning(unit: Path) -> None:
    analyze = need("systemd-analyze", package="systemd")
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_setting_would_be_told(unit: Path) -> None:
    analyze = need("systemd-analyze", package="systemd")
    unit.write_text(unit.read_text().replace("NoNewPrivileges", "NoNewPrivilege"))
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert "NoNewPrivilege" in done.stderr


def test_the_exposure_is_at_most_three_of_ten(unit: Path) -> None:
    analyze = need("systemd-analyze", package="systemd")
    command = [str(analyze), "security", "--offline=true", "--threshold=30", "--no-pager", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


def test_it_is_validated_before_it_starts_and_before_it_reloads() -> None:
    service = settings("Service")
    config = "--config /etc/verlwatch/verlwatch.yaml"
    assert service["ExecStartPre"] == [f"{PROGRAM} check {config}"]
    assert service["ExecStart"] == [f"{PROGRAM} run {config}"]
    checked, told = service["ExecReload"]
    assert checked.endswith(f" {PROGRAM} check {config}")
    assert told == "/bin/kill -HUP $MAINPID"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Type", "notify"),
        ("Restart", "on-failure"),
        ("DynamicUser", "yes"),
        ("StateDirectory", "verlwatch"),
        ("UMask", "0077"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "read-only"),
        ("ProtectKernelLogs", "yes"),
        ("ProtectKernelModules", "yes"),
        ("ProtectKernelTunables", "yes"),
        ("RestrictSUIDSGID", "yes"),
        ("RestrictNamespaces", "yes"),
        ("LockPersonality", "yes"),
        ("CapabilityBoundingSet", "CAP_DAC_READ_SEARCH"),
        ("AmbientCapabilities", "CAP_DAC_READ_SEARCH"),
        ("ProtectProc", "default"),
        ("PrivateDevices", "no"),
    ],
)
def test_the_sandbox_is_closed_but_for_what_watching_needs(key: str, value: str) -> None:
    assert settings("Service")[key] == [value]


def test_it_sees_the_tmp_of_the_host_although_a_dynamic_user_gets_its_own() -> None:
    assert settings("Service")["BindReadOnlyPaths"] == ["/tmp"]  # noqa: S108 - the unit's mount, no file of ours


def test_the_system_calls_are_those_of_a_service() -> None:
    assert settings("Service")["SystemCallFilter"][0] == "@system-service"


def test_a_secret_that_is_not_there_does_not_keep_it_from_starting() -> None:
    credentials = settings("Service")["LoadCredential"]
    # With a path the file must exist; by name alone a missing one is passed over.
    assert credentials
    assert [name for name in credentials if ":" in name] == []


def test_training_wins_over_it() -> None:
    service = settings("Service")
    assert int(service["CPUWeight"][0]) < 100
    assert int(service["IOWeight"][0]) < 100
    assert int(service["Nice"][0]) > 0
    assert int(service["OOMScoreAdjust"][0]) > 0
    assert service["MemoryMax"] == ["512M"]
    assert float(service["WatchdogSec"][0].rstrip("s")) == 60


def test_its_threads_fit_into_the_limit() -> None:
    # main, reading, database, watching; two for each watched directory in watchdog 4; asyncio's, which look up names
    threads = 4 + 2 * FOLDERS + 32
    assert int(settings("Service")["TasksMax"][0]) >= 2 * threads


def test_what_stays_open_says_why() -> None:
    lines = UNIT.read_text().splitlines()
    for key in ("BindReadOnlyPaths", "ProtectHome", "DevicePolicy", "ProtectProc", "CapabilityBoundingSet"):
        at = next(number for number, line in enumerate(lines) if line.startswith(f"{key}="))
        while not lines[at].startswith(("#", "[")) and lines[at]:
            at -= 1
        assert lines[at].startswith("#"), key
