"""Where our own log goes: an output that never stops, blocks or ends the watcher.

Whoever reads our log may go away (``| head``), fall asleep or never have been there.  A line that nobody takes is
dropped.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import TextIO


class LogOutput:
    """Text to ``stream`` (default: stdout, else stderr), a line at a time; ``dropped`` counts the lines nobody took."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.dropped = 0
        self._stream = stream or sys.stdout or sys.stderr
        self._line = ""
        self._torn = False  # the last line lost its end

    def isatty(self) -> bool:
        """Whether a person reads along."""
        return self._stream is not None and self._stream.isatty()

    def write(self, text: str) -> int:
        """Keeps ``text`` until `flush`."""
        self._line += text
        return len(text)

    def flush(self) -> None:
        """Hands over what was written, as far as it is taken without waiting."""
        line, self._line = self._line, ""
        try:
            if self._stream is None:
                self.dropped += 1
            elif (descriptor := self._pipe()) is None:
                self._stream.write(line)
                self._stream.flush()
            else:
                self._into(descriptor, line.encode(errors="backslashreplace"))
        except (OSError, ValueError):
            self.dropped += 1
            self._let_go()

    def _pipe(self) -> int | None:
        """The descriptor of a pipe or socket, where a reader may be slow; None for anything else."""
        assert self._stream is not None  # noqa: S101 - looked at by the caller
        try:
            descriptor = self._stream.fileno()
        except (OSError, ValueError):  # a stream of memory only
            return None
        mode = os.fstat(descriptor).st_mode
        return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None

    def _into(self, descriptor: int, data: bytes) -> None:
        """Writes no more at a time than a pipe with room for anything takes at once (POSIX: PIPE_BUF)."""
        data = b"\n" * self._torn + data
        self._torn = False
        for at in range(0, len(data), select.PIPE_BUF):
            if not select.select([], [descriptor], [], 0)[1]:
                self.dropped += 1
                self._torn = at > 0
                return
            os.write(descriptor, data[at : at + select.PIPE_BUF])

    def _let_go(self) -> None:
        """What Python still holds for a reader that went away must not raise when the process ends."""
        if self._stream is sys.stdout:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            except (OSError, ValueError):
                self._stream = None
