"""One run: its attempts, its judged series, its open incidents."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from verlwatch.core import steps
from verlwatch.core._attempts import Attempts
from verlwatch.core._judged import JudgedSeries
from verlwatch.core._ordinals import Ordinals
from verlwatch.core._work import Work, differences, work
from verlwatch.core.incidents import Change, Moment, OpenIncidents, compose, reason
from verlwatch.core.settings import Settings
from verlwatch.core.types import (
    Event,
    EventName,
    Incident,
    Notification,
    Reason,
    Samples,
    State,
    StepRow,
    Transition,
)

STRAYS, STRAYS_OF = 15, 40
"""So many contradictions among so many steps are no restart any more."""
STATE_VERSION = 5
_THROUGHPUT_KEY = "perf/throughput"
_EVENT: dict[Reason, EventName] = {"opened": "opened", "escalated": "updated", "updated": "updated"}


@dataclass(slots=True)
class Told:
    """What judging added: rows, transitions and notifications for the outcome.

    ``history`` says that the records now taken were there before anybody watched.
    """

    steps: list[StepRow] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    notifications: list[Notification] = field(default_factory=list)
    history: bool = False


class Run:
    """Everything known of one run, fed with its records in order."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self.attempts = Attempts()
        self.incidents = OpenIncidents()
        self.judged = JudgedSeries(name, settings)
        self.step = -1
        self.step_at = self.heard_at = 0.0
        self.planned: int | None = None
        self.finished = False
        self.bar_full = False
        self.release = ""
        self.steps_seen = 0
        self.implausible = 0
        self.prints_total = False  # whether it tells the tokens of a step
        self.work: Work = {}
        self.ordinals = Ordinals()
        self.is_counted = False
        """Whether its steps have no numbers and are counted."""
        self.strays: deque[bool] = deque(maxlen=STRAYS_OF)
        """Of the last steps: whether each contradicted the steps before it (see `astray`)."""

    # ------------------------------------------------------------------------------------------------ records
    def take(self, samples: Samples, now: float, told: Told) -> None:
        """Takes the numbers of one step: stores them, and judges them if nobody has told this step before."""
        self.is_counted = False
        self._take(samples, now, told)

    def _take(self, samples: Samples, now: float, told: Told) -> None:
        origin = samples.origin
        timings = steps.timings(samples.values)
        place = self.attempts.place(origin.source, origin.generation, origin.writer, samples.step, timings)
        if place is None:
            self.implausible += 1
            return
        told.steps.append(StepRow(self.name, place.attempt, samples.step, now, samples.values))
        if timings:
            # a step before the last one that nobody has told: history may be read so, a training does not go so
            behind = samples.step < self.step and not told.history
            self.strays.append(not place.echo and (place.began or not place.current or behind))
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
        if event.name == "phase_time" and (self.is_counted or self.step < 0) and (step := self.ordinals.take(event)):
            self.is_counted = True
            self._take(step, now, told)
        if event.name == "config":
            self._compare(work(event.attributes), now, told)
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

    def _compare(self, after: Work, now: float, told: Told) -> None:
        """Begins anew where the configuration of an attempt says that it does other work than the one before."""
        if differences(self.work, after):
            moment = Moment(self.name, self.attempts.current, self.step, now)
            self._tell(self.incidents.finish(moment), moment, told)
            self.judged.begin_anew()
        self.work = {**self.work, **after}

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

    def expire(self, now: float, told: Told) -> list[State]:
        """Nothing more is expected of it: closes what is open; the states that the store is to forget."""
        if not self.finished:
            moment = Moment(self.name, self.attempts.current, self.step, now)
            self._tell(self.incidents.finish(moment, "expired"), moment, told)
        return [State("run", self.name, STATE_VERSION, None), *self.judged.forgotten()]

    # ------------------------------------------------------------------------------------------------ judging
    def _judge(self, samples: Samples, timings: dict[str, float], attempt: int, now: float, told: Told) -> None:
        """Lets the step be judged, and tells what came of it."""
        self.release = steps.release(samples.values, samples.decimals) or self.release
        self.prints_total = self.prints_total or steps.TOTAL_TOKENS in samples.values
        self.judged.is_async = self.judged.is_async or steps.is_async(samples.values, samples.origin.writer.name)
        facts = steps.read(samples.values, self.release, timings, prints_total=self.prints_total)
        fresh, endings = self.judged.judge((attempt, samples.step), facts)
        self.steps_seen += fresh
        if not fresh or self.finished:
            return
        subjects = frozenset(diagnosis.subject for incident in self.incidents for diagnosis in incident.diagnoses)
        diagnoses = self.judged.diagnose(samples.step, facts.seconds, subjects)
        moment = Moment(self.name, attempt, samples.step, now)
        self._tell(self.incidents.update(diagnoses, endings, moment), moment, told)

    def tune(self, settings: Settings) -> None:
        """Takes up other settings; baselines and incidents stay."""
        self.settings = settings
        self.judged.tune(settings)

    # ------------------------------------------------------------------------------------------------ telling
    def _tell(self, changes: Iterable[Change], moment: Moment, told: Told) -> None:
        """Says what is worth a message.  History opens nothing: what still holds at the first new step is told then."""
        for before, after in changes:
            why = reason(before, after)
            if why is None or (told.history and not after.notified):
                continue
            message = compose(
                after,
                why,
                step=moment.step,
                now=moment.now,
                recent=tuple(self.judged.recent.get(after.diagnoses[0].subject, ())),
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
        return [State("run", self.name, STATE_VERSION, self._state()), *self.judged.states()]

    def _state(self) -> dict[str, Any]:
        return {
            "attempts": self.attempts.state(),
            "incidents": self.incidents.state(),
            **self.judged.state(),
            "implausible": self.implausible,
            "step": self.step,
            "step_at": self.step_at,
            "planned": self.planned,
            "finished": self.finished,
            "bar_full": self.bar_full,
            "release": self.release,
            "prints_total": self.prints_total,
            "steps_seen": self.steps_seen,
            "work": self.work,
            "ordinals": self.ordinals.state(),
            "is_counted": self.is_counted,
        }

    @classmethod
    def from_state(cls, name: str, settings: Settings, data: Mapping[str, Any]) -> Run:
        """The inverse of the run's own state; series and steps are added by `judged.restore_series` and `recall`."""
        self = cls(name, settings)
        self.attempts = Attempts.from_state(data["attempts"])
        self.incidents = OpenIncidents.from_state(data["incidents"])
        self.judged.restore(data)
        self.implausible = data["implausible"]
        self.step, self.step_at = data["step"], data["step_at"]
        self.heard_at = self.step_at
        self.planned, self.release = data["planned"], data["release"]
        self.finished, self.bar_full = data["finished"], data["bar_full"]
        self.steps_seen, self.prints_total = data["steps_seen"], data["prints_total"]
        self.work, self.is_counted = dict(data["work"]), data["is_counted"]
        self.ordinals.restore(data["ordinals"])
        return self

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
