"""How everything stands, gathered from those who know: the engine, the readers, the judge, the store.

What has to be looked up on disk, or watched over time, is looked up by `refresh`, so that answering a request never
waits.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import NoneType
from typing import get_args

import structlog

from verlwatch import __version__
from verlwatch.core.engine import Engine, Run
from verlwatch.core.incidents import silence_state
from verlwatch.core.types import ClosedAs, Incident, Outcome, Transition
from verlwatch.shell._incident_view import closed_incident, open_incident
from verlwatch.shell._lag import Lag
from verlwatch.shell._line import Lines
from verlwatch.shell._run_view import run_status
from verlwatch.shell.fleet.wire import MOST_SOURCES, SourceReport
from verlwatch.shell.judge import TURN_S, Judge
from verlwatch.shell.observers import Observer
from verlwatch.shell.observers.gpus import Gpus
from verlwatch.shell.run_names import may_be_of
from verlwatch.shell.store import Store
from verlwatch.shell.tail import SourceView, Tail
from verlwatch.status import (
    AgentStatus,
    ConfigStatus,
    HeartbeatStatus,
    IncidentCount,
    Role,
    SamplingStatus,
    SilenceStatus,
    SourceStatus,
    Status,
    StoreStatus,
)

log = structlog.get_logger(__name__)

CLOSED_SHOWN = 20
STALLED_AFTER_S = 30 * TURN_S
"""The judging loop turns every second; half a minute without a turn is not alive."""


class Overview:
    """Builds a Status when asked.

    ``deliver``, ``config`` and ``runs`` (names in the configuration, None: all; other runs are remembered but not
    shown) are replaced at a reload.  ``agents`` and ``strangers`` tell of a hub's.
    """

    deliver: Lines
    runs: frozenset[str] | None = None
    agents: Callable[[], tuple[AgentStatus, ...]] = tuple
    strangers: Callable[[], int] = int
    heartbeat: Callable[[], HeartbeatStatus | None] = NoneType
    role: Role = "standalone"
    observers: Sequence[Observer] = ()

    def __init__(self, judge: Judge, tail: Tail, store: Store, config: ConfigStatus, now: Callable[[], float]) -> None:
        self.config = config
        self.started_at = now()
        self._judge, self._tail, self._store, self._now = judge, tail, store, now
        self._opened: Counter[tuple[str, str]] = Counter()
        self._opened_by: dict[str, tuple[str, float]] = {  # incident -> the rule that opened it, and when
            incident.id: (incident.diagnoses[0].rule, incident.opened_at) for incident in self.open_incidents()
        }
        self._ended: Counter[tuple[str, str, ClosedAs]] = Counter()
        self._closed: deque[tuple[float, Transition]] = deque(maxlen=CLOSED_SHOWN)
        """When each of the last was opened, and how it closed."""
        self._lags: dict[str, Lag] = {}
        self._at_rest: dict[str, SourceView] = {}
        """What of the last look needs no other while it is the same: everything is judged, and told in the log."""
        self._said: dict[str, tuple[str, str | None, int]] = {}  # source -> state, error and generation as last logged

    # ------------------------------------------------------------------------------------------------ what happens
    def recall(self, changes: Iterable[tuple[float, Transition]]) -> None:
        """Takes back what an earlier process has closed; each change with its time, in order."""
        opened: dict[str, float] = {}
        for at, transition in changes:
            opened.setdefault(transition.incident, at)
            if transition.event == "closed":
                self._closed.append((opened[transition.incident], transition))

    def committed(self, outcome: Outcome) -> None:
        """Counts what a commit held."""
        for transition in outcome.transitions:
            if transition.event == "opened":
                self._opened[transition.run, transition.rule] += 1
                begun = {incident.id: incident.opened_at for incident in self.open_incidents()}
                self._opened_by[transition.incident] = (transition.rule, begun.get(transition.incident, self._now()))
            elif transition.event == "closed" and transition.closed_as is not None:
                # an incident may end under another rule than it began with; it counts where it was opened
                rule, opened_at = self._opened_by.pop(transition.incident, (transition.rule, self._now()))
                self._ended[transition.run, rule, transition.closed_as] += 1
                self._closed.append((opened_at, transition))

    def refresh(self) -> None:
        """Looks up how far each source is behind, and logs what changed for a source."""
        now, at_rest, self._at_rest = self._now(), self._at_rest, {}
        views = {view.source: view for view in self._tail.sources()}
        for source, view in views.items():
            if at_rest.get(source) is not view:
                judged, size = self._judged(view), view.size or 0
                self._lags.setdefault(source, Lag()).see(view.generation, size, judged, now)
                self._log(view)
                if judged < size:
                    continue
            self._at_rest[source] = view
        for gone in self._lags.keys() - views.keys():
            del self._lags[gone], self._said[gone]

    def _log(self, view: SourceView) -> None:
        """A log that cannot be read must not be told by the status page alone."""
        now = ("reading" if view.readable else view.state, view.error, view.generation)
        if now != self._said.get(view.source):
            say = log.info if view.readable else log.warning
            more = {"error": view.error} if view.error else {}
            say("source", source=view.source, run=view.run, state=view.state, generation=view.generation, **more)
        self._said[view.source] = now

    @property
    def is_behind(self) -> bool:
        """Whether something was there at the last look that had not been judged."""
        return len(self._at_rest) < len(self._lags)

    # ------------------------------------------------------------------------------------------------ answers
    def stalled(self) -> str | None:
        """What has stopped turning; None while alive."""
        silent = self._now() - self._judge.turned_at
        return f"judging has not turned for {silent:.0f} s" if silent > STALLED_AFTER_S else None

    def status(self) -> Status:
        """How everything stands now."""
        now = self._now()
        views = list(self._tail.sources())
        not_ready = tuple(self._not_ready(views))
        incidents = [open_incident(incident) for incident in self.open_incidents()]
        return Status(
            version=__version__,
            started_at=self.started_at,
            now=now,
            ready=not not_ready,
            not_ready=not_ready,
            notices=tuple(self._notices()),
            runs=tuple(run_status(run, now) for run in self._runs()),
            incidents=(
                *incidents,
                *(closed_incident(t, at) for at, t in reversed(self._closed) if self._shows(t.run)),
            ),
            incident_counts=self._counts(),
            silences=self._silences(),
            sources=tuple(self._source(view, now) for view in views),
            receivers=self.deliver.health(),
            config=self.config,
            store=StoreStatus(ok=self._store_error is None, error=self._store_error, bytes=self._store.size()),
            agents=self.agents(),
            strangers=self.strangers(),
            role=self.role,
            heartbeat=self.heartbeat(),
            sampling=self._sampling(),
        )

    def _sampling(self) -> SamplingStatus:
        gpus = next((one for one in self.observers if isinstance(one, Gpus)), None)
        return SamplingStatus(late=gpus.late, missed=gpus.missed, refused=gpus.refused) if gpus else SamplingStatus()

    @property
    def _store_error(self) -> str | None:
        return self._store.gone or self._judge.store_error

    def reports(self) -> list[SourceReport]:
        """How each file stands, for a hub."""
        now = self._now()
        sources = [self._source(view, now) for view in self._tail.sources()]
        return [
            SourceReport(
                source=one.source,
                run=one.run,
                state=one.state,
                readable=one.readable,
                error=one.error,
                lag_bytes=one.lag_bytes,
                lag_s=one.lag_s,
            )
            for one in sources[:MOST_SOURCES]
        ]

    def _runs(self) -> Iterator[Run]:
        runs = self._judge.engine.runs.values()
        return (run for run in runs if self._shows(run.name))

    def _shows(self, run: str) -> bool:
        return self.runs is None or run in self.runs or any(may_be_of(name, run) for name in self.runs)

    def open_incidents(self) -> Iterator[Incident]:
        """All that are open, of the runs that are shown."""
        for run in self._runs():
            yield from run.open_incidents()
        if isinstance(self._judge.engine, Engine):
            yield from self._judge.engine.fleet.incidents

    def _silences(self) -> tuple[SilenceStatus, ...]:
        engine = self._judge.engine
        found = engine.silences if isinstance(engine, Engine) else ()
        return tuple(SilenceStatus(**silence_state(silence)) for silence in found)

    def _judged(self, view: SourceView) -> int:
        """Up to which byte of the generation being read everything is judged."""
        generation, offset = self._judge.positions.get(view.source, (view.generation, 0))
        return offset if generation == view.generation else 0

    def _not_ready(self, views: Sequence[SourceView]) -> list[str]:
        reasons = [f"source {view.source}: {view.error or view.state}" for view in views if not view.readable]
        if not views and self.role != "hub":  # a hub may have no files of its own
            reasons.append("sources: no file matches the configured logs yet")
        if self._store_error is not None:
            reasons.append(f"store: {self._store_error}")
        if not self.config.reload_ok:
            reasons.append(f"config: {self.config.error}")
        reasons += self.deliver.stuck()
        for run in self._runs():
            reasons += [
                f"run {run.name}: {part} is no longer judged: {why}" for part, why in run.judged.quarantined.items()
            ]
        return reasons

    def _notices(self) -> Iterator[str]:
        yield from self._tail.notices
        yield from self._store.notices
        for observer in self.observers:
            yield from observer.notices()
        engine = self._judge.engine
        if engine.strange_states:
            yield f"{engine.strange_states} stored states could not be taken up; what they belong to starts warm"
        if engine.refused_runs:
            limit, left_out = engine.settings.max_runs, engine.refused_runs
            yield f"more than {limit} runs: further ones are not judged ({left_out} pieces of their logs left out)"
        for run in self._runs():
            for part, why in run.left_out.items():
                yield f"run {run.name}: {part} could not be taken and was left out: {why}"
            if run.astray:
                yield (
                    f"run {run.name}: many of its last steps contradict those before them, so part is not judged; "
                    "if its logs hold different trainings, configure a run for each"
                )
            if run.is_counted:
                yield f"run {run.name}: its log numbers no steps; they are counted from where reading began"
            if run.implausible:
                yield f"run {run.name}: {run.implausible} step lines left out: no training goes from step to step so"

    def _counts(self) -> tuple[IncidentCount, ...]:
        return tuple(
            IncidentCount(
                run=run,
                rule=rule,
                opened=self._opened[run, rule],
                closed=tuple(
                    (how, self._ended[run, rule, how]) for how in get_args(ClosedAs) if self._ended[run, rule, how]
                ),
            )
            for run, rule in sorted({*self._opened, *((run, rule) for run, rule, _ in self._ended)})
            if self._shows(run)
        )

    def _source(self, view: SourceView, now: float) -> SourceStatus:
        reader = self._judge.engine.readers.get(view.source)
        judged = self._judged(view)
        behind = max(0, (view.size or 0) - judged)
        lag = self._lags.get(view.source)
        counts = reader.counts if reader is not None else None
        return SourceStatus(
            source=view.source,
            run=view.run,
            state=view.state,
            readable=view.readable,
            error=view.error,
            position=judged,
            size=view.size,
            lag_bytes=behind,
            lag_s=lag.seconds(judged, now) if lag and behind else 0.0,
            generation=view.generation,
            lines=counts.lines if counts else 0,
            cut_lines=counts.cut_lines if counts else 0,
            broken_lines=counts.broken if counts else 0,
            undecodable_lines=counts.undecodable if counts else 0,
            nul_bytes=counts.nul if counts else 0,
            last_read_at=view.last_read_at,
        )
