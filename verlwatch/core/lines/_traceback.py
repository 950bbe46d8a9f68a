"""Tracebacks of Python and Ray, row by row: the innermost exception, its place, and the remote task that it stopped.

Python prints the oldest exception of a chain first; Ray puts the traceback of a task behind that of its caller and
writes ``ray::Class.method() (pid=4711, ip=10.0.0.1, ...)`` for ``Traceback (most recent call last):``.  In both the
innermost exception is the first that stands by itself, its place the last ``File`` row before it, and its task the last
``ray::`` before it.

Source: CPython ``traceback.py``; Ray ``python/ray/exceptions.py`` (``RayTaskError.__str__``).
"""

from __future__ import annotations

import re

from verlwatch.core.lines._line import Take
from verlwatch.core.lines._names import phase_of

TRACE_LINES = 8000
TRACE_BYTES = 1 << 20
"""So much of the source may go by while a traceback comes: all ranks of a run fail at once, row by row."""

HEADER = "traceback (most recent call last):"
"""How a traceback begins, in lower case: Ascend writes ``TraceBack``."""

_FILE = re.compile(r'\s{1,12}(?:\| {1,4})?File "([^"]{1,500})", line ([0-9]{1,9})(?:, in (.{1,200}))?$')
_EXCEPTION = re.compile(
    r"((?:[A-Za-z_]\w{0,60}\.){0,10}(?:\w{0,80}(?:Error|Exception|Interrupt|Exit|Iteration|Warning|Group)|"
    r"(?<=\.)[A-Z]\w{0,80}))(?:: (.*)|:?$)"
)
_TASK = re.compile(r"ray::([\w.<>-]{1,200})\(\) \(pid=([0-9]{1,10}), ip=([\w.:]{1,64})[,)]")
_CAUSE = re.compile(r"RayTaskError\((\w{1,100})\)")
_CHAINS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_HYDRA = "Set the environment variable HYDRA_FULL_ERROR=1"


class Trace:
    """What tracebacks that belong together have said so far."""

    def __init__(self) -> None:
        self._told: dict[str, str | float | None] = {}
        self._is_complete = False
        self._goes_on = False

    @property
    def told(self) -> dict[str, str | float | None]:
        """``exception``, ``text``, ``file``, ``line``, ``function``; ``task``, ``phase``, ``pid``, ``ip`` of a task."""
        return self._told

    def take(self, text: str, *, cut: bool = False) -> Take:
        """Looks at the next message of the writer, without heads and with its blanks; ``cut``: its end is missing."""
        task = _TASK.search(text)
        if task or text.lower().startswith(HEADER):
            return self._begin(text, task)
        if not text.strip() or text.startswith(_CHAINS):
            self._goes_on = self._goes_on or bool(text.strip())
            return Take.TAKEN
        if text[0] in " \t|+":
            if not self._is_complete and not cut and (row := _FILE.match(text)):
                self._told |= {"file": row[1], "line": int(row[2]), "function": row[3]}
            return Take.TAKEN
        if text.startswith(_HYDRA):
            return Take.DONE
        if exception := _EXCEPTION.match(text):
            return self._end(exception[1], exception[2])
        return Take.ENDED if self._is_complete and not self._goes_on else Take.IGNORED

    def _begin(self, text: str, task: re.Match[str] | None) -> Take:
        """Another traceback: of the same chain, or one by itself."""
        if self._is_complete and not self._goes_on:
            return Take.ENDED
        if not self._is_complete and task:
            self._told |= called(task)
            if cause := _CAUSE.search(text):
                self._told["exception"] = cause[1]
        return Take.TAKEN

    def _end(self, exception: str, text: str | None) -> Take:
        if self._is_complete:
            said = Take.TAKEN if self._goes_on else Take.ENDED
            self._goes_on = False
            return said
        self._told |= {"exception": exception, "text": text}
        self._is_complete = True
        return Take.TAKEN


def find_task(text: str) -> re.Match[str] | None:
    """A task as Ray names it in tracebacks."""
    return _TASK.search(text)


def called(task: re.Match[str]) -> dict[str, str | float | None]:
    """The task, where it ran, and the phase that its method is part of."""
    name, pid, ip = task.groups()
    return {"task": name, "pid": int(pid), "ip": ip, "phase": phase_of(name.rpartition(".")[2])}
