"""The GPUs of this host once, for a person who asks: whatever a driver does, an answer comes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from threading import Event

from verlwatch.shell.gpu._card import GpuSource, SourceError
from verlwatch.shell.gpu._choice import Choice
from verlwatch.shell.gpu._feed import Feed
from verlwatch.shell.gpu._processes import CardProcesses
from verlwatch.shell.gpu._seen import Seen, asked

LIMIT_S = 30.0


def sampled(kinds: Sequence[type[GpuSource]], limit_s: float = LIMIT_S, proc: str = "/proc") -> Seen:
    """The cards now, by the first of the sources that gives any.

    Raises:
        SourceError: none does, or a call does not come back within ``limit_s``.
    """
    choice, processes, answered = Choice(kinds, time.time), CardProcesses(time.time, proc), Event()
    feed = Feed("gpus", partial(asked, choice, processes), choice.close, time.time, answered.set)
    feed.ask(time.time())
    is_answered = answered.wait(limit_s)
    feed.end()
    answer = feed.take()
    if not is_answered or answer is None:
        raise SourceError(f"a call to {choice.asking[0] or 'a source'} has not come back for {limit_s:g} s")
    if answer.value is None:
        raise SourceError(answer.error)
    return answer.value
