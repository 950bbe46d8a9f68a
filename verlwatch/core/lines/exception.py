r"""An exception that nobody caught, or that somebody printed: its innermost cause, its place, and the task it stopped.

    Error executing job with overrides: ['algorithm.adv_estimator=grpo', ...]
    Traceback (most recent call last):
      File ".../main_ppo.py", line 42, in main
    ray.exceptions.RayTaskError(OutOfMemoryError): ray::TaskRunner.run() (pid=4711, ip=10.0.0.1, actor_id=..., repr=...)
      File ".../ray_trainer.py", line 932, in fit
    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ...

Source: CPython ``traceback.py``; Hydra ``_internal/utils.py`` (``Error executing job with overrides``), with which
verl's entry points end; Ray ``exceptions.py``, and ``_private/worker.py`` for ``Unhandled error (suppress with ...)``.
The driver's end and an exception of a remote task are critical, a traceback by itself may have been handled, and one
that Python ignores (``Exception ignored in: ...``) is no fault, nor one of code that is no file (``<string>``): a
model wrote it, and a reward function or a tool ran it.  Workers that do nothing else are not heard at all.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from verlwatch.core.lines._heads import LABEL, bare
from verlwatch.core.lines._line import Fact, Line, Numbers, Said, Take, fault, known
from verlwatch.core.lines._traceback import HEADER, TRACE_BYTES, TRACE_LINES, Trace, find_task

NAME: Final = "exception"
NEEDLES: Final = (
    b"(most recent call last)",
    b"ray::",
    b"Error executing job with overrides: ",
    b"Exception ignored in",
)

_JOB = "Error executing job with overrides: "
_IGNORED = "Exception ignored in"
_BEFORE_TASK = re.compile(
    rf"{LABEL}(?:Unhandled error \(suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'\): |"
    r"[\w.]{0,80}(?:Error|Exception)\b(?:\(\w{1,100}\))?:? (?:The actor died because of an error raised in its "
    r"creation task, )?)?ray::"
)

How = Literal["job", "task", "printed", "ignored"]


class Raised:
    """The rows of an exception, of whichever it is."""

    LINES = TRACE_LINES
    BYTES = TRACE_BYTES

    def __init__(self, how: How, rank: int | None, shard: str, text: str = "") -> None:
        self._how = how
        self._rank = rank
        self._shard = shard
        self._trace = Trace()
        if text:
            self._trace.take(text)

    def take(self, line: Line, said: Said | None, /) -> Take:
        """Rows of the traceback; what begins something else of its own ends it."""
        if isinstance(said, Numbers):
            return Take.IGNORED
        taken = self._trace.take(bare(line).text, cut=line.cut is True)
        return taken if said is None or isinstance(said, Fact | Raised) else Take.ENDED

    def close(self) -> Fact | None:
        """What `Trace.told` has, ``rank``, SGLang's ``shard``, and ``driver`` where it ends the job.

        None if nothing of it came.
        """
        rows = self._trace.told
        found = {**rows, "rank": self._rank, "shard": self._shard}
        if self._how == "ignored":
            return Fact(NAME, known(found))
        if self._how == "job":
            return fault(NAME, {**found, "driver": 1}, excerpt=_JOB.strip())  # overrides may be secret
        if not rows:
            return None
        if self._how == "printed" and str(rows.get("file", "")).startswith("<"):
            return Fact(NAME, known(found))
        is_end = "task" in rows or self._rank is not None
        return fault(NAME, found, "critical" if is_end else "warning")


def parse(line: Line) -> Raised | None:
    """An exception that begins."""
    if line.shows_samples:
        return None
    text, level, rank, shard = bare(line)
    if text.startswith(_JOB):
        return Raised("job", rank, shard)
    if text.startswith(_IGNORED):
        return Raised("ignored", rank, shard)
    if text.lower().startswith(HEADER):
        return None if level in {"D", "I"} else Raised("printed", rank, shard, text)
    if _BEFORE_TASK.match(text) and find_task(text):
        return Raised("task", rank, shard, text)
    return None
