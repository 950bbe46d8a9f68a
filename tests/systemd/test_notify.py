"""verlwatch.shell.systemd against a real datagram socket, the one a service manager would listen on."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

import pytest

from verlwatch.shell import systemd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as listener:
        listener.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listener


def heard(manager: socket.socket) -> str:
    return manager.recv(4096).decode()


def test_readiness_and_status_arrive_in_one_datagram(manager: socket.socket) -> None:
    assert systemd.notify("READY=1", "STATUS=watching 3 runs")
    assert heard(manager) == "READY=1\nSTATUS=watching 3 runs"


def test_an_abstract_socket_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"verlwatch-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as listener:
        listener.bind(f"\0{name}")
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        assert systemd.notify("WATCHDOG=1")
        assert heard(listener) == "WATCHDOG=1"


def test_a_reload_carries_the_monotonic_clock_in_microseconds(manager: socket.socket) -> None:
    before = time.monotonic_ns() // 1000
    assert systemd.reloading()
    state, clock = heard(manager).split("\n")
    assert state == "RELOADING=1"
    assert before <= int(clock.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


def test_a_run_name_cannot_smuggle_in_a_second_assignment(manager: socket.socket) -> None:
    systemd.notify("STATUS=watching evil\nMAINPID=1")
    assert heard(manager) == r"STATUS=watching evil\nMAINPID=1"


@pytest.mark.parametrize("address", [None, "", "vsock:2:1234", "relative/socket"])
def test_without_a_manager_nothing_is_said(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert not systemd.notify("READY=1")


def test_a_manager_that_has_gone_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    assert not systemd.notify("READY=1")


@pytest.mark.usefixtures("manager")
def test_a_manager_that_does_not_read_is_not_waited_for() -> None:
    said = [systemd.notify("WATCHDOG=1") for _ in range(5000)]
    assert said[0]
    assert not said[-1]


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": str(os.getpid())}, 1.5),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_counts_only_for_this_process(
    environment: dict[str, str], seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert systemd.watchdog_interval() == seconds
