"""The core's one door: bytes and `now` in, an Outcome out.

Same bytes and same `now` give the same outcomes, live, in replay and in tests.  The engine holds one Reader per source
and one Run per run; what it returns must be committed before the next call's outcome is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath

from verlwatch.core._attempts import RECALL
from verlwatch.core._run import STATE_VERSION, Run, Told
from verlwatch.core.lines import LONG_BYTES, ROOM_BYTES, Reader, too_much
from verlwatch.core.series import Watch
from verlwatch.core.types import (
    Chunk,
    Cursor,
    Notification,
    Outcome,
    Record,
    Samples,
    Settings,
    Snapshot,
    State,
    StepRow,
    Transition,
)

__all__ = ["RECALL", "Engine", "merged"]


class Engine:
    """Reads, places and judges what sources say.  Synchronous, and not to be shared between threads."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.runs: dict[str, Run] = {}
        self.readers: dict[str, Reader] = {}
        self.refused_runs = 0
        self.strange_states = 0
        self._cursors: dict[str, Cursor] = {}
        self._names: dict[str, str] = {}  # source -> run

    # ------------------------------------------------------------------------------------------------ feeding
    def feed(self, chunk: Chunk, now: float) -> Outcome:
        """Takes bytes that continue a source; a new generation begins at its first byte."""
        told, touched = Told(), set[str]()
        self._names[chunk.source] = chunk.run or PurePath(chunk.source).stem or chunk.source
        reader = self._reader(chunk, now, told, touched)
        self._accept(chunk.source, reader.feed(chunk.data, now), now, told, touched)
        cursors = [self._advance(chunk.source, reader, chunk.token)]
        if reader.held > LONG_BYTES:
            cursors += self._relieved(now, told, touched)
        return self._collect(tuple(cursors), told, touched)

    def tick(self, now: float) -> Outcome:
        """Lets time pass: closes constructs that nothing continued."""
        told, touched = Told(), set[str]()
        cursors = []
        for source, reader in self.readers.items():
            wanted = reader.deadline()
            if wanted is not None and wanted <= now:
                self._accept(source, reader.tick(now), now, told, touched)
                cursors.append(self._advance(source, reader, self._cursors[source].token))
        return self._collect(tuple(cursors), told, touched)

    def deadline(self) -> float | None:
        """When `tick` is wanted; None when only bytes can change anything."""
        return min((d for r in self.readers.values() if (d := r.deadline()) is not None), default=None)

    def finish(self, source: str, now: float) -> Outcome:
        """The source is read to its very end and will not grow (replay)."""
        reader = self.readers.pop(source, None)
        told, touched = Told(), set[str]()
        if reader is not None:
            self._accept(source, reader.finish(now), now, told, touched)
        return self._collect((), told, touched)

    def accept(self, source: str, run: str, records: Iterable[Record], now: float) -> Outcome:
        """Takes records of ``run`` that were read elsewhere, in their order."""
        told, touched = Told(), set[str]()
        self._names[source] = run
        self._accept(source, records, now, told, touched)
        return self._collect((), told, touched)

    # ------------------------------------------------------------------------------------------------ restart
    def restore(self, snapshot: Snapshot) -> None:
        """Takes up where the store's last commit left off.  State of an unknown version is left out: it starts warm."""
        self._cursors = {cursor.source: cursor for cursor in snapshot.cursors}
        for state in snapshot.states:
            if state.kind == "run" and state.version == STATE_VERSION and state.data is not None:
                with self._left_out_if_strange():
                    self.runs[state.key] = Run.from_state(state.key, self.settings, state.data)
        rows: dict[str, list[StepRow]] = {}
        for row in snapshot.steps:
            rows.setdefault(row.run, []).append(row)
        for name, run in self.runs.items():
            run.recall(rows.get(name, ()))
        for state in snapshot.states:
            name, _, metric = state.key.partition("\0")
            usable = state.kind == "series" and state.version == Watch.STATE_VERSION and state.data is not None
            if usable and name in self.runs and state.data is not None:
                with self._left_out_if_strange():
                    self.runs[name].judged.restore_series(metric, state.data)

    @contextmanager
    def _left_out_if_strange(self) -> Iterator[None]:
        """State that does not have the form its version promises is left out like one of another version."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            self.strange_states += 1

    def reconfigure(self, settings: Settings) -> None:
        """Swaps what a user may tune; baselines and incidents stay."""
        self.settings = settings
        for reader in self.readers.values():
            reader.line_limit = settings.line_limit
        for run in self.runs.values():
            run.tune(settings)

    @property
    def cursors(self) -> tuple[Cursor, ...]:
        """Where reading resumes, of every source ever read."""
        return tuple(self._cursors.values())

    # ------------------------------------------------------------------------------------------------ inside
    def _reader(self, chunk: Chunk, now: float, told: Told, touched: set[str]) -> Reader:
        reader = self.readers.get(chunk.source)
        cursor = self._cursors.get(chunk.source)
        if reader is not None and reader.generation == chunk.generation:
            return reader
        if reader is not None:
            self._accept(chunk.source, reader.finish(now), now, told, touched)
        if cursor is None or cursor.generation != chunk.generation:
            cursor = Cursor(
                chunk.source,
                chunk.generation,
                chunk.offset,
                chunk.offset,
                token=chunk.token,
                history_to=chunk.history_to,
            )
            self._cursors[chunk.source] = cursor
        reader = Reader(
            chunk.source,
            chunk.generation,
            chunk.offset,
            cursor.mark if cursor.reread_from == chunk.offset else b"",
            line_limit=self.settings.line_limit,
            applied_to=cursor.applied_to,
        )
        self.readers[chunk.source] = reader
        return reader

    def _accept(self, source: str, records: Iterable[Record], now: float, told: Told, touched: set[str]) -> None:
        run = self._run(source)
        if run is None:
            return
        cursor = self._cursors.get(source)
        for record in records:
            origin = record.origin
            if cursor and origin.generation == cursor.generation and origin.end <= cursor.applied_to:
                continue
            touched.add(run.name)
            told.history = cursor is not None and origin.end <= cursor.history_to
            try:
                if isinstance(record, Samples):
                    run.take(record, now, told)
                else:
                    run.hear(record, now, told)
            except Exception as error:  # noqa: BLE001 - no record may end the watcher: it would be read again for ever
                run.judged.quarantined[f"a {origin.kind} record"] = f"{error!r}, last at byte {origin.end}"[:300]

    def _run(self, source: str) -> Run | None:
        """The run that a source belongs to."""
        name = self._names.get(source, source)
        run = self.runs.get(name)
        if run is None:
            if len(self.runs) >= self.settings.max_runs:
                self.refused_runs += 1
                return None
            run = self.runs[name] = Run(name, self.settings)
        return run

    def _relieved(self, now: float, told: Told, touched: set[str]) -> Iterator[Cursor]:
        """Lets half lines go where those of all sources take too much memory."""
        for reader in too_much(self.readers.values(), max(ROOM_BYTES, self.settings.line_limit)):
            self._accept(reader.source, reader.let_go(now), now, told, touched)
            yield self._advance(reader.source, reader, self._cursors[reader.source].token)

    def _advance(self, source: str, reader: Reader, token: str) -> Cursor:
        old = self._cursors[source]
        cursor = replace(
            old,
            reread_from=reader.reread_from,
            applied_to=max(old.applied_to, reader.offset),
            mark=reader.mark,
            token=token,
        )
        self._cursors[source] = cursor
        return cursor

    def _collect(self, cursors: tuple[Cursor, ...], told: Told, touched: set[str]) -> Outcome:
        states = tuple(state for name in sorted(touched) for state in self.runs[name].states())
        return Outcome(cursors, tuple(told.steps), states, tuple(told.transitions), tuple(told.notifications))


def merged(outcomes: Iterable[Outcome]) -> Outcome:
    """Outcomes of one commit as one: later cursors and states replace earlier ones, everything else adds up."""
    cursors: dict[str, Cursor] = {}
    states: dict[tuple[str, str], State] = {}
    steps: list[StepRow] = []
    transitions: list[Transition] = []
    notifications: list[Notification] = []
    for outcome in outcomes:
        cursors.update((cursor.source, cursor) for cursor in outcome.cursors)
        states.update(((state.kind, state.key), state) for state in outcome.states)
        steps += outcome.steps
        transitions += outcome.transitions
        notifications += outcome.notifications
    return Outcome(
        tuple(cursors.values()), tuple(steps), tuple(states.values()), tuple(transitions), tuple(notifications)
    )
