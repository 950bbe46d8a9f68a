"""One thread that asks for samples, and never more than one call at a time in it.

A call into a driver may never return.  Its thread is then left alone (a daemon thread keeps no process from ending);
whoever goes on does so with another feed.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Generic, NamedTuple, TypeVar

from verlwatch.shell.gpu._card import SourceError

T = TypeVar("T")


class Answer(NamedTuple, Generic[T]):
    """What came of asking at the instant ``at``, and when it came; ``error`` says why there is no ``value``."""

    at: float
    answered_at: float
    value: T | None
    error: str = ""


class Feed(Generic[T]):
    """Asks ``work``; ``answered`` is called in the thread when there is something to `take`."""

    def __init__(
        self,
        name: str,
        work: Callable[[], T],
        close: Callable[[], None],
        now: Callable[[], float],
        answered: Callable[[], None],
    ) -> None:
        self._work, self._close, self._now, self._answered = work, close, now, answered
        self._instants: SimpleQueue[float | None] = SimpleQueue()
        self._answers: SimpleQueue[Answer[T]] = SimpleQueue()
        self._asked_at: float | None = None
        Thread(target=self._run, name=name, daemon=True).start()

    @property
    def is_asked(self) -> bool:
        """Whether a call is under way."""
        return self._asked_at is not None

    def ask(self, at: float) -> bool:
        """Asks for the sample of an instant; False while the call before has not come back."""
        if self._asked_at is not None:
            return False
        self._asked_at = self._now()
        self._instants.put(at)
        return True

    def take(self) -> Answer[T] | None:
        """The answer, if it has come."""
        if self._answers.empty():
            return None
        self._asked_at = None
        return self._answers.get()

    def hangs(self, limit_s: float) -> bool:
        """Whether the call under way has been for longer than that."""
        return self._asked_at is not None and self._answers.empty() and self._now() - self._asked_at >= limit_s

    def end(self) -> None:
        """Ends the thread after the call under way; waits for nothing."""
        self._instants.put(None)

    def _run(self) -> None:
        while (at := self._instants.get()) is not None:
            try:
                value: T | None = self._work()
                error = ""
            except SourceError as failure:
                value, error = None, str(failure)
            except Exception as failure:  # noqa: BLE001 - what a driver answers must not end the watching of all else
                value, error = None, f"unexpected: {failure!r}"
            self._answers.put(Answer(at, self._now(), value, error))
            self._answered()
        self._close()
