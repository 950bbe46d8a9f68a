"""A program that prints numbers: started, given a while, and killed when it is late."""

from __future__ import annotations

import shutil
import subprocess

from verlwatch.shell import _program
from verlwatch.shell._program import UnansweredError
from verlwatch.shell.gpu._card import SourceError
from verlwatch.shell.printable import printable

LIMIT_S = 10.0
"""A driver that is not kept loaded (persistence mode off) takes some seconds to answer."""
_SHOWN, _READ = 200, 4096


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
            done = _program.run([path, *arguments], self._limit_s)
        except UnansweredError as error:
            self._stuck = error.process if error.process.poll() is None else None
            raise SourceError(f"{self._program} {error}") from None
        except OSError as error:
            raise SourceError(f"{self._program} cannot be started: {error.strerror}") from None
        if done.code:
            said = (done.err.strip() or done.out.strip())[:_READ].decode(errors="replace").replace("\n", " ")
            raise SourceError(f"{self._program} failed ({done.code}): {printable(said)[:_SHOWN]}")
        return done.out.decode(errors="replace")
