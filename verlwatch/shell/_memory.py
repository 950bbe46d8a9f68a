"""Asks the C library to hold little memory: a host that trains has other uses for it.

glibc keeps a pool for each thread, and what was freed in between; both are wasted on a process that waits most of the
time.  Where the C library is another one nothing happens.

Source: glibc ``mallopt(3)`` and ``malloc_trim(3)``.
"""

from __future__ import annotations

import ctypes
from typing import Any

_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def hold_little() -> None:
    """One pool for all threads, from now on."""
    _call("mallopt", _ARENA_MAX, 1)


def give_back() -> None:
    """Returns what has been freed to the system."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> Any:
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):
        return None
    return function(*arguments)
