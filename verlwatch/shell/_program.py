"""A program of others that is asked something: given a while and some room, and killed with all that it has started.

A wrapper script's children hold its output open after it is killed: who waits for the end of that waits for them.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

MOST_BYTES = 16 << 20
"""What is printed beyond is no answer."""
_PIECE = 1 << 16
_DYING_S = 1.0


class Done(NamedTuple):
    """How it ended, and what it printed."""

    code: int
    out: bytes
    err: bytes


class UnansweredError(Exception):
    """It did not end in time, or printed too much (``is_late`` false), and was killed.

    ``process`` is there still where it cannot be.
    """

    def __init__(self, text: str, process: subprocess.Popen[bytes], *, is_late: bool) -> None:
        super().__init__(text)
        self.process, self.is_late = process, is_late


def run(command: Sequence[str], limit_s: float, environment: dict[str, str] | None = None) -> Done:
    """What ``command`` prints.  ``environment`` is added to ours; words are in English.

    Raises:
        UnansweredError: it does not answer within ``limit_s`` and MOST_BYTES; the text says which.
        OSError: it cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603 - a program of the user's own, without a shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "LC_ALL": "C", **(environment or {})},
    )
    ends, is_late = time.monotonic() + limit_s, True
    try:
        out, err = _read(process, ends)
        return Done(process.wait(max(0.0, ends - time.monotonic())), out, err)
    except (TimeoutError, subprocess.TimeoutExpired):
        why = f"did not answer within {limit_s:g} s"
    except OverflowError:
        is_late = False
        why = f"printed more than {MOST_BYTES >> 20} MiB"
    finally:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None  # noqa: S101 - both are asked for
            pipe.close()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_DYING_S)
    raise UnansweredError(why, process, is_late=is_late)


def _read(process: subprocess.Popen[bytes], ends: float) -> tuple[bytes, bytes]:
    """All that it prints.  Raises TimeoutError and OverflowError."""
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - both are asked for
    printed = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as pipes:
        for pipe in printed:
            pipes.register(pipe, selectors.EVENT_READ)
        while pipes.get_map():
            left = ends - time.monotonic()
            ready = pipes.select(left) if left > 0.0 else ()
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                pipe = next(one for one in printed if one is key.fileobj)
                piece = os.read(key.fd, _PIECE)
                printed[pipe] += piece
                if not piece:
                    pipes.unregister(pipe)
                if len(printed[pipe]) > MOST_BYTES:
                    raise OverflowError
    out, err = printed.values()
    return bytes(out), bytes(err)
