"""Read growing files, each byte once, whatever is done to them.

The poll cycle is told as numbered prose, with start, shutdown and known limits, in docs/ARCHITECTURE.md ("Poll cycle of
the tailer"); the steps named in this package are its steps.  Everything that touches a file system happens in one
reader thread, so that a server that does not answer never blocks the event loop.

Positions are not kept here: they travel with the chunks, as offset and token, and come back as cursors at the next
start.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from verlwatch.core.types import Chunk, Cursor
from verlwatch.fields import Start
from verlwatch.shell._discover import Found, discover
from verlwatch.shell._generation import Known
from verlwatch.shell._glob import DIRECTORIES, PATHS
from verlwatch.shell._ray import Sessions
from verlwatch.shell._source import LINGER_S, Source
from verlwatch.shell._source_view import SourceState, SourceView
from verlwatch.shell._worker import Worker
from verlwatch.shell.clock import Clock
from verlwatch.shell.identity import Position, position_of
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.printable import encodable
from verlwatch.shell.wake import Wake

__all__ = ["Inbox", "SourceState", "SourceView", "Tail"]

CYCLE_BYTES = 1 << 20
DISCOVER_S = 1.0
DISCOVER_LEAST_S = 0.1  # a storm of hints causes no more than ten searches a second
DISCOVER_SHARE = 20  # searching takes at most a twentieth of the time
WAITING_S = 0.5
IDLE_S = 1.0
LIVE_S = 6 * 3600.0  # a step may take two hours
FAST_FILES = 200  # beyond so many fast files the interval grows in proportion
STALLED_S = 5.0
RESERVED = 96  # open files that others of this process need

_SEARCH = ""  # in place of a source's name
_NEVER = float("-inf")
_T = TypeVar("_T")


class Tail:
    """Follows the files that ``patterns`` (run name -> absolute paths and globs) name, and fills the inbox.

    ``starts`` (by run) says what to do with what a file holds that was there before.  ``cursors`` are where an earlier
    process got to.  ``poll_s`` is the interval for files of a live run.  Without ``watching`` files are found by
    looking for them alone.
    """

    def __init__(
        self,
        patterns: Mapping[str, tuple[str, ...]],
        inbox: Inbox,
        cursors: Iterable[Cursor],
        *,
        starts: Mapping[str, Start] | None = None,
        poll_s: float = 0.1,
        max_files: int = 1024,
        watching: bool = True,
        clock: Clock,
    ) -> None:
        self._patterns = dict(patterns)
        self._starts = dict(starts or {})
        self._inbox = inbox
        self._poll_s = poll_s
        self._max_files = max_files
        self._watching = watching
        self._clock = clock
        self._known = Known()
        self._positions: dict[str, Position] = {cursor.source: position_of(cursor) for cursor in cursors}
        for position in self._positions.values():
            self._known.remember(position.with_finished())
        self._sources: dict[str, Source] = {}
        self._unread = set(self._positions)  # where an earlier process stopped, until it is known to be the end
        self._sessions = Sessions()
        self._found = Found()
        self._grown: dict[str, float] = {}
        self._searched_at = _NEVER
        self._discover_at = _NEVER
        self._reloaded = False
        self._turn = 0
        self._now = _NEVER
        self._busy: tuple[str, float] | None = None  # the source that is looked at, and since when
        self._stopping = False
        self._woken = asyncio.Event()
        self._thread: Worker | None = None
        self._wake: Wake | None = None

    # ------------------------------------------------------------------------------------------------ life
    async def run(self) -> None:
        """Polls until `stop`; then the inbox is closed.  Cancelled it ends at once, whatever a file system does."""
        loop = asyncio.get_running_loop()
        _raise_descriptor_limit()
        self._thread = Worker("tail")

        def hint() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for hints any longer
                loop.call_soon_threadsafe(self.hint)

        self._wake = Wake(hint)
        try:
            while not self._stopping:
                self._woken.clear()
                due_at = await self.cycle(self._clock.now())
                if not self._stopping:
                    await self._clock.wait(self._woken, due_at)
            await self._off_loop(self.close)
        finally:
            self._inbox.close()
            self._thread.end()

    def stop(self) -> None:
        """Ends `run` after the current cycle."""
        self._stopping = True
        self._woken.set()

    def reload(
        self,
        patterns: Mapping[str, tuple[str, ...]],
        *,
        starts: Mapping[str, Start] | None = None,
        poll_s: float,
        max_files: int,
        watching: bool = True,
    ) -> None:
        """Follows these patterns from the next cycle on; a file named by both goes on where it is."""
        self._patterns = dict(patterns)
        self._starts = dict(starts or {})
        self._poll_s = poll_s
        self._max_files = max_files
        self._watching = watching
        self._reloaded = True
        self.hint()

    def hint(self) -> None:
        """Looks for new files in the next cycle; called in the loop's thread."""
        self._discover_at = self._searched_at + DISCOVER_LEAST_S
        self._woken.set()

    def close(self) -> None:
        """Closes every file and ends the watching; only after the last cycle."""
        for source in self._sources.values():
            source.close()
        if self._wake is not None:
            self._wake.stop()

    # ------------------------------------------------------------------------------------------------ for people
    def sources(self) -> list[SourceView]:
        """How each source stands; patterns that match nothing are waiting sources too."""
        views = [source.view() for source in list(self._sources.values())]
        stalled = self._stalled()
        why = f"{stalled}: its file system does not answer; the reading of all files waits for it"
        views = [
            replace(view, state="stalled", readable=False, error=why) if view.source == stalled else view
            for view in views
        ]
        for pattern, (run, error) in self._found.unmatched.items():
            views.append(
                SourceView(encodable(pattern), run, "unreadable" if error else "waiting", readable=False, error=error)
            )
        return views

    @property
    def _limit(self) -> int:
        """Files that are followed at most."""
        return min(self._max_files, _descriptors_to_spare())

    @property
    def notices(self) -> tuple[str, ...]:
        """What an operator should know of the reading as a whole."""
        notices: list[str] = []
        if self._wake is not None:
            notices += self._wake.notices
        if self._stalled() == _SEARCH:
            notices.append("a file system does not answer the search for files; the reading of all files waits for it")
        notices += [
            f"{encodable(pattern)} is too wide: its search ended at {DIRECTORIES} directories or {PATHS} paths and may "
            "have missed logs; begin it with the folder that holds them"
            for pattern in self._found.cut_short
        ]
        if self._found.left_out:
            notices.append(
                f"{self._found.left_out} files beyond the limit of {self._limit} are not read; narrow the patterns, or "
                "raise reading.max_files and the limit of open files (LimitNOFILE= in the unit, ulimit -n in a shell)"
            )
        return tuple(notices)

    def _stalled(self) -> str | None:
        busy = self._busy
        return busy[0] if busy is not None and self._clock.now() - busy[1] > STALLED_S else None

    # ------------------------------------------------------------------------------------------------ the cycle
    async def cycle(self, now: float) -> float:
        """One cycle at ``now``; returns when the next is due (``now`` itself while anything is behind)."""
        if now < self._now:  # the clock was set back
            self._discover_at = now
            for source in self._sources.values():
                source.due_at = now
        self._now = now
        if now >= self._discover_at:
            await self._off_loop(lambda: self._discover(now))
        if any(source.due_at <= now for source in self._sources.values()):
            for chunk in await self._off_loop(lambda: self._poll(now)):
                await self._inbox.put(chunk)
        return min([self._discover_at, *(source.due_at for source in self._sources.values())])

    async def _off_loop(self, work: Callable[[], _T]) -> _T:
        if self._thread is None:
            return work()
        return await self._thread.call(work)

    def _discover(self, now: float) -> None:
        """Step 1."""
        self._busy = (_SEARCH, now)
        reloaded, self._reloaded = self._reloaded, False
        awaited = not reloaded and self._searched_at > _NEVER
        known = {*self._sources, *self._positions}
        found = discover(self._patterns, known, self._limit, sessions=self._sessions, unfinished=self._unread)
        for path, source in list(self._sources.items()):
            ended = path in found.ended and _at_rest(source, now)
            if path not in found.runs and (reloaded or source.waiting or ended):
                source.close()
                if source.position is not None:
                    self._positions[source.name] = source.position
                del self._sources[path]
        new = [path for path in found.runs if path not in self._sources]
        for path in sorted(new, key=lambda path: encodable(path) not in self._positions):
            position = self._positions.pop(encodable(path), None)
            run = found.runs[path]
            start = self._starts.get(found.entries[path], "beginning")
            self._sources[path] = Source(path, run, self._known, position, start=start, awaited=awaited)
        for path, run in found.runs.items():
            source = self._sources[path]
            source.run = run
            if source.waiting and not source.retry_s:
                source.due_at = now
        self._unread = {path for path in self._unread & found.runs.keys() if not _at_rest(self._sources[path], now)}
        self._found = found
        if self._wake is not None:
            self._wake.watch(found.folders if self._watching else ())
        self._busy = None
        took = max(0.0, self._clock.now() - now)
        self._searched_at = now
        self._discover_at = now + max(DISCOVER_S, DISCOVER_SHARE * took)

    def _poll(self, now: float) -> list[Chunk]:
        """Steps 2 to 6: those that are not catching up first, then whoever has waited longest."""
        chunks: list[Chunk] = []
        left = CYCLE_BYTES
        fast = sum(self._is_live(source, now) for source in self._sources.values())
        poll_s = self._poll_s * max(1.0, fast / FAST_FILES)
        due = [source for source in self._sources.values() if source.due_at <= now]
        for source in sorted(due, key=lambda source: (source.behind, source.due_at, source.turn)):
            self._busy = (source.name, now)
            read = source.poll(now, left)
            self._turn += 1
            source.turn = self._turn
            self._grown[source.run] = max(self._grown.get(source.run, _NEVER), source.grown_at)
            source.due_at = now + self._interval(source, now, poll_s)
            chunks += read
            left -= sum(len(chunk.data) for chunk in read)
            if left <= 0:
                break
        self._busy = None
        return chunks

    def _interval(self, source: Source, now: float, poll_s: float) -> float:
        if source.behind:
            return 0.0
        if source.waiting:
            return source.retry_s or WAITING_S
        if source.retry_s:
            return IDLE_S
        return poll_s if self._is_live(source, now) else max(poll_s, IDLE_S)

    def _is_live(self, source: Source, now: float) -> bool:
        return now - self._grown.get(source.run, _NEVER) < LIVE_S


def _at_rest(source: Source, now: float) -> bool:
    """Whether everything is read and nobody seems to write any longer."""
    return not (source.waiting or source.behind) and now - source.grown_at >= LINGER_S


def _raise_descriptor_limit() -> None:
    """As many open files as the host allows without asking: each followed file is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _descriptors_to_spare() -> int:
    """How many files may be followed so that the store, the receivers and the status page still find a descriptor."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, soft - RESERVED) if soft != resource.RLIM_INFINITY else sys.maxsize
