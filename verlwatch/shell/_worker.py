"""One thread for calls that may block, and what wakes it while it waits.

A daemon thread, unlike an executor's: a call that never returns does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

_T = TypeVar("_T")


class Worker:
    """Runs one call after the other in a thread of its own, from its making until `end`."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        Thread(target=self._run, name=name, daemon=True).start()

    async def call(self, work: Callable[[], _T]) -> _T:
        """What ``work`` returns or raises.  Cancelled while ``work`` runs it waits no longer; the thread does."""
        outcome: Future[_T] = Future()
        self._calls.put((work, outcome))
        return await asyncio.wrap_future(outcome)

    def end(self) -> None:
        """Ends the thread after the calls that were made; waits for nothing."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            work, outcome = call
            if outcome.set_running_or_notify_cancel():
                try:
                    outcome.set_result(work())
                except BaseException as error:  # noqa: BLE001 - it is raised again where the call was made
                    outcome.set_exception(error)
            del call, work, outcome  # nothing is held while the thread waits


class Bell:
    """Wakes the one thread that waits for it; half as dear as threading.Event, which makes a lock for each wait."""

    def __init__(self) -> None:
        self._silent = Lock()
        self._silent.acquire()

    def ring(self) -> None:
        """Ends the wait under way, or the next one; in any thread."""
        with contextlib.suppress(RuntimeError):  # it is ringing already
            self._silent.release()

    def wait(self, seconds: float) -> None:
        """Returns when it rings, or after so long; then it is silent."""
        self._silent.acquire(timeout=max(0.0, seconds))
