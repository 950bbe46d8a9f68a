"""The core's one door: bytes and `now` in, an Outcome out.

Same bytes and same `now` give the same outcomes, live, in replay and in tests.  The engine holds one Reader per source
and one Run per run; what it returns must be committed before the next call's outcome is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from verlwatch.core._attempts import MAX_ATTEMPTS, RECALL, Attempts
from verlwatch.core._run import STATE_VERSION, Run
from verlwatch.core._sources import Reads, Sources, Trainer
from verlwatch.core._telling import Told
from verlwatch.core.cards import by_instant, row_of
from verlwatch.core.fleet import STATE_VERSION as AGENT_STATE_VERSION
from verlwatch.core.fleet import AgentReport, Fleet
from verlwatch.core.incidents import Silence, Silences, silence_from, silence_state
from verlwatch.core.life import Sight
from verlwatch.core.series import Watch
from verlwatch.core.settings import Settings
from verlwatch.core.types import (
    Chunk,
    Cursor,
    Extract,
    GpuRow,
    Notification,
    Outcome,
    Record,
    Samples,
    Snapshot,
    State,
    StepRow,
    Transition,
)

SILENCE_STATE_VERSION = 1
_VERSIONS = {
    "run": STATE_VERSION,
    "series": Watch.STATE_VERSION,
    "agent": AGENT_STATE_VERSION,
    "silence": SILENCE_STATE_VERSION,
}
MOST_TROUBLES = 32
"""So many parts of a run that raise are told apart."""
SILENT_S = 86_400.0
"""A run of which nothing was heard for so long may be forgotten where there is no room for another."""

__all__ = ["MAX_ATTEMPTS", "RECALL", "Attempts", "Engine", "Run", "Told", "Trainer", "merged"]


class Engine(Reads):
    """Reads, places and judges what sources say.  Synchronous, and not to be shared between threads."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.runs: dict[str, Run] = {}
        self.refused_runs = 0
        self.strange_states = 0
        self.silences = Silences()
        self._sources = Sources(self.settings.line_limit)
        self.fleet = Fleet(self.settings, self.silences)
        self.is_timed = True
        """Whether ``now`` is when things arrive; where it is not, nothing is late."""

    # ------------------------------------------------------------------------------------------------ feeding
    def feed(self, chunk: Chunk, now: float) -> Outcome:
        """Takes bytes that continue a source; a new generation begins at its first byte."""
        extracts, cursors = self._sources.feed(chunk, now)
        return self.accept(extracts, now, cursors)

    def tick(self, now: float) -> Outcome:
        """Lets time pass: closes constructs that nothing continued, ends silences, tells what was held back."""
        extracts, cursors = self._sources.tick(now)
        read = self.accept(extracts, now, cursors)
        agents = self._of_agents(lambda told: self.fleet.tick(now, told))
        return merged((read, agents, self._look(now)))

    def deadline(self) -> float | None:
        """When `tick` is wanted at the latest; for what is held back any time within a few seconds will do."""
        return min((at for at in (self._sources.deadline(), self.fleet.deadline()) if at is not None), default=None)

    def due(self) -> float | None:
        """When `tick` is wanted because something of a run may be late."""
        return min((run.due for run in self.runs.values() if run.due is not None), default=None)

    def see(self, sights: Iterable[Sight], now: float) -> None:
        """Takes how the sources stand, all of them, as their readers see them; those of agents are known here."""
        by_run: dict[str, list[Sight]] = {}
        for sight in (*sights, *self.fleet.sights(now)):
            by_run.setdefault(sight.run, []).append(sight)
        for name, run in self.runs.items():
            run.see(by_run.get(name, ()), now)

    def slept(self, seconds: float) -> None:
        """Nobody has watched for so long, as when the host was suspended: that time makes nothing late."""
        for run in self.runs.values():
            run.life.slept(seconds)

    def hear(self, report: AgentReport, now: float) -> Outcome:
        """Takes what an agent says of itself."""
        return self._of_agents(lambda told: self.fleet.hear(report, now, told))

    def expect(self, agents: Collection[str], now: float) -> Outcome:
        """From now on these agents are expected to be heard, and no others."""
        return self._of_agents(lambda told: self.fleet.expect(agents, now, told))

    def silence(self, silence: Silence, now: float) -> Outcome:  # noqa: ARG002 - every entry takes the time
        """Takes up a silence."""
        self.silences.add(silence)
        return Outcome(states=(_kept(silence),))

    def end_silence(self, key: str, now: float) -> Outcome | None:
        """Ends a silence, and tells what it held back; None if there is none of that id."""
        silence = self.silences.remove(key)
        return None if silence is None else merged((Outcome(states=(_kept(silence, forget=True),)), self._look(now)))

    def accept_incident(self, key: str, now: float) -> Outcome | None:
        """A person wants to hear no more of an open incident unless it grows; None if none has that id."""
        told = Told()
        for run in self.runs.values():
            if run.accept(key, now, told):
                return Outcome((), (), tuple(run.states()), tuple(told.transitions), tuple(told.notifications))
        return None

    def finish(self, source: str, now: float) -> Outcome:
        """The source is read to its very end and will not grow (replay)."""
        read = self.accept(self._sources.finish(source, now), now)
        if self._sources.readers:
            return read
        told = Told()
        for run in self.runs.values():
            run.live(now, told, final=True)
        states = tuple(state for run in self.runs.values() for state in run.states())
        ended = Outcome((), (), states, tuple(told.transitions), tuple(told.notifications))
        return merged((read, ended))

    def accept(self, extracts: Iterable[Extract], now: float, cursors: Iterable[Cursor] = ()) -> Outcome:
        """Takes what was read, here or elsewhere, in its order; ``cursors`` go with it into the same commit."""
        told, touched = Told(), dict[str, Run]()
        forgotten: list[State] = []
        for extract in extracts:
            run = self.runs.get(extract.run) or self._begin(extract.run, now, told, forgotten)
            if run is not None:
                touched[run.name] = run
                run.heed(extract, now)
                told.history = extract.history
                self.take(run, extract.records, now, told)
        told.history = False
        for run in touched.values() if self.is_timed else ():
            run.live(now, told)
        states = [state for name in sorted(touched) for state in touched[name].states()]
        return Outcome(
            tuple(cursors),
            tuple(told.steps),
            (*forgotten, *states),
            tuple(told.transitions),
            tuple(told.notifications),
            gpus=by_instant(told.gpus),
        )

    # ------------------------------------------------------------------------------------------------ restart
    def restore(self, snapshot: Snapshot) -> None:
        """Takes up where the store's last commit left off.  State of another version is left out: it starts warm."""
        self._sources.restore(snapshot.cursors)
        known = [state for state in snapshot.states if state.data is not None and _is_known(state)]
        self.strange_states = len(snapshot.states) - len(known)
        for state in known:
            with self._left_out_if_strange():
                if state.kind == "agent":
                    self.fleet.restore(state.key, state.data or {})
                elif state.kind == "silence":
                    self.silences.add(silence_from(state.data or {}))
                elif state.kind == "run":
                    self.runs[state.key] = Run.from_state(state.key, self.settings, state.data or {}, self.silences)
        rows: dict[str, list[StepRow]] = {}
        for row in snapshot.steps:
            rows.setdefault(row.run, []).append(row)
        for name, run in self.runs.items():
            run.recall(rows.get(name, ()))
        for state in known:
            name, _, metric = state.key.partition("\0")
            if state.kind == "series" and name in self.runs:
                with self._left_out_if_strange():
                    self.runs[name].judged.restore_series(metric, state.data or {})

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
        self.fleet.settings = settings
        self._sources.tune(settings.line_limit)
        for run in self.runs.values():
            run.tune(settings)

    # ------------------------------------------------------------------------------------------------ inside
    def _of_agents(self, change: Callable[[Told], None]) -> Outcome:
        told = Told()
        change(told)
        states = tuple(self.fleet.states())
        return Outcome(states=states, transitions=tuple(told.transitions), notifications=tuple(told.notifications))

    def _look(self, now: float) -> Outcome:
        """What may be told, or is over, because time has passed."""
        told = Told()
        over = self.silences.expire(now, {run.name: run.finished for run in self.runs.values()})
        states = [_kept(silence, forget=True) for silence in over]
        for run in self.runs.values():
            if run.look(now, told):
                states += run.states()
        return Outcome((), (), tuple(states), tuple(told.transitions), tuple(told.notifications))

    def take(self, run: Run, records: Iterable[Record], now: float, told: Told) -> None:
        """Lets a run have its records, one after the other."""
        for record in records:
            try:
                if isinstance(record, Samples):
                    run.take(record, now, told)
                else:
                    run.hear(record, now, told)
                    told.gpus += row_of(run.name, record, run.hardware.cards.cards, now)
            except Exception as error:  # noqa: BLE001 - no record may end the watcher: it would be read again for ever
                origin = record.origin
                part, known = f"a {origin.kind} record", run.left_out
                part = part if part in known or len(known) < MOST_TROUBLES else "further records"
                known[part] = f"{error!r}, last at byte {origin.end}"[:300]

    def _begin(self, name: str, now: float, told: Told, forgotten: list[State]) -> Run | None:
        """A new run; where there are too many it takes the place of the one that has been silent longest, if any is."""
        if len(self.runs) >= self.settings.max_runs:
            oldest = min(self.runs.values(), key=lambda run: run.heard_at)
            if now - oldest.heard_at < SILENT_S:
                self.refused_runs += 1
                return None
            forgotten += oldest.expire(now, told)
            del self.runs[oldest.name]
        run = self.runs[name] = Run(name, self.settings, self.silences)
        run.life.is_timed = run.hardware.cards.is_timed = self.is_timed
        return run


def _is_known(state: State) -> bool:
    return state.version == _VERSIONS.get(state.kind)


def _kept(silence: Silence, *, forget: bool = False) -> State:
    return State("silence", silence.id, SILENCE_STATE_VERSION, None if forget else silence_state(silence))


def merged(outcomes: Iterable[Outcome]) -> Outcome:
    """Outcomes of one commit as one: later cursors and states replace earlier ones, everything else adds up."""
    cursors: dict[str, Cursor] = {}
    states: dict[tuple[str, str], State] = {}
    steps: list[StepRow] = []
    transitions: list[Transition] = []
    notifications: list[Notification] = []
    extracts: list[Extract] = []
    gpus: list[GpuRow] = []
    for outcome in outcomes:
        cursors.update((cursor.source, cursor) for cursor in outcome.cursors)
        states.update(((state.kind, state.key), state) for state in outcome.states)
        steps += outcome.steps
        transitions += outcome.transitions
        notifications += outcome.notifications
        extracts += outcome.extracts
        gpus += outcome.gpus
    return Outcome(
        tuple(cursors.values()),
        tuple(steps),
        tuple(states.values()),
        tuple(transitions),
        tuple(notifications),
        tuple(extracts),
        tuple(gpus),
    )
