"""One run: its attempts, its judged series, its open incidents."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from verlwatch.core import steps
from verlwatch.core._attempts import Attempts
from verlwatch.core.incidents import Change, Ending, Moment, OpenIncidents, compose, reason
from verlwatch.core.phases import JUDGED, STEP, THROUGHPUT, phase
from verlwatch.core.rules import RULES, Rule, View
from verlwatch.core.series import Watch
from verlwatch.core.types import (
    ChangePoint,
    ClosedAs,
    Diagnosis,
    Event,
    EventName,
    Incident,
    Notification,
    Reason,
    Samples,
    SeriesKey,
    Settings,
    State,
    StepRow,
    Transition,
    Workload,
)

RECENT = 24
SETTLING = 3
SLIGHT = 2.0
"""A phase that takes less than the least share of a step that is told, by this factor, is not judged yet."""
STRAYS, STRAYS_OF = 15, 40
MONTH_S = 30 * 86400.0
STATE_VERSION = 2
_THROUGHPUT_KEY = "perf/throughput"
_EVENT: dict[Reason, EventName] = {"opened": "opened", "escalated": "updated", "updated": "updated"}
_ENDING: dict[str, ClosedAs] = {"returned": "resolved", "settled": "accepted"}


@dataclass(slots=True)
class Told:
    """What judging added: rows, transitions and notifications for the outcome."""

    steps: list[StepRow] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    notifications: list[Notification] = field(default_factory=list)


class Run:
    """Everything known of one run, fed with its records in order."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self.attempts = Attempts()
        self.incidents = OpenIncidents()
        self.series: dict[str, Watch] = {}
        self.judged: dict[str, tuple[int, int]] = {}  # metric -> (attempt, step) of its last judged value
        self.recent: dict[str, deque[float]] = {}
        self.waiting: dict[str, deque[tuple[int, int, float, float | None, float | None]]] = {}
        """Of metrics not judged yet: attempt, step, value, tokens and longest response."""
        self.expected: dict[str, float] = {}
        self.step = -1
        self.step_at = 0.0
        self.planned: int | None = None
        self.finished = False
        self.bar_full = False
        self.release = ""
        self.dirty: set[str] = set()
        self.steps_seen = 0
        self.implausible = 0
        self.strays: deque[bool] = deque(maxlen=STRAYS_OF)
        """Of the last steps: whether each contradicted the steps before it (see `astray`)."""
        self.quarantined: dict[str, str] = {}  # series or rule -> why it is no longer judged

    # ------------------------------------------------------------------------------------------------ records
    def take(self, samples: Samples, now: float, told: Told) -> None:
        """Takes the numbers of one step: stores them, and judges them if nobody has told this step before."""
        origin = samples.origin
        timings = steps.timings(samples.values)
        place = self.attempts.place(origin.source, origin.generation, origin.writer, samples.step, timings)
        if place is None:
            self.implausible += 1
            return
        told.steps.append(StepRow(self.name, place.attempt, samples.step, now, samples.values))
        if timings:
            self.strays.append(not place.echo and (place.began or not place.current))
        if not place.current:
            return
        if place.began:
            self._begin(place.attempt, now, told)
        if timings and samples.step > self.step:
            if self.finished:  # whatever said that it was the end, it was not
                self.finished = self.bar_full = False
            self.step, self.step_at = samples.step, now
        if timings or _THROUGHPUT_KEY in samples.values:
            self._judge(samples, timings, place.attempt, now, told)
        if self.bar_full:
            self._end(now, told)

    def hear(self, event: Event, now: float, told: Told) -> None:
        """Takes an occurrence: the plan, a resume, the end."""
        origin = event.origin
        if event.name == "resume":
            self.attempts.restarted(origin.source, origin.writer)
        if not self.attempts.is_current(origin.source, origin.writer):
            return
        total = event.attributes.get("total")
        if event.name in {"plan", "progress"} and isinstance(total, int) and total > 0:
            self.planned = total
        if event.name == "progress":
            self.bar_full = total == event.attributes.get("done")
        if event.name == "finished" or self.bar_full:
            self._end(now, told, sure=event.name == "finished")

    @property
    def astray(self) -> bool:
        """Whether they are no single training's: many of its last steps begin an attempt or belong to an old one."""
        return sum(self.strays) >= STRAYS

    def _begin(self, attempt: int, now: float, told: Told) -> None:
        """Another attempt: what was open ends with the one before; the baselines stay."""
        if self.step >= 0 and not self.finished:
            moment = Moment(self.name, attempt - 1, self.step, now)
            self._tell(self.incidents.finish(moment), moment, told)
        self.finished, self.bar_full, self.step = False, False, -1

    def _end(self, now: float, told: Told, *, sure: bool = False) -> None:
        """The run is over.  A full progress bar alone says so only once its last step has been printed."""
        if self.finished or self.step < 0 or not (sure or self.step >= (self.planned or 0)):
            return
        self.finished = True
        moment = Moment(self.name, self.attempts.current, self.step, now)
        self._tell(self.incidents.finish(moment), moment, told)

    # ------------------------------------------------------------------------------------------------ judging
    def _judge(self, samples: Samples, timings: dict[str, float], attempt: int, now: float, told: Told) -> None:
        """Shows each metric's series its value, and the rules what changed."""
        self.release = steps.release(samples.values, samples.decimals) or self.release
        facts = steps.read(samples.values, self.release, timings)
        at = (attempt, samples.step)
        endings: dict[str, Ending] = {}
        fresh = False
        for metric, value in facts.seconds.items():
            # late values fill only series that are not past this step
            if at <= self.judged.get(metric, (0, -1)) or metric in self.quarantined:
                continue
            watch = self.series.get(metric) or self._take_up(metric, at, value, facts)
            fresh = fresh or metric in self.recent
            if watch is None:
                continue
            for point in self._update(watch, at, value, facts.work):
                if point.action in _ENDING:
                    last = point.onset - 1 if point.action == "returned" else samples.step
                    endings[metric] = Ending(_ENDING[point.action], last)
        self.steps_seen += fresh
        if fresh and not self.finished:
            moment = Moment(self.name, attempt, samples.step, now)
            diagnoses = self._diagnose(samples.step, facts.seconds)
            self._tell(self.incidents.update(diagnoses, endings, moment), moment, told)

    def _take_up(self, metric: str, at: tuple[int, int], value: float, facts: steps.StepFacts) -> Watch | None:
        """The series of a metric that is judged from now on; None if it is not, or not yet.

        The first values only wait: they are the slowest, and no measure of how many steps a month has.  So do those of
        a phase that takes so little of a step that it would have to triple before anybody is told.  When it takes
        more, what has waited is shown to its series first: the very step is judged.
        """
        if metric not in JUDGED:
            return None
        recent = self.recent.setdefault(metric, deque(maxlen=RECENT))
        past = self.waiting.setdefault(metric, deque(maxlen=RECENT))
        least = self.settings.min_step_share / SLIGHT * facts.seconds.get(STEP, 0.0)
        if value < least or len(recent) < SETTLING:
            self.judged[metric] = at
            recent.append(value)
            past.append((*at, value, *facts.work))
            return None
        watch = self.series[metric] = self._watch(metric)
        attempt = 0
        for earlier, step, old, tokens, longest in self.waiting.pop(metric):
            self._show(watch, step, old, Workload(tokens, longest), restart=earlier != attempt)
            attempt = earlier
        return watch

    def _watch(self, metric: str) -> Watch:
        """A new series."""
        shares = phase(metric)
        return Watch(
            SeriesKey(self.name, metric),
            (shares.tokens, shares.longest),
            self._rate(),
            worse="down" if metric == THROUGHPUT else "up",
            accept_after=self.settings.accept_after_steps,
        )

    def _rate(self) -> float:
        """False alarms per step that a series may raise: the run's budget over a month's steps and all series."""
        seconds = self.recent.get(STEP) or [sum(median(values) for m, values in self.recent.items() if m != THROUGHPUT)]
        step_s = min(max(median(seconds), 1.0), 3600.0)
        return min(1.0, self.settings.false_alarms_per_month / (MONTH_S / step_s * len(JUDGED)))

    def tune(self, settings: Settings) -> None:
        """Takes up other settings; baselines and incidents stay."""
        self.settings = settings
        for watch in self.series.values():
            watch.tune(self._rate(), settings.accept_after_steps)

    @property
    def changes(self) -> dict[str, ChangePoint]:
        """Open changes by metric."""
        return {m: c for m, watch in self.series.items() if watch.change is not None and (c := watch.current)}

    def _diagnose(self, step: int, now: Mapping[str, float]) -> tuple[Diagnosis, ...]:
        changes = self.changes
        if not changes:
            return ()
        told = frozenset(diagnosis.subject for incident in self.incidents for diagnosis in incident.diagnoses)
        view = View(self.name, step, changes, now, self.expected, self.settings.min_step_share, told)
        return tuple(diagnosis for rule in RULES for diagnosis in self._ask(rule, view))

    def _update(self, watch: Watch, at: tuple[int, int], value: float, work: Workload) -> tuple[ChangePoint, ...]:
        metric = watch.key.metric
        restart = self.judged.get(metric, (0, 0))[0] != at[0]
        self.judged[metric] = at
        self.recent[metric].append(value)
        self.dirty.add(metric)
        points = self._show(watch, at[1], value, work, restart=restart)
        if watch.expectation is not None:
            self.expected[metric] = watch.expectation
        return points

    # A series or a rule that raises is set aside and reported; the rest of the run, and other runs, go on.
    def _show(self, watch: Watch, step: int, value: float, work: Workload, *, restart: bool) -> tuple[ChangePoint, ...]:
        try:
            return watch.update(step, value, work, restart=restart)
        except Exception as error:  # noqa: BLE001 - the guarded border around a run's judgement
            self.quarantined[watch.key.metric] = repr(error)[:300]
            return ()

    def _ask(self, rule: Rule, view: View) -> tuple[Diagnosis, ...]:
        if rule.NAME in self.quarantined:
            return ()
        try:
            return rule.diagnose(view)
        except Exception as error:  # noqa: BLE001 - the guarded border around a run's judgement
            self.quarantined[rule.NAME] = repr(error)[:300]
            return ()

    # ------------------------------------------------------------------------------------------------ telling
    def _tell(self, changes: Iterable[Change], moment: Moment, told: Told) -> None:
        for before, after in changes:
            why = reason(before, after)
            if why is None:
                continue
            message = compose(
                after,
                why,
                step=moment.step,
                now=moment.now,
                recent=tuple(self.recent.get(after.diagnoses[0].subject, ())),
                link=self.settings.link,
            )
            told.transitions.append(_transition(after, _EVENT.get(why, "closed"), moment.step))
            key = f"{after.id}-{len(after.notified) + 1}"
            told.notifications.extend(
                Notification(key, after.id, receiver, why, message) for receiver in self.settings.receivers
            )
            told_ratio = after.diagnoses[0].ratio
            self.incidents.note(replace(after, notified=(*after.notified, why), told_ratio=told_ratio))

    # ------------------------------------------------------------------------------------------------ state
    def states(self) -> list[State]:
        """What changed since the last call, for the store."""
        out = [State("run", self.name, STATE_VERSION, self._state())]
        out.extend(
            State("series", f"{self.name}\0{metric}", Watch.STATE_VERSION, self.series[metric].state())
            for metric in sorted(self.dirty)
        )
        self.dirty.clear()
        return out

    def _state(self) -> dict[str, Any]:
        return {
            "attempts": self.attempts.state(),
            "incidents": self.incidents.state(),
            "judged": {metric: list(at) for metric, at in self.judged.items()},
            "recent": {metric: list(values) for metric, values in self.recent.items()},
            "waiting": {metric: [list(row) for row in rows] for metric, rows in self.waiting.items()},
            "implausible": self.implausible,
            "expected": self.expected,
            "step": self.step,
            "step_at": self.step_at,
            "planned": self.planned,
            "finished": self.finished,
            "bar_full": self.bar_full,
            "release": self.release,
            "steps_seen": self.steps_seen,
        }

    @classmethod
    def from_state(cls, name: str, settings: Settings, data: Mapping[str, Any]) -> Run:
        """The inverse of the run's own state; series and steps are added by `restore_series` and `recall`."""
        self = cls(name, settings)
        self.attempts = Attempts.from_state(data["attempts"])
        self.incidents = OpenIncidents.from_state(data["incidents"])
        self.judged = {metric: (at[0], at[1]) for metric, at in data["judged"].items()}
        self.recent = {metric: deque(values, maxlen=RECENT) for metric, values in data["recent"].items()}
        self.waiting = {m: deque(map(tuple, rows), maxlen=RECENT) for m, rows in data["waiting"].items()}
        self.implausible = data["implausible"]
        self.expected = dict(data["expected"])
        self.step, self.step_at = data["step"], data["step_at"]
        self.planned, self.release = data["planned"], data["release"]
        self.finished, self.bar_full = data["finished"], data["bar_full"]
        self.steps_seen = data["steps_seen"]
        return self

    def restore_series(self, metric: str, data: Mapping[str, Any]) -> None:
        """Takes up a series where it was."""
        self.series[metric] = Watch.from_state(SeriesKey(self.name, metric), dict(data))

    def recall(self, rows: Iterable[StepRow]) -> None:
        """Takes steps back from the store, so that a source that tells them again is recognised."""
        self.attempts.recall((row.attempt, row.step, steps.timings(row.values)) for row in rows)


def _transition(incident: Incident, event: EventName, step: int) -> Transition:
    lead = incident.diagnoses[0]
    return Transition(
        event=event,
        incident=incident.id,
        rule=lead.rule,
        run=incident.run,
        attempt=incident.attempt,
        phase=lead.subject,
        onset_step=lead.onset,
        step=step,
        ratio=round(lead.ratio, 4),
        severity=incident.severity,
        summary=lead.summary,
        opened_step=incident.opened_step,
        before=lead.before,
        after=lead.after,
        closed_as=incident.closed_as,
        last_step=incident.last_step,
    )
