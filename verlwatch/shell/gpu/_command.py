"""A program that prints numbers: started, given a while, and killed when it is late."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress

from verlwatch.shell.gpu._card import SourceError
from verlwatch.shell.printable import printable

LIMIT_S = 10.0
"""A driver that is not kept loaded (persistence mode off) takes some seconds to answer."""
_DYING_S = 1.0
_SHOWN = 200


class Command:
    """One program.  A process that cannot even be killed (it waits for the driver) is not joined by another."""

    def __init__(self, program: str, limit_s: float = LIMIT_S) -> None:
        self._program = program
        self._limit_s = limit_s
        self._stuck: subprocess.Popen[bytes] | None = None

    def path(self) -> str:
        """Where it is.  Raises SourceError."""
        path = shutil.which(self._program)
        if path is None:
            raise SourceError(f"{self._program} is not on the PATH")
        return path

    def output(self, *arguments: str) -> str:
        """What it prints.

        Raises:
            SourceError: it is not there, fails or does not end in time.
        """
        path = self.path()
        if self._stuck is not None and self._stuck.poll() is None:
            raise SourceError(f"{self._program} (process {self._stuck.pid}) hangs and cannot be killed")
        self._stuck = None
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own program, without a shell
                [path, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            raise SourceError(f"{self._program} cannot be started: {error.strerror}") from None
        try:
            printed, complaint = process.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            self._kill(process)
            raise SourceError(f"{self._program} did not answer within {self._limit_s:g} s") from None
        if process.returncode:
            said = (complaint.strip() or printed.strip()).decode(errors="replace").replace("\n", " ")
            raise SourceError(f"{self._program} failed ({process.returncode}): {printable(said)[:_SHOWN]}")
        return printed.decode(errors="replace")

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            process.communicate(timeout=_DYING_S)
        except subprocess.TimeoutExpired:
            self._stuck = process
