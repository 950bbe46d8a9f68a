"""One source: the path it is named by, the generation being read, and those that wait behind it.

A source reads its generations strictly one after the other, so that one cursor says where it stands.  `current` is
being read; the queue holds open what comes next, oldest first, and the file that the path names now comes last.
"""

from __future__ import annotations

import errno
import stat
from dataclasses import replace
from pathlib import Path

from verlwatch.core.types import Chunk
from verlwatch.fields import Start
from verlwatch.shell._beside import Beside, was_read
from verlwatch.shell._generation import ChangedError, Generation, Identity, Known, NotRegularError, kind
from verlwatch.shell._source_view import SourceState, SourceView, complaint
from verlwatch.shell.identity import Position
from verlwatch.shell.printable import encodable

CHUNK_BYTES = 128 << 10
DELETED_S = 60.0  # a silent deleted file is held open so long: it keeps its disk space
RENAMED_S = 3600.0  # the same for a file that lives on under another name while the path names none
OLD_S = 60.0  # a file that appears and has not been written to for so long was written before
RETRY_S, RETRY_MAX_S = 0.5, 30.0


class Source:
    """Reads one path by polling.  Not async: the tail calls it in its reader thread.

    What the file holds when it is seen first, with no position known, is dealt with as ``start`` says, unless it is
    ``awaited``: it has appeared while somebody was watching, so it is no history.

    It ``sleeps`` if there is nothing to do until the open file ``fd`` no longer ends at ``end`` or the path no longer
    names what was ``seen`` (device, inode, time of modification).  ``grown_at`` is when it was last seen growing,
    ``changed_at`` that or its last modification.
    """

    def __init__(
        self,
        path: str,
        run: str,
        known: Known,
        position: Position | None = None,
        *,
        start: Start = "beginning",
        awaited: bool = False,
    ) -> None:
        self.path = path
        self._path = Path(path)
        self.name = encodable(path)
        self.run = run
        self.due_at, self.turn = 0.0, 0
        self.behind, self.absent, self.retry_s = False, False, 0.0
        self.sleeps, self.fd, self.end, self.seen = False, -1, 0, (-1, -1, -1)
        self.grown_at = self.changed_at = float("-inf")
        self.last_read_at: float | None = None
        self._known = known
        self._beside = Beside(path, encodable(path), known)
        self._position = position
        self._finished = position.finished if position else ()
        self._start = start
        self._awaited = awaited
        self._history_to, self._skipped = 0, False
        self._current: Generation | None = None
        self._queue: list[Generation] = []
        self._at_path: Identity | None = None
        self._searched = self._was_at_end = False
        self._trouble: tuple[SourceState, str] | None = None
        self._settle()

    # ------------------------------------------------------------------------------------------------ asked by the tail
    @property
    def waiting(self) -> bool:
        """Whether nothing is open."""
        return self._current is None

    @property
    def position(self) -> Position | None:
        """Where reading stands; None before anything was opened."""
        return self._position if self._current is None else self._current.position(self._finished)

    def view(self) -> SourceView:
        """How the source stood after the last poll, for people; the same object until the next poll."""
        view = self._view
        return view if view.run == self.run else replace(view, run=self.run)

    def close(self) -> None:
        """Closes every file; the position stays."""
        self._position = self.position
        for generation in [self._current, *self._queue]:
            if generation is not None:
                self._known.close(generation)
        self._current, self._queue = None, []
        self._settle()

    def poll(self, now: float, budget: int) -> list[Chunk]:
        """Steps 2 to 6 of the cycle (see tail.py): at most about ``budget`` bytes, in chunks of up to 128 KiB."""
        chunks: list[Chunk] = []
        self.behind = False
        try:
            self._look(now)
        except OSError as error:
            if self._current is None:
                self.close()
                self._searched = False
            self._known.close_all(self.name, but=[self._current, *self._queue])
            self._complain(error)
        try:
            while self._current is not None and budget > 0:
                chunk = self._read(self._current, min(CHUNK_BYTES, budget), now)
                if chunk is not None:
                    chunks.append(chunk)
                    budget -= len(chunk.data)
                elif not self._move_on(now):
                    self._was_at_end = True
                    break
            self.behind = budget <= 0
        except OSError as error:
            self.close()
            self._known.close_all(self.name)
            self._searched = False
            self._complain(error)
        self._settle()
        return chunks

    def _settle(self) -> None:
        """What a look must find for a poll to be needless, and what people are told until then."""
        current = self._current
        self.fd, self.end, self.sleeps = -1, 0, False
        if current is not None:
            self.fd, self.end = current.fd, max(current.size, current.offset)
            restless = self.behind or self.absent or self.retry_s or self._queue
            self.sleeps = not restless and current.offset == self.end
        state: SourceState = "waiting" if current is None else "reading" if self.behind else "live"
        state, error = self._trouble or (state, None)
        position = self._position
        self._view = SourceView(
            self.name,
            self.run,
            state,
            state not in {"waiting", "unreadable", "not a regular file"},
            error,
            current.offset if current else position.offset if position else 0,
            self.end if current else None,
            current.number if current else position.generation if position else 0,
            last_read_at=self.last_read_at,
            changed_at=self.changed_at,
        )

    # ------------------------------------------------------------------------------------------------ reading
    def _read(self, current: Generation, size: int, now: float) -> Chunk | None:
        if self._queue:
            current.look()
        try:
            data = current.read(size)
        except ChangedError:
            self._written_anew(current, now)
            return self._read(self._current, size, now) if self._current else None
        if not data and not self._skipped:
            return None
        self._skipped = False  # that it was is told by a chunk without bytes, so that the position is committed
        current.read_at = self.last_read_at = now
        if self._was_at_end or self._awaited:
            self.grown_at = self.changed_at = now
        at, token = current.offset - len(data), current.position(self._finished).token()
        return Chunk(self.name, current.number, at, data, token, self.run, 0 if current.number else self._history_to)

    def _move_on(self, now: float) -> bool:
        """At the end of the current generation: whether the next one is begun."""
        current = self._current
        if current is None or not self._queue:
            return False
        for generation in self._queue:
            generation.look()
        if not any(generation.size for generation in self._queue) or not current.silent(now):
            return False
        position = self._position = current.position(self._finished)
        self._current = None
        self._known.close(current)
        self._finish(position)
        self._line_up(position, self._base(), now)
        self._begin(position.generation + 1)
        return True

    def _base(self) -> Generation | None:
        """Takes out of the queue what the path names; what it named before has no claim to be the last."""
        return self._queue.pop() if self._queue and self._queue[-1].identity == self._at_path else None

    def _written_anew(self, current: Generation, now: float) -> None:
        """The current file was truncated: its old rest may live on in a copy, its new content is a new generation."""
        position = self._position = current.position(self._finished)
        current.restart()
        self._current = None
        self._queue.insert(0, current)
        found = self._follow(position, self._base(), now)
        if found is not None:
            found.copy = True

    # ------------------------------------------------------------------------------------------------ the path
    def _look(self, now: float) -> None:
        """Stats the path and opens what it names if that is not open yet."""
        try:
            status = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            self._trouble, self.retry_s, self.absent = None, 0.0, True
            self._at_path = None
            self._absent(now)
            return
        self.absent = False
        self._at_path = identity = (status.st_dev, status.st_ino)
        last = self._queue[-1] if self._queue else self._current
        if last is not None and last.identity == identity:
            last.seen(status)
        elif not stat.S_ISREG(status.st_mode):
            raise NotRegularError(errno.EINVAL, kind(status.st_mode), self.path)
        elif (holder := self._known.holder(identity)) not in {None, self.name}:
            self._trouble = ("same file", f"{self.name} is the file that is read as {holder}")
            return
        elif self._current is None or identity != self._current.identity:
            self._arrive(identity, now)
        self.seen = (*identity, status.st_mtime_ns)
        self._trouble, self.retry_s = None, 0.0

    def _arrive(self, identity: Identity, now: float) -> None:
        """The path names a file that is not the last one."""
        base = next((held for held in self._queue if held.identity == identity), None)
        if base is not None:
            self._queue.remove(base)
        else:
            base = self._known.open(self.path, self.name, now)
        self.changed_at = max(self.changed_at, base.changed_ns / 1e9)
        current = self._current
        if current is not None:
            self._supersede(current, base, now)
        elif self._position is not None:
            self._follow(self._position, base, now)
        else:
            self._queue = [base]
            self._begin(0)
            self._leave_history(base, now)

    def _leave_history(self, first: Generation, now: float) -> None:
        """Deals with what was there before anybody watched; a file that is moved in brings history, too."""
        if self._awaited and now - first.changed_ns / 1e9 < OLD_S:
            return
        if self._start == "end":
            first.skip_to_end()
            self._skipped = True
        elif self._start == "last-run":
            self._history_to = first.size

    def _supersede(self, current: Generation, base: Generation, now: float) -> None:
        """Another file has taken the place of the current one."""
        position = current.position(self._finished)
        if current.offset and not position.matches(current.fd):
            self._queue.append(base)
            self._written_anew(current, now)
        elif not self._continued_elsewhere(base, now) or self._current is not base:
            self._line_up(position, base, now)

    def _continued_elsewhere(self, base: Generation, now: float) -> bool:
        """Whether the current file is gone but another begins with all of it (rsync, editors); that is read on."""
        current = self._current
        if current is None or self._queue:
            return False
        current.look()
        position = current.position(self._finished)
        found = None if current.linked else self._beside.find(position, base, now)
        if found is None:
            return False
        found.resume(position)
        found.number = current.number
        self._known.close(current)
        self._current = found
        return True

    def _absent(self, now: float) -> None:
        """The path names nothing."""
        self._awaited = True
        current = self._current
        if current is None:
            if self._position is not None and not self._searched:
                self._searched = True
                self._follow(self._position, None, now)
        elif not self._queue:
            current.look()
            if now - current.read_at > (RENAMED_S if current.linked else DELETED_S):
                self.close()
                self._searched = True

    # ------------------------------------------------------------------------------------------------ order of files
    def _follow(self, position: Position, base: Generation | None, now: float) -> Generation | None:
        """Takes up a position in the file that holds it now, if one does; then what came after it, ``base`` last."""
        found = self._beside.find(position, base, now)
        if found is None:
            self._finish(position)
            self._line_up(position, base, now)
            self._begin(position.generation + 1)
            return None
        found.resume(position)
        found.number = position.generation
        self._current = found
        if found is not base:
            self._line_up(position, base, now)
        return found

    def _line_up(self, since: Position, base: Generation | None, now: float) -> None:
        """Orders what is to be read after ``since``: files already held, rotated files not yet read, ``base`` last."""
        queue = list(self._queue)
        place = len(queue)  # in front of all files that are newer than the one looked at
        for path, identity in reversed(self._beside.written_since(since, self._current)):
            if identity in (held := [generation.identity for generation in queue]):
                place = min(place, held.index(identity))
                continue
            other = self._known.open_beside(path, self.name, now)
            if other is not None:
                queue.insert(place, other)
        self._queue = [*queue, *([base] if base else [])]
        for generation in queue:
            others = [other for other in (self._current, *self._queue) if other not in {None, generation}]
            if was_read(generation, since.with_finished()) or any(
                generation.copied_from(other) for other in others if other
            ):
                self._queue.remove(generation)
                self._known.close(generation)

    def _begin(self, number: int) -> None:
        """Makes the first of the queue the current generation."""
        if not self._queue:
            return
        self._current = current = self._queue.pop(0)
        current.number = number
        before = self._known.finished(current) if not current.offset else None
        if before is not None:
            current.resume(before)

    def _finish(self, position: Position) -> None:
        self._finished = position.with_finished()
        self._known.remember(self._finished[-1:])

    def _complain(self, error: OSError) -> None:
        """Says what is wrong; tried again later and later."""
        if isinstance(error, NotRegularError):
            self._trouble = ("not a regular file", f"{self.name} is {error.strerror}; only regular files are read")
            self.retry_s = 2 * RETRY_S
            return
        self._trouble = ("unreadable", complaint(self.name, error))
        self.retry_s = min(RETRY_MAX_S, 2 * self.retry_s or RETRY_S)
