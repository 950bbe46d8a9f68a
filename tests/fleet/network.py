"""Hosts with a network of their own: each a network namespace, joined by veth pairs and a bridge.

No namespace has a name and nothing is written to disk: each lives as long as its doorman process, and that as long as
whoever started it.  Root, or a user who may make user namespaces, is enough.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

HERE = Path(__file__).parent
PYTHON = (sys.executable, "-I", "-S")
TOOLS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}


class NotPermittedError(Exception):
    """Network namespaces cannot be made here; the text says why."""


class Host:
    """A network namespace, with an address on the bridge."""

    def __init__(self, name: str, address: str, start: Sequence[str], has_users: bool) -> None:
        self.name = name
        self.address = address
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*start, *PYTHON, str(HERE / "doorman.py")], stdin=theirs.fileno(), stderr=subprocess.PIPE, text=True
            )
        if self._door.recv(100) != b"ready":
            _, said = self._process.communicate()
            self._door.close()
            raise NotPermittedError(said.strip())
        users = ("-U", "--preserve-credentials") if has_users else ()
        self.enter = ("nsenter", "-t", str(self._process.pid), *users, "-n")
        """What a command line begins with so that it runs on this host, in a process of the same id."""

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def close(self) -> None:
        self._door.close()
        if self._process.stderr:
            self._process.stderr.close()
        self._process.wait()

    def connect(self, address: str, port: int) -> socket.socket:
        """A connection from this host.  Raises OSError."""
        return self._opened(f"connect {address} {port}")

    def listen(self, address: str, port: int) -> socket.socket:
        """A socket that listens on this host.  Raises OSError."""
        return self._opened(f"listen {address} {port}")

    def ip(self, *commands: str) -> None:
        """Runs commands of `ip` here.  Raises NotPermittedError."""
        done = subprocess.run(
            [*self.enter, "ip", "-batch", "-"], input="\n".join(commands), text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise NotPermittedError(f"ip on {self.name}: {done.stderr.strip()}")

    def _opened(self, request: str) -> socket.socket:
        self._door.send(request.encode())
        answer, descriptors, _, _ = socket.recv_fds(self._door, 1000, 1)
        if not descriptors:
            raise OSError(f"{request}: {answer.decode()}")
        return socket.socket(fileno=descriptors[0])


class Network:
    """Hosts by name, the first of them ``10.77.0.1``, on one bridge."""

    def __init__(self, names: Sequence[str]) -> None:
        self.hosts: dict[str, Host] = {}
        self._wire: subprocess.Popen[str] | None = None
        missing = [f"{tool} (package {package})" for tool, package in TOOLS.items() if not shutil.which(tool)]
        if missing:
            raise NotPermittedError(f"{', '.join(missing)} is not installed")
        with ExitStack() as undo:
            self._switch = self._make_switch()
            undo.callback(self._switch.close)
            within = (*self._switch.enter[:-1], "unshare", "-n")
            for number, name in enumerate(names, start=1):
                self.hosts[name] = Host(name, f"10.77.0.{number}", within, self._has_users)
                undo.callback(self.hosts[name].close)
            self._join()
            self._undo = undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.even()
        self._undo.close()

    def cut(self, name: str) -> None:
        """Takes a host off the bridge: nothing comes through, in either direction."""
        self._switch.ip(f"link set {name} down")

    def mend(self, name: str) -> None:
        """The inverse of `cut`."""
        self._switch.ip(f"link set {name} up")

    def slow(self, name: str, delay_s: float, loss: float) -> None:
        """From now on what a host sends and gets takes ``delay_s`` longer each way, and some of it is lost."""
        self._switch.ip(
            "link add slow0 type veth peer name slow1",
            f"link set {name} nomaster",
            "link set slow1 master bridge0",
            "link set slow0 up",
            "link set slow1 up",
        )
        self._slow = name
        self._wire = subprocess.Popen(
            [*self._switch.enter, *PYTHON, str(HERE / "slow_wire.py"), name, "slow0", str(delay_s), str(loss), "7"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._wire.stdout
        assert self._wire.stdout.readline() == "ready\n"

    def even(self) -> None:
        """The inverse of `slow`."""
        if self._wire is not None:
            self._wire.kill()
            self._wire.communicate()
            self._wire = None
            self._switch.ip("link del slow0", f"link set {self._slow} master bridge0")

    def _make_switch(self) -> Host:
        """With user namespaces where they can be made: then nobody needs to be root."""
        reasons = []
        for flags, self._has_users in (("-rn", True), ("-n", False)):
            try:
                return Host("switch", "", ("unshare", flags), self._has_users)
            except NotPermittedError as error:
                reasons.append(str(error))
        raise NotPermittedError("; ".join(reasons))

    def _join(self) -> None:
        commands = ["link add bridge0 type bridge", "link set bridge0 up"]
        for host in self.hosts.values():
            commands += [
                f"link add {host.name} type veth peer name eth0 netns {host.pid}",
                f"link set {host.name} master bridge0",
                f"link set {host.name} up",
            ]
        self._switch.ip(*commands)
        for host in self.hosts.values():
            host.ip("link set lo up", f"addr add {host.address}/24 dev eth0", "link set eth0 up")
