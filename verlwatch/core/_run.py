"""One run: its attempts, its judged series, its open incidents."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from verlwatch.core import steps
from verlwatch.core._attempts import Attempts
from verlwatch.core._hardware import Hardware
from verlwatch.core._judged import JudgedSeries
from verlwatch.core._kept import kept, take_up
from verlwatch.core._ordinals import Ordinals
from verlwatch.core._telling import Told
from verlwatch.core._voice import Voice
from verlwatch.core.incidents import Conditions, Moment, Mute, OpenIncidents, Silences
from verlwatch.core.life import Life, Sight, is_observed
from verlwatch.core.metrics import measured
from verlwatch.core.phases import STEP, THROUGHPUT
from verlwatch.core.settings import Settings
from verlwatch.core.types import Event, Extract, Samples, State, StepRow
from verlwatch.core.work import Work, differs, gpus, named

STRAYS, STRAYS_OF = 15, 40
"""So many contradictions among so many steps are no restart any more."""
RESUMING = 3
"""So many steps after a resume open nothing by themselves."""
STATE_VERSION = 9
_THROUGHPUT_KEY = "perf/throughput"


class Run(Voice):
    """Everything known of one run, fed with its records in order."""

    def __init__(self, name: str, settings: Settings, silences: Silences | None = None) -> None:
        """``silences`` are those in force, for all runs."""
        self.name = name
        self.settings = settings
        self.silences = silences or Silences()
        self.attempts = Attempts()
        self.incidents = OpenIncidents(settings.policy)
        self.judged = JudgedSeries(name, settings)
        self.life = Life(name, settings)
        self.hardware = Hardware(name, settings)
        self.life.troubles = self.hardware.cards.troubles = self.judged.quarantined
        self.findings = Conditions(settings.policy)
        """What step rules say that is no change of a time: a loss that is not finite, memory that runs out."""
        self.step = -1
        self.step_at = self.heard_at = 0.0
        self.planned: int | None = None
        self.finished = False
        self.bar_full = False
        self.release = ""
        self.steps_seen = 0
        self.implausible = 0
        self.prints_total = False  # whether it tells the tokens of a step
        self.config: Work = {}
        """What the resolved configuration says of what messages name."""
        self.resumed_at: tuple[int, int] = (0, -1)
        """Attempt and first step of the latest attempt."""
        self.mute: Mute | None = None
        """What the last step did that makes it open nothing by itself."""
        self.apart_at = -2
        """Last step that validated or saved."""
        self.ordinals = Ordinals()
        self.is_counted = False
        """Whether its steps have no numbers and are counted."""
        self.due: float | None = None
        """When its life is to be looked at again, if nothing comes."""
        self.left_out: dict[str, str] = {}
        """Kinds of records that could not be taken -> why the last one was not."""
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
        facts = self._facts(samples, timings)
        if place.began:
            self._begin(place.attempt, now, told)
        if timings and samples.step > self.step:
            if self.finished:  # whatever said that it was the end, it was not
                self.finished = self.bar_full = False
            self.step, self.step_at = samples.step, now
            self._advance(place.attempt, samples, facts.seconds, timings, now, told)
        if timings or _THROUGHPUT_KEY in samples.values:
            self._judge(samples, facts, timings, place.attempt, now, told)
        if self.bar_full:
            self._end(now, told)

    def hear(self, event: Event, now: float, told: Told) -> None:
        """Takes an occurrence: the plan, a resume, the end."""
        origin = event.origin
        if event.name == "phase_time" and (self.is_counted or self.step < 0) and (step := self.ordinals.take(event)):
            self.is_counted = True
            self._take(step, now, told)
        self.judged.forecasts.hear(event, now)
        if event.name == "fault":
            self.judged.finite.hear(event)
        heard = self.hardware.cards.hear(event, self.step, now)
        if heard and self.hardware.cards.changed and not self.life.is_timed:  # else with all that has come together
            self._look_at_cards(now, told)
        if event.name == "config":
            self._configure(named(event.attributes), now, told)
        if event.name == "resume":
            self.attempts.restarted(origin.source, origin.writer)
        is_current = self.attempts.is_current(origin.source, origin.writer)
        is_past = self.attempts.is_past(origin.source, origin.writer)
        if not is_past and self.life.starts_anew(event):
            self._restart(self.attempts.current, now, told)
        self.life.hear(event, now, is_current=is_current, is_past=is_past, history=told.history)
        if not is_current:
            return
        total = event.attributes.get("total")
        if event.name in {"plan", "progress"} and isinstance(total, int) and total > 0:
            self.planned = self.life.planned = self.judged.forecasts.planned = total
        if event.name == "progress":
            self.bar_full = total == event.attributes.get("done")
        if event.name == "finished" or self.bar_full:
            self._end(now, told, sure=event.name == "finished")

    def _configure(self, config: Work, now: float, told: Told) -> None:
        """Takes a configuration; begins anew where an attempt does other work by it than the one before."""
        if differs(self.config, config):
            moment = Moment(self.name, self.attempts.current, self.step, now)
            self._tell(self.incidents.finish(moment), moment, told)
            self.judged.begin_anew()
        self.config.update(config)

    def _facts(self, samples: Samples, timings: dict[str, float]) -> steps.StepFacts:
        """What the step line tells, by the release that its keys are of."""
        self.release = steps.release(samples.values, samples.decimals) or self.release
        self.prints_total = self.prints_total or steps.TOTAL_TOKENS in samples.values
        return steps.read(samples.values, self.release, timings, prints_total=self.prints_total)

    def _advance(
        self,
        attempt: int,
        samples: Samples,
        seconds: Mapping[str, float],
        timings: dict[str, float],
        now: float,
        told: Told,
    ) -> None:
        """A further step of the current attempt has come."""
        life, forecasts = self.life, self.judged.forecasts
        life.stepped(samples.origin.source, samples.step, seconds, timings, now, history=told.history)
        life.ledger.score(samples.step, samples.values)
        limit_s = self.settings.of(self.name).wall_limit_s if life.is_timed else None
        forecasts.until(life.clocks.began_at + limit_s if limit_s else None, "runs[].wall_limit")
        live = life.is_timed and not told.history
        forecasts.take((attempt, samples.step), samples.values, seconds, now, live=live)
        if self.hardware.cards.cards:
            self.hardware.cards.stepped(samples.step, now, seconds)
            self._look_at_cards(now, told)

    def _look_at_cards(self, now: float, told: Told) -> None:
        moment = Moment(self.name, self.attempts.current, self.step, now)
        changes = self._guarded("GPUs", lambda: self.hardware.look(moment))
        self._tell(changes, moment, told, self.hardware.conditions)

    def live(self, now: float, told: Told, *, final: bool = False) -> None:
        """Lets the life of the run be judged at ``now``; ``final``: its logs have come to their end."""
        life = self.life
        life.config, life.is_over = self.config, self.finished
        if self.hardware.cards.changed:
            self._look_at_cards(now, told)
        moment = Moment(self.name, max(self.attempts.current, life.attempt), self.step, now)
        changes = self._guarded("life", lambda: life.look(moment, gpus(self.config), final=final))
        self._tell(changes, moment, told, life.conditions)
        self.due = life.due(now)

    def _restart(self, attempt: int, now: float, told: Told) -> None:
        """A trainer starts: what is known of the end of the one before is told first."""
        if self.life.evidence.settles_at is not None or self.finished:
            self.live(now, told, final=True)
        self.life.begin(attempt, now)
        self.hardware.cards.begin()

    def heed(self, extract: Extract, now: float) -> None:
        """Something of it is heard, or seen beside its logs."""
        if not is_observed(extract.records[0].origin):
            self.heard_at = now
            self.life.heard(now, history=extract.history)

    def see(self, sights: Collection[Sight], now: float) -> None:
        """Takes how its sources stand."""
        if self.life.see(sights, now):
            self.due = now

    @property
    def astray(self) -> bool:
        """Whether they are no single training's: many of its last steps begin an attempt or belong to an old one."""
        return sum(self.strays) >= STRAYS

    def _begin(self, attempt: int, now: float, told: Told) -> None:
        """Another attempt: what was open ends with the one before; the baselines stay."""
        if self.step >= 0 and not self.finished:
            moment = Moment(self.name, attempt - 1, self.step, now)
            self._tell(self.incidents.finish(moment), moment, told)
        if self.step >= 0 or attempt > self.life.attempt:
            self._restart(attempt, now, told)
        self.finished, self.bar_full, self.step = False, False, -1

    def _end(self, now: float, told: Told, *, sure: bool = False) -> None:
        """The run is over.  A full progress bar alone says so only once its last step has been printed."""
        if self.finished or self.step < 0 or not (sure or self.step == self.planned):
            return
        self.finished = True
        moment = Moment(self.name, self.attempts.current, self.step, now)
        self._tell(self.incidents.finish(moment), moment, told)
        for book in (self.findings, self.hardware.conditions):
            self._tell(book.finish(moment), moment, told, book)

    def expire(self, now: float, told: Told) -> list[State]:
        """Nothing more is expected of it: closes what is open; the states that the store is to forget."""
        if not self.finished:
            moment = Moment(self.name, self.attempts.current, self.step, now)
            self._tell(self.incidents.finish(moment, "expired"), moment, told)
            for book in self._books()[1:]:
                self._tell(book.finish(moment, "expired"), moment, told, book)
        return [State("run", self.name, STATE_VERSION, None), *self.judged.forgotten()]

    # ------------------------------------------------------------------------------------------------ judging
    def _judge(
        self,
        samples: Samples,
        facts: steps.StepFacts,
        timings: dict[str, float],
        attempt: int,
        now: float,
        told: Told,
    ) -> None:
        """Lets the step be judged, and tells what came of it."""
        self.judged.is_async = self.judged.is_async or steps.is_async(samples.values, samples.origin.writer.name)
        beside = measured(samples.values, self.settings.measures)
        if THROUGHPUT in beside and facts.seconds.get(STEP, 0.0) > 0.0:  # without validation and checkpoint, too
            beside[THROUGHPUT] *= timings[STEP] / facts.seconds[STEP]
        fresh, endings = self.judged.judge((attempt, samples.step), facts, beside)
        self.steps_seen += fresh
        if not fresh or self.finished:
            return
        diagnoses = self.judged.diagnose(
            samples.step,
            {**beside, **facts.seconds},
            self.incidents.subjects | {incident.diagnoses[0].subject for incident in self.findings},
            values=samples.values,
            release=self.release,
            ahead=self.judged.forecasts.ahead(now),
        )
        self.mute = self._muted(attempt, samples.step, facts.seconds)
        moment = Moment(self.name, attempt, samples.step, now, self.mute)
        changed = [diagnosis for diagnosis in diagnoses if not diagnosis.title]
        self._tell(self.incidents.update(changed, endings, moment), moment, told)
        worded = [diagnosis for diagnosis in diagnoses if diagnosis.title]
        self._tell(self.findings.update(worded, moment), moment, told, self.findings)
        self.findings.forget(attempt, samples.step)

    def _muted(self, attempt: int, step: int, seconds: Mapping[str, float]) -> Mute | None:
        """What this step did besides training.  What a run does at every step mutes nothing."""
        if self.resumed_at[0] != attempt:
            self.resumed_at = attempt, step
        if attempt > 1 and step - self.resumed_at[1] < RESUMING:
            return "resume"
        did: Mute | None = (
            "validation" if "testing" in seconds else "checkpoint" if "save_checkpoint" in seconds else None
        )
        again, self.apart_at = step - self.apart_at <= 1, step if did else self.apart_at
        return None if again else did

    def tune(self, settings: Settings) -> None:
        """Takes up other settings; baselines and incidents stay."""
        self.settings = settings
        for book in self._books():
            book.policy = settings.policy
        self.life.settings = settings
        self.hardware.tune(settings)
        self.judged.tune(settings)

    # ------------------------------------------------------------------------------------------------ state
    def states(self) -> list[State]:
        """What changed since the last call, for the store."""
        return [State("run", self.name, STATE_VERSION, kept(self)), *self.judged.states()]

    @classmethod
    def from_state(
        cls, name: str, settings: Settings, data: Mapping[str, Any], silences: Silences | None = None
    ) -> Run:
        """The inverse of the run's own state; series and steps are added by `judged.restore_series` and `recall`."""
        self = cls(name, settings, silences)
        take_up(self, data)
        return self

    def recall(self, rows: Iterable[StepRow]) -> None:
        """Takes steps back from the store, so that a source that tells them again is recognised."""
        self.attempts.recall((row.attempt, row.step, steps.timings(row.values)) for row in rows)
