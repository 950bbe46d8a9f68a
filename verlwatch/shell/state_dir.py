"""The state directory: private, writable, on a local file system, and one process's own."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from verlwatch.shell._mounts import MOUNTS, shared_file_system

_GLANCE_S = 0.5
"""Longer than `served` ever holds the lock."""
_AGAIN_S = 0.02
_NOTE_BYTES = 1 << 16


class Served(NamedTuple):
    """Where a process serves its status, and where that is HTTPS, the certificate (PEM) that it shows."""

    url: str
    certificate: str = ""


class StateDirError(Exception):
    """The state directory cannot be used; the text names it, the reason and the remedy."""


class StateDirInUse(StateDirError):  # noqa: N818 - names the situation, as its parent does the error
    """Another process holds the state directory."""


def network_file_system(path: Path, mounts: Path = MOUNTS) -> str | None:
    """``TYPE mounted at PLACE`` if ``path``, existing or to be made, is not on a local file system.

    SQLite's write-ahead log lives in shared memory, which network file systems and FUSE do not give.
    """
    return shared_file_system(path, mounts)


def prepare(state_dir: Path, mounts: Path = MOUNTS) -> None:
    """Makes the directory (mode 0700) where it is missing; raises StateDirError where it will not do."""
    network = network_file_system(state_dir, mounts)
    if network:
        raise StateDirError(
            f"state directory {state_dir} is on a network file system ({network}), where SQLite is not safe; "
            f"give a local one with --state-dir, for example /var/tmp/verlwatch-{os.getuid()}"
        )
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = state_dir.stat().st_uid
    except OSError as error:
        raise _unusable(state_dir, error) from error
    if owner not in {0, os.getuid()} and os.getuid() != 0:
        raise StateDirError(
            f"state directory {state_dir} belongs to another user (uid {owner}); give one of your own with --state-dir"
        )


def lock(state_dir: Path) -> int:
    """Takes the directory for this process; the file descriptor holds it until it is closed or the process ends."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(state_dir / "lock", flags, 0o600)
    except OSError as error:
        raise _unusable(state_dir, error) from error
    try:
        _take(descriptor)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    except BlockingIOError:
        pid = os.read(descriptor, 32).decode("ascii", "replace").partition("\n")[0] or "unknown"
        os.close(descriptor)
        raise StateDirInUse(
            f"state directory {state_dir} is in use by process {pid}; stop that one first, "
            "or give this one another with --state-dir"
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise _unusable(state_dir, error) from error
    return descriptor


def _take(descriptor: int) -> None:
    """Locks, past the glances of `served`; raises BlockingIOError where another process holds it."""
    ends = time.monotonic() + _GLANCE_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > ends:
                raise
            time.sleep(_AGAIN_S)


def holds(state_dir: Path, lock: int) -> bool:
    """Whether the lock that `lock` took is still the one of the directory: it may have been deleted."""
    try:
        return os.path.samestat(os.fstat(lock), (state_dir / "lock").lstat())
    except (FileNotFoundError, NotADirectoryError):
        return False


def announce(lock: int, served: Served) -> None:
    """Writes into the lock that `lock` took, behind the pid, where this process serves its status."""
    with suppress(OSError):  # a full disk: `verlwatch status` then has to be told with --url
        os.write(lock, f"{served.url}\n{served.certificate}".encode())


def served(state_dir: Path) -> Served | None:
    """Where the process that holds the directory serves its status; None if none holds it or it serves none.

    What a killed process left behind does not count: its address may be somebody else's by now.

    Raises:
        OSError: the directory cannot be looked into.
    """
    try:
        descriptor = os.open(state_dir / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        _, _, note = os.read(descriptor, _NOTE_BYTES).decode("ascii", "replace").partition("\n")
        url, _, certificate = note.partition("\n")
        return Served(url, certificate) if url else None
    finally:
        os.close(descriptor)
    return None


def _unusable(state_dir: Path, error: OSError) -> StateDirError:
    return StateDirError(
        f"state directory {state_dir} cannot be written ({error.strerror}); make it writable for this user and see "
        "that the disk has space, or give another with --state-dir"
    )
