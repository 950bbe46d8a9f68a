"""Words to the service manager, as sd_notify(3) writes them: one datagram to the socket it names.

Without ``NOTIFY_SOCKET`` (no systemd, or a service of another type) nothing is said and nothing fails.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable

from verlwatch.shell.printable import printable

_ABSTRACT = "@"


def notify(*assignments: str) -> bool:
    """Say ``READY=1``, ``STOPPING=1``, ``WATCHDOG=1``, ``STATUS=…`` in one datagram; whether it was taken.

    An assignment cannot smuggle in a second one: its line breaks are escaped.  Never waits: a manager that does not
    read is no reason to stop judging.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", _ABSTRACT)):
        return False
    if address.startswith(_ABSTRACT):
        address = "\0" + address[1:]
    data = "\n".join(printable(assignment) for assignment in assignments).encode()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as manager:
            manager.sendto(data, address)
    except OSError:
        return False
    return True


def reloading() -> bool:
    """Say that the configuration is being read again; ``notify("READY=1")`` ends it, whether it succeeded or not."""
    return notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


async def feed_watchdog(stalled: Callable[[], str | None], again_s: float) -> None:
    """Says ``WATCHDOG=1`` as long as nothing has ``stalled``: a stuck watcher must not look alive.

    A clock that was set looks like a stall: it is looked at anew every ``again_s``.
    """
    interval = watchdog_interval()
    while interval is not None:
        is_stalled = stalled() is not None
        if not is_stalled:
            notify("WATCHDOG=1")
        await asyncio.sleep(min(interval / 2, again_s) if is_stalled else interval / 2)


def watchdog_interval() -> float | None:
    """Seconds within which ``WATCHDOG=1`` is expected of this process (half of that is a good pace); None if never."""
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    if not microseconds.isascii() or not microseconds.isdigit():
        return None
    return int(microseconds) / 1e6 or None
