"""Every source that is read: bytes in, extracts and cursors out.

What an engine judges and what an agent ships begins here, with the same cursors; neither knows of the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import NamedTuple

from verlwatch.core.lines import ACTIVITY_S, KINDS, LONG_BYTES, ROOM_BYTES, Kind, Reader, activity, too_much
from verlwatch.core.types import Chunk, Cursor, Extract, Record, Samples


class Trainer(NamedTuple):
    """The process that trains, as a log names it.

    ``name`` is Ray's (``TaskRunner``), ``ip`` that of Ray's prefix, ``host`` that of a `host` event; empty where the
    line does not say so.  ``at`` is when the line came, None for one of the past.
    """

    name: str
    pid: int
    ip: str = ""
    host: str = ""
    at: float | None = None


class Sources:
    """One Reader per source, and where reading it resumes.  The methods give extracts, then the cursors behind them."""

    def __init__(self, line_limit: int) -> None:
        self.readers: dict[str, Reader] = {}
        self.cursors: dict[str, Cursor] = {}
        self._runs: dict[str, str] = {}
        self._line_limit = line_limit
        self._kinds: tuple[Kind, ...] = KINDS
        self._active_at: dict[str, float] = {}
        """When each source was last seen to grow, as far as that was told."""
        self.trainers: dict[str, Trainer] = {}
        self.checkpoints: dict[str, str] = {}
        """By run: who trains and where checkpoints go, as its logs last said."""

    def tune(self, line_limit: int) -> None:
        """Reads lines of up to so many bytes."""
        self._line_limit = line_limit
        for reader in self.readers.values():
            reader.line_limit = line_limit

    def read_also(self, own: Sequence[Kind]) -> None:
        """Reads lines of these kinds, too, behind those that are built in and in place of earlier ones."""
        self._kinds = (*KINDS, *own)
        for reader in self.readers.values():
            reader.kinds = self._kinds

    def feed(self, chunk: Chunk, now: float) -> tuple[list[Extract], list[Cursor]]:
        """Takes bytes that continue a source; a new generation begins at its first byte."""
        source = chunk.source
        self._runs[source] = chunk.run or PurePath(source).stem or source
        extracts: list[Extract] = []
        reader = self.readers.get(source)
        if reader is None or reader.generation != chunk.generation:
            if reader is not None:
                extracts += self._extracts(source, reader.finish(now))
            reader = self._begin(chunk)
        extracts += self._extracts(source, reader.feed(chunk.data, now))
        for extract in extracts:
            self._note(extract, now)
        extracts += self._activity(chunk, now, told=bool(extracts))
        cursors = [self._advance(reader, chunk.token)]
        if reader.held > LONG_BYTES:
            for crowded in too_much(self.readers.values(), max(ROOM_BYTES, self._line_limit)):
                extracts += self._extracts(crowded.source, crowded.let_go(now))
                cursors.append(self._advance(crowded))
        return extracts, cursors

    def _note(self, extract: Extract, now: float) -> None:
        """Keeps what an observer on this host needs to know, by the last line that says so."""
        run, at = extract.run, None if extract.history else now
        for record in extract.records:
            name, pid, ip = record.origin.writer
            if isinstance(record, Samples):
                if pid:
                    self.trainers[run] = Trainer(name, pid, ip, "", at)
                continue
            said = record.attributes
            if record.name == "host":
                self.trainers[run] = Trainer(name or "TaskRunner", int(said["pid"]), ip, str(said["host"]), at)
            elif record.name == "checkpoint":
                self.checkpoints[run] = str(PurePath(str(said["folder"])).parent)
            elif record.name == "config" and (folder := said.get("trainer.default_local_dir")):
                self.checkpoints.setdefault(run, str(folder))

    def _activity(self, chunk: Chunk, now: float, *, told: bool) -> Iterator[Extract]:
        """That the source grows, now and then, where its lines do not tell so themselves."""
        source, end = chunk.source, chunk.offset + len(chunk.data)
        cursor = self.cursors[source]
        if end <= max(cursor.history_to, cursor.applied_to):
            return
        before, self._active_at[source] = self._active_at.get(source), now
        if told:
            return
        if before is not None and 0.0 <= now - before < ACTIVITY_S:
            self._active_at[source] = before
            return
        event = activity(source, chunk.generation, end, chunk.data)
        yield Extract(source, self._runs[source], (event,))

    def tick(self, now: float) -> tuple[list[Extract], list[Cursor]]:
        """Lets time pass: closes constructs that nothing continued."""
        extracts: list[Extract] = []
        cursors = []
        for source, reader in self.readers.items():
            due = reader.deadline()
            if due is not None and due <= now:
                extracts += self._extracts(source, reader.tick(now))
                cursors.append(self._advance(reader))
        return extracts, cursors

    def deadline(self) -> float | None:
        """When `tick` is wanted; None when only bytes can change anything."""
        return min((due for reader in self.readers.values() if (due := reader.deadline()) is not None), default=None)

    def finish(self, source: str, now: float) -> list[Extract]:
        """The source is read to its very end and will not grow."""
        reader = self.readers.pop(source, None)
        return [] if reader is None else list(self._extracts(source, reader.finish(now)))

    def let_go(self, followed: Collection[str]) -> None:
        """Drops the readers of sources that are not followed any more, where nothing waits for more bytes."""
        for source, reader in list(self.readers.items()):
            if source not in followed and reader.reread_from == reader.offset:
                del self.readers[source]
                self._runs.pop(source, None)
                self._active_at.pop(source, None)

    def restore(self, cursors: Iterable[Cursor]) -> None:
        """Takes up where the last commit left off."""
        self.cursors = {cursor.source: cursor for cursor in cursors}

    def _begin(self, chunk: Chunk) -> Reader:
        source = chunk.source
        cursor = self.cursors.get(source)
        if cursor is None or cursor.generation != chunk.generation:
            at, history_to = chunk.offset, chunk.history_to
            cursor = Cursor(source, chunk.generation, at, at, token=chunk.token, history_to=history_to)
            self.cursors[source] = cursor
        reader = self.readers[source] = Reader(
            source,
            chunk.generation,
            chunk.offset,
            cursor.mark if cursor.reread_from == chunk.offset else b"",
            line_limit=self._line_limit,
            kinds=self._kinds,
            applied_to=cursor.applied_to,
            context=cursor.context,
        )
        return reader

    def _extracts(self, source: str, records: Iterable[Record]) -> Iterator[Extract]:
        """What is new of ``records``: history, and what came while somebody watched, apart.

        A line that lost its end is settled by time, behind all that was there: it is history, too.
        """
        cursor = self.cursors[source]
        history: list[Record] = []
        news: list[Record] = []
        for record in records:
            _, generation, end, *_ = record.origin
            if generation == cursor.generation and end <= cursor.applied_to:
                continue
            (history if end <= cursor.history_to + 1 else news).append(record)
        for part, is_history in ((history, True), (news, False)):
            if part:
                yield Extract(source, self._runs.get(source, source), tuple(part), is_history)

    def _advance(self, reader: Reader, token: str | None = None) -> Cursor:
        old = self.cursors[reader.source]
        cursor = self.cursors[reader.source] = replace(
            old,
            reread_from=reader.reread_from,
            applied_to=max(old.applied_to, reader.offset),
            mark=reader.mark,
            context=reader.context,
            token=old.token if token is None else token,
        )
        return cursor


class Reads:
    """What an engine is that reads ``_sources``, whatever it makes of them."""

    _sources: Sources

    def let_go(self, followed: Collection[str]) -> None:
        """Forgets what it needs for reading sources other than these; where to go on with them stays known."""
        self._sources.let_go(followed)

    def read_also(self, own: Sequence[Kind]) -> None:
        """Reads lines of the user's own, too, from the next bytes on; those given before are not read any more."""
        self._sources.read_also(own)

    @property
    def readers(self) -> Mapping[str, Reader]:
        """The readers of what is being read, by source."""
        return self._sources.readers

    @property
    def trainers(self) -> Mapping[str, Trainer]:
        """The process that trains, by run, as the logs that are read here name it."""
        return self._sources.trainers

    @property
    def checkpoints(self) -> Mapping[str, str]:
        """The directory of checkpoints, by run, of those logs that name one."""
        return self._sources.checkpoints

    @property
    def cursors(self) -> tuple[Cursor, ...]:
        """Where reading resumes, of every source ever read."""
        return tuple(self._sources.cursors.values())
