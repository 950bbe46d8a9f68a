r"""A process goes down in native code: an exception that nothing catches, or a signal.

    [2025-03-04 19:28:31,014 E 4711 4711] logging.cc:113: Unhandled exception: N5boost10wrapexceptI...E. what(): thread:
        Resource temporarily unavailable [system:11]
    terminate called after throwing an instance of 'c10::DistBackendError'
      what():  [PG 0 Rank 2] ...
    *** SIGSEGV received at time=1741087711 on cpu 3 ***
    Fatal Python error: Segmentation fault

Source: Ray ``src/ray/util/logging.cc`` (TerminateHandler: the type's mangled name), libstdc++ ``vterminate.cc``, abseil
``failure_signal_handler.cc``, CPython ``faulthandler``; OpenBLAS and libgomp for threads that cannot be made.  Who
sends SIGTERM, as Ray does to end a worker, means it.  ``Resource temporarily unavailable`` for a thread means that the
limit of threads (``ulimit -u``, or the pids of the container) is reached: ``cause`` says so.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Block, Fact, Line, Said, Take, fault

NAME: Final = "crash"
NEEDLES: Final = (
    b": Unhandled exception: ",
    b"terminate",
    b"on error: ",
    b" received at time=",
    b"Resource temporarily unavailable",
)

_UNHANDLED = re.compile(r"Unhandled exception: (\S{1,300})\. what\(\): (.*)")
_TERMINATE = re.compile(
    r"terminate called (?:after throwing an instance of '([^']{1,300})'|without an active exception|recursively)"
)
_WHAT = re.compile(r"\s{0,4}what\(\): {1,4}(.*)")
_FATAL = re.compile(r"Fatal Python error: (.{1,300})")
_SIGNAL = re.compile(r"\*\*\* (SIG[A-Z]{2,8}) received at time=")
_THREADS = re.compile(
    r"(?:OpenBLAS blas_thread_init: pthread_create failed|libgomp: Thread creation failed)\b.{0,200}: "
    r"Resource temporarily unavailable|libgomp: Thread creation failed: Resource temporarily unavailable"
)
_LIMIT = re.compile(r"\bthread: Resource temporarily unavailable")
_LENGTH = re.compile(r"[1-9][0-9]{0,2}")


class Terminate:
    """libstdc++ writes on a second line what the exception says."""

    LINES = 4
    BYTES = 1 << 13

    def __init__(self, exception: str | None, rank: int | None) -> None:
        self._found: dict[str, str | float | None] = {"exception": exception, "rank": rank}

    def take(self, line: Line, said: Said | None, /) -> Take:
        """The line ``what():``."""
        what = _WHAT.match(bare(line).text)
        if what is None:
            return Take.ENDED if said is not None else Take.IGNORED
        self._found |= {"text": what[1], "cause": _cause(what[1])}
        return Take.DONE

    def close(self) -> Fact:
        """``exception``, and its ``text``."""
        return fault(NAME, self._found)


def parse(line: Line) -> Fact | Block | None:
    """``exception`` and ``text``, or ``signal``; ``cause`` where threads have run out."""
    if line.shows_samples:
        return None
    text, _, rank, _ = bare(line)
    if unhandled := _UNHANDLED.match(text):
        name, what = unhandled.groups()
        return fault(NAME, {"exception": _demangled(name), "text": what, "cause": _cause(what), "rank": rank})
    if terminate := _TERMINATE.match(text):
        return Terminate(terminate[1], rank)
    if fatal := _FATAL.match(text):
        return fault(NAME, {"text": fatal[1], "rank": rank})
    if signal := _SIGNAL.match(text):
        return fault(NAME, {"signal": signal[1], "rank": rank}, "warning" if signal[1] == "SIGTERM" else "critical")
    if _THREADS.match(text):
        return fault(NAME, {"text": text, "cause": "thread limit", "rank": rank}, "warning")
    return None


def _cause(what: str) -> str | None:
    return "thread limit" if _LIMIT.match(what) else None


def _demangled(name: str) -> str:
    """``N3c1016DistBackendErrorE`` -> ``c10::DistBackendError``: the names of a nested type, without its templates."""
    parts: list[str] = []
    at = 1
    while name.startswith("N") and (length := _LENGTH.match(name, at)):
        begin = length.end()
        at = begin + int(length[0])
        parts.append(name[begin:at])
    return "::".join(parts) if parts else name
