"""Read growing files, each byte once, whatever is done to them.

The poll cycle is told as numbered prose, with start, shutdown and known limits, in docs/ARCHITECTURE.md ("Poll cycle of
the tailer"); the steps named in this package are its steps.  Everything that touches a file system happens in one
reader thread, so that a server that does not answer never blocks the event loop.

Positions are not kept here: they travel with the chunks, as offset and token, and come back as cursors at the next
start.
"""

from __future__ import annotations

import glob
import resource
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from verlwatch.core.types import Chunk, Cursor
from verlwatch.fields import Start
from verlwatch.shell._discover import Found, discover
from verlwatch.shell._folders import Folders
from verlwatch.shell._generation import LINGER_S, Known
from verlwatch.shell._glob import DIRECTORIES, PATHS
from verlwatch.shell._ray import Sessions
from verlwatch.shell._rhythm import NEVER, Rhythm
from verlwatch.shell._source import Source
from verlwatch.shell._source_view import SourceState, SourceView
from verlwatch.shell._worker import Bell, Worker
from verlwatch.shell.clock import Clock
from verlwatch.shell.identity import Position, position_of
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.printable import encodable
from verlwatch.shell.wake import Wake

__all__ = ["Following", "Inbox", "SourceState", "SourceView", "Tail"]

CYCLE_BYTES = 1 << 20
DISCOVER_S = 1.0
DISCOVER_LEAST_S = 0.1  # a storm of hints causes no more than ten searches a second
DISCOVER_SHARE = 20  # searching takes at most a twentieth of the time
SEARCH_S = 30.0  # without any sign of a new name
STALLED_S = 5.0
PAUSE_S = 60.0  # cycles are never so far apart
SEARCH_MOST_S = 30.0  # a search that took longer was one during which the clock was set, or as bad as that
RESERVED = 96  # open files that others of this process need

_SEARCH = ""  # in place of a source's name


@dataclass(frozen=True, slots=True)
class Following:
    """What is followed, and how.

    ``patterns`` are absolute paths and globs by run, ``starts`` say by run what to do with what a file holds that was
    there before.  ``poll_s`` is the interval for files of a live run.  Without ``watching`` files are found by looking
    for them alone.  With ``hydra`` the configuration that lies beside a log is read, too.
    """

    patterns: Mapping[str, tuple[str, ...]]
    starts: Mapping[str, Start] = field(default_factory=dict)
    poll_s: float = 0.1
    max_files: int = 1024
    watching: bool = True
    hydra: bool = True


class Tail:
    """Follows files and fills the inbox; ``cursors`` are where an earlier process got to."""

    def __init__(self, following: Following, inbox: Inbox, cursors: Iterable[Cursor], *, clock: Clock) -> None:
        self._following = following
        self._searched_for = following
        self._inbox = inbox
        self._clock = clock
        self._known = Known()
        self._positions: dict[str, Position] = {cursor.source: position_of(cursor) for cursor in cursors}
        for position in self._positions.values():
            self._known.remember(position.with_finished())
        self._sources: dict[str, Source] = {}
        self._rhythm = Rhythm(following.poll_s)
        self._unread = set(self._positions)  # where an earlier process stopped, until it is known to be the end
        self._sessions = Sessions()
        self._found = Found()
        self._folders = Folders()
        self._by_names = False
        self._searched_at = NEVER
        self._discover_at = NEVER
        self._took = 0.0
        self._hints = self._heard = 0
        self._now = NEVER
        self._busy: tuple[str, float] | None = None  # the source that is looked at, and since when
        self._stopping = False
        self._bell = Bell()
        self._wake: Wake | None = None

    # ------------------------------------------------------------------------------------------------ life
    async def run(self) -> None:
        """Polls until `stop`; then the inbox is closed.  Cancelled it ends at once, whatever a file system does."""
        _raise_descriptor_limit()
        thread = Worker("tail")
        self._wake = Wake(self.hint)
        try:
            while not self._stopping:
                for chunk in await thread.call(self._next_chunks):
                    await self._inbox.put(chunk)
            await thread.call(self.close)
        finally:
            self._stopping = True
            self._bell.ring()
            self._inbox.close()
            thread.end()

    def stop(self) -> None:
        """Ends `run` after the current cycle."""
        self._stopping = True
        self._bell.ring()

    def reload(self, following: Following) -> None:
        """Follows these from the next cycle on; a file named by both goes on where it is."""
        self._following = following
        self.hint()

    def hint(self) -> None:
        """Looks for new files, and at what the paths name, in the next cycle; called in any thread."""
        self._hints += 1
        self._bell.ring()

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
        return min(self._following.max_files, _descriptors_to_spare())

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
        busy, looking_at = self._busy, self._rhythm.looking_at
        if busy is None or self._clock.now() - busy[1] <= STALLED_S:
            return None
        return looking_at.name if looking_at is not None else busy[0]

    # ------------------------------------------------------------------------------------------------ the cycle
    async def cycle(self, now: float) -> float:
        """One cycle at ``now``, in this thread; returns when the next is due: ``now`` while anything is behind."""
        for chunk in self._cycle(now):
            await self._inbox.put(chunk)
        return self._next_at()

    def _next_chunks(self) -> list[Chunk]:
        """Cycles until something is read; empty only at the end.  Cycles that find nothing do not wake the loop."""
        while not self._stopping:
            if chunks := self._cycle(self._clock.now()):
                return chunks
            self._bell.wait(self._next_at() - self._clock.now())
        return []

    def _cycle(self, now: float) -> list[Chunk]:
        if now < self._now:  # the clock was set back
            self._searched_at = min(self._searched_at, now)
            self._discover_at = now
            self._rhythm.set_back(now)
        if self._now > NEVER and not 0.0 <= now - self._now <= PAUSE_S:  # set, or the host slept: nobody listened
            self._known.shift(now - self._now)
        self._now = now
        if now >= self._search_at():
            self._discover(now)
        return self._poll(now)

    def _search_at(self) -> float:
        if self._hints == self._heard:
            return self._discover_at
        return min(self._discover_at, self._searched_at + max(DISCOVER_LEAST_S, DISCOVER_SHARE * self._took))

    def _next_at(self) -> float:
        return min(self._search_at(), self._rhythm.next_at())

    def _discover(self, now: float) -> None:
        """Step 1."""
        self._busy = (_SEARCH, now)
        self._discover_at = now + DISCOVER_S
        hinted, self._heard = self._hints != self._heard, self._hints
        if not hinted and self._nothing_new(now):
            self._busy = None
            return
        following = self._following  # which another thread may exchange
        reloaded, self._searched_for = following is not self._searched_for, following
        self._rhythm.poll_s = following.poll_s
        awaited = not reloaded and self._searched_at > NEVER
        known = {*self._sources, *self._positions}
        found = discover(
            following.patterns,
            known,
            self._limit,
            sessions=self._sessions,
            unfinished=self._unread,
            hydra=following.hydra,
        )
        for path, source in list(self._sources.items()):
            ended = (path in found.ended or found.left_out) and _at_rest(source, now)
            if path not in found.runs and (reloaded or source.waiting or ended):
                source.close()
                if source.position is not None:
                    self._positions[source.name] = source.position
                self._rhythm.drop(self._sources.pop(path))
        new = [path for path in found.runs if path not in self._sources]
        for path in sorted(new, key=lambda path: encodable(path) not in self._positions):
            position = self._positions.pop(encodable(path), None)
            run = found.runs[path]
            start = "beginning" if path in found.beside else following.starts.get(found.entries[path], "beginning")
            self._sources[path] = Source(path, run, self._known, position, start=start, awaited=awaited)
            self._rhythm.wake(self._sources[path], now)
        for path, run in found.runs.items():
            source = self._sources[path]
            source.run = run
            if source.waiting and not source.retry_s:
                self._rhythm.wake(source, now)
        self._unread = {path for path in self._unread & found.runs.keys() if not _at_rest(self._sources[path], now)}
        self._found = found
        if self._wake is not None:
            self._wake.watch(found.folders if following.watching else ())
            self._rhythm.told = following.watching and not self._wake.notices
        self._rhythm.look_at_paths(now)
        self._folders.searched(found.folders, now)
        paths = (path for paths in following.patterns.values() for path in paths)
        self._by_names = all(path in found.runs or _finds_files(path) for path in paths)
        self._busy = None
        self._took = min(max(0.0, self._clock.now() - now), SEARCH_MOST_S)
        self._searched_at = now
        self._discover_at = now + max(DISCOVER_S, DISCOVER_SHARE * self._took)

    def _nothing_new(self, now: float) -> bool:
        """Whether what the patterns name shows in directories that have not changed."""
        return self._by_names and now < self._searched_at + SEARCH_S and not self._folders.changed

    def _poll(self, now: float) -> list[Chunk]:
        """Steps 2 to 6."""
        chunks: list[Chunk] = []
        left = CYCLE_BYTES
        self._busy = (_SEARCH, now)
        for source in self._rhythm.due(now):
            self._busy = (source.name, now)
            read = source.poll(now, left)
            self._rhythm.polled(source, now)
            chunks += read
            left -= sum(len(chunk.data) for chunk in read)
            if left <= 0:
                break
        self._busy = None
        return chunks


def _finds_files(pattern: str) -> bool:
    """Whether all that it finds is in one directory: not those with wildcards for directories, nor Ray sessions."""
    folder, _, name = pattern.rpartition("/")
    return glob.has_magic(name) and not glob.has_magic(folder)


def _at_rest(source: Source, now: float) -> bool:
    """Whether everything is read and nobody seems to write any longer."""
    silent_since = source.changed_at if source.last_read_at is None else source.last_read_at
    return not (source.waiting or source.behind) and now - silent_since >= LINGER_S


def _raise_descriptor_limit() -> None:
    """As many open files as the host allows without asking: each followed file is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _descriptors_to_spare() -> int:
    """How many files may be followed so that the store, the receivers and the status page still find a descriptor."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, soft - RESERVED) if soft != resource.RLIM_INFINITY else sys.maxsize
