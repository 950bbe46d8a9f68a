"""The life of a run, by the clock: started, slow, stuck, dying, dead, finished.

Nothing that runs inside a training can report its own death; who watches from outside sees that lines stop coming.  Two
clocks are kept apart: progress (a step, or what goes on before the first) and activity (any line at all).  Faults are
gathered for a moment, since one failure has many voices: the strongest evidence leads, and one incident is told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from verlwatch.core.incidents import Change, Conditions, Moment
from verlwatch.core.life._allowed import OwnPace
from verlwatch.core.life._clocks import Clocks
from verlwatch.core.life._evidence import Evidence
from verlwatch.core.life._ledger import Ledger
from verlwatch.core.life._sight import FRESH_S, Sight, Sights
from verlwatch.core.life._stage import MILESTONES, STARTS, Stages
from verlwatch.core.phases import PHASES, STEP
from verlwatch.core.rules import LIFE_RULES, SUBJECT, Allowance, LifeView, Printing, asked, blind
from verlwatch.core.settings import Settings
from verlwatch.core.types import Event, Origin, RunState
from verlwatch.core.words import duration

OBSERVED = frozenset({"process", "host", "gpu", "slurm"})
"""Kinds of what is seen beside the logs."""
QUEUED = frozenset({"PENDING", "CONFIGURING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
"""States of a job in which nothing can be late.  Source: Slurm ``squeue``, JOB STATE CODES."""
PRINTING = 6
PAST = 32
LATE = frozenset({"stalled", "silent"})
"""Rules of a run that may yet go on."""
MARGIN_S = 0.01
"""A turn comes so much after the time at which something is late: sums of times are rounded."""
_STATES: Mapping[str, RunState] = {"stalled": "stalled", "silent": "silent", "ended_early": "ended early"}
_DOING: Mapping[str, RunState] = {
    "start": "starting", "loading": "starting", "first step": "starting",
    "validation": "validating", "checkpoint": "saving",
}  # fmt: skip
_APART = tuple(phase.name for phase in PHASES if phase.apart)


def is_observed(origin: Origin) -> bool:
    """Whether it is no line of the run; lines of these kinds, too, end at a byte of their log."""
    return origin.kind in OBSERVED and not origin.end


class StateChange(NamedTuple):
    """When a run began to be in a state, and at which step."""

    state: RunState
    at: float
    attempt: int
    step: int


class Life:
    """Of one run.  ``is_timed`` is False where records have no times of arrival: then nothing can be late."""

    def __init__(self, run: str, settings: Settings) -> None:
        self.run, self.settings = run, settings
        self.conditions = Conditions(settings.policy)
        self.pace, self.stages, self.ledger, self.evidence = OwnPace(), Stages(), Ledger(), Evidence()
        self.past: deque[StateChange] = deque(maxlen=PAST)
        self.is_timed = True
        self.is_live = False
        """Whether anything of it was seen while somebody watched: what only a log of before tells is no news."""
        self.attempt, self.step = 1, -1
        self.planned: int | None = None
        self.is_over = False
        self.config: Mapping[str, str | int | float] = {}
        self.clocks, self.sights = Clocks(), Sights()
        self.late_steps: deque[int] = deque(maxlen=8)
        """The last steps of this attempt that ended a stall people were told of."""
        self._source = ""  # that told of steps
        self._trains = False  # whether anything says that this is a training, and no other log
        self._trainer = ""
        self._printing: dict[str, Printing] = {}
        self._is_blind = False
        self._outcome = ""
        self._rule = ""  # that holds of the run now
        self.troubles: dict[str, str] = {}
        """Rule that raises -> why."""

    # ------------------------------------------------------------------------------------------------ what is heard
    def heard(self, now: float, *, history: bool) -> None:
        """A line of the run, of any kind, has come."""
        self.clocks.heard(now, watched=self.is_live and not history)
        self.is_live = self.is_live or not history

    def hear(self, event: Event, now: float, *, is_current: bool, is_past: bool, history: bool = False) -> None:
        """Takes an occurrence.

        ``is_current``: its writer is the trainer of the present attempt, as far as that is known; ``is_past``: it is
        that of an earlier one.
        """
        name, said = event.name, event.attributes
        self.evidence.hear(event, now, is_current=is_current, history=history)
        if not is_observed(event.origin):
            self._note(event, now)
        if is_past:
            return
        if name == "host":
            self._trainer = f"pid {said['pid']} on {said['host']}"
        if name in MILESTONES:
            self._trains = True
            if self.step < 0:
                self.clocks.progress_at = now
        self.stages.hear(event, self.step, now)
        self._enter(now)

    def stepped(self, source: str, step: int, seconds: Mapping[str, float], timings: Mapping[str, float],
                now: float, *, history: bool) -> None:  # fmt: skip
        """A step of the current attempt is over.

        ``seconds`` are those of its phases, STEP without validation and checkpoint; ``timings`` as they were printed.
        """
        was_watched = self.is_live and self.is_timed and not history and self.step >= 0
        arrived = now - self.clocks.progress_at if was_watched and not self.clocks.is_broken else None
        apart = {name: timings[name] for name in _APART if name in timings}
        step_s = seconds.get(STEP) or sum(
            value for name, value in seconds.items() if name in timings and name not in apart
        )
        # of several steps that are read together, the first has ended it
        self._outcome = (self._outcome or self._goes_on(step, seconds, now)) if SUBJECT in self.conditions else ""
        was_late = self._rule in LATE and SUBJECT in self.conditions and bool(self.conditions[SUBJECT].told)
        if was_late:
            self.late_steps.append(step)
        self.pace.take(step, step_s, apart, arrived, was_late=was_late)
        self.ledger.take(seconds)
        self.step, self._source = step, source
        self._forget_death()
        self.clocks.step(now, watched=not history)
        self.stages.stepped(step, now)
        self._enter(now)

    def begin(self, attempt: int, now: float) -> None:
        """A trainer starts: what was known of the one before is over."""
        if self.step < 0 and not self._rule:  # it is known by its first lines already
            self.attempt = attempt
            return
        self._outcome = f"runs again: a new start after {self._reached()}"
        self.attempt, self.step, self.is_over, self._rule = attempt, -1, False, ""
        self.late_steps.clear()
        self.clocks.begin(now)
        self.evidence.job, self._trainer = {}, ""
        self._forget_death()
        self.stages.begin(now)

    def see(self, sights: Collection[Sight], now: float) -> bool:
        """Takes how the sources of the run stand; whether that changes anything."""
        was_live, was_hidden = self.is_live, self.sights.hides(self._source)
        self.is_live = self.is_live or any(now - one.changed_at < FRESH_S for one in sights)
        changed = self.sights.see(sights, now) | self.clocks.turn(now) | self.evidence.turn(now)
        if was_hidden and not self.sights.hides(self._source):
            self.clocks.seen_again(now)
        return changed or was_live != self.is_live

    def slept(self, seconds: float) -> None:
        """Nobody has watched for so long: that time makes nothing late."""
        self.clocks.slept(seconds)

    # ------------------------------------------------------------------------------------------------ what comes of it
    def look(self, moment: Moment, gpus: int | None, *, final: bool = False) -> tuple[Change, ...]:
        """What holds at this moment; ``final``: nothing more will come, so nothing is waited for."""
        now = moment.now
        self.clocks.turn(now)
        self.evidence.turn(now)
        view = self._view(now, gpus, final=final)
        found = asked(LIFE_RULES, view, self.troubles)
        holding = [d for d in found if d.severity != "info"]
        unknown = self._unknown(view)
        outcomes = {SUBJECT: self._outcome or self._resumed(), blind.SUBJECT: "its logs can be read again"}
        lead = next((d.rule for d in reversed(holding) if d.subject == SUBJECT), "")
        self._rule = lead or (self._rule if SUBJECT in unknown else "")
        self._is_blind = view.unseen_s >= blind.BLIND_S and self.sights.hides(self._source)
        was_over = bool(self.past) and self.past[-1].state == "finished"
        self._enter(now)
        if not self.is_live or self.evidence.is_old:
            return ()
        changes = list(self.conditions.update(holding, moment, outcomes, unknown))
        if SUBJECT not in self.conditions:
            self._outcome = ""
        if not was_over and self.settings.tells_finish:
            changes += [self.conditions.announce(d, moment) for d in found if d.severity == "info"]
        self.conditions.forget(moment.attempt, moment.step)
        return tuple(changes)

    def due(self, now: float) -> float | None:
        """When `look` has something new to see, if nothing comes."""
        return min((at for at in self._times() if at > now), default=None) if self.is_live else None

    def _times(self) -> Iterator[float]:
        if (settles_at := self.evidence.settles_at) is not None:
            yield settles_at
        if self.sights.unseen_at is not None:
            yield self.sights.unseen_at + blind.BLIND_S + MARGIN_S
        if not self.is_timed or self.is_over:
            return
        allowed, clocks = self._allowance(), self.clocks
        for factor in (1.0, 2.0, 3.0):
            yield clocks.progress_at + factor * allowed.seconds + MARGIN_S
            yield clocks.heard_at + factor * self._quiet_s(allowed) + MARGIN_S

    @property
    def state(self) -> RunState:
        """What the run does, or how it ended."""
        if self.is_over:
            return "finished"
        if self._rule:
            return _STATES.get(self._rule, "crashed")
        if self._is_blind or not self.is_live or self.evidence.job.get("state") in QUEUED:
            return "unknown"
        return _DOING.get(self.stages.now.name, "running")

    # ------------------------------------------------------------------------------------------------ inside
    def _note(self, event: Event, now: float) -> None:
        """Keeps who prints what: a stall is told with what goes on meanwhile."""
        writer = event.origin.writer.name or event.origin.source.rpartition("/")[2]
        known = self._printing.pop(writer, None)
        if len(self._printing) >= PRINTING:
            del self._printing[next(iter(self._printing))]
        lines = (known.lines if known else 0) + int(event.attributes.get("lines", 1) or 1)
        self._printing[writer] = Printing(writer, lines, event.excerpt, now)

    def starts_anew(self, event: Event) -> bool:
        """Whether a line tells of another start, and is no second copy of what is known."""
        if event.name not in STARTS or (self.step < 0 and not (self._rule or self.evidence.settles_at)):
            return False
        same = event.origin.source == self._source and event.name in {"host", "resume"}
        return same or bool(self._rule) or self.is_over or self.evidence.settles_at is not None

    def _forget_death(self) -> None:
        self.evidence.forget()
        self._printing.clear()

    def _goes_on(self, step: int, seconds: Mapping[str, float], now: float) -> str:
        """How what was open has ended, if a step ends it."""
        if SUBJECT not in self.conditions:
            return ""
        if self._rule not in LATE:
            return f"goes on with step {step}: what failed has ended no training"
        waited = duration(max(0.0, now - self.clocks.progress_at))
        parts = {name: value for name, value in seconds.items() if name != STEP}
        longest = max(parts, key=lambda name: parts[name], default=None)
        most = f"; {longest} took {duration(parts[longest])} of it" if longest else ""
        return f"goes on: step {step} came after {waited}{most}"

    def _reached(self) -> str:
        return f"step {self.step}" if self.step >= 0 else "no step"

    def _resumed(self) -> str:
        if self.evidence.job.get("state") in QUEUED:
            return "its job is queued again"
        return "goes on: lines come again" if self._rule == "silent" else ""

    def _unknown(self, view: LifeView) -> frozenset[str]:
        """What is not known to be over though nothing says that it lasts: nobody sees it."""
        if not self.sights.is_known:
            return frozenset({SUBJECT, blind.SUBJECT})
        is_unjudged = view.waited_s is None and self._rule in LATE and not (self._outcome or self.is_over)
        return frozenset({SUBJECT} if is_unjudged else ()) | frozenset({blind.SUBJECT} if view.unseen else ())

    def _enter(self, now: float) -> None:
        state = self.state
        if not self.past or self.past[-1].state != state:
            self.past.append(StateChange(state, now, self.attempt, self.step))

    def _allowance(self) -> Allowance:
        stage, patience = self.stages.now.name, self.settings.patience
        return self.pace.allowance(self.step, stage, self.config, patience, self.planned)

    def _quiet_s(self, allowed: Allowance) -> float:
        """How long it may say nothing at all: what a validation or checkpoint may take comes on top."""
        usual_s = self.pace.usual_s
        return self.clocks.quiet_s + allowed.seconds - usual_s if usual_s and self.step >= 0 else float("inf")

    def _view(self, now: float, gpus: int | None, *, final: bool) -> LifeView:
        evidence = self.evidence
        told = evidence.settles_at is not None and (final or (self.is_timed and evidence.is_whole(now)))
        told = told and not self.is_over
        sights, clocks, allowed = self.sights, self.clocks, self._allowance()
        seen = sights.is_known and not (sights.is_behind or sights.hides(self._source))
        ended = self.is_over or (told and evidence.is_end) or evidence.job.get("state") in QUEUED
        begun = clocks.began_at > 0.0 and (self._trains or self.step >= 0)
        gathers = evidence.settles_at is not None and not told  # a death will be told, and no stall on the way to it
        judged = self.is_timed and self.is_live and begun and seen and not (ended or gathers)
        until = evidence.began_at if told and evidence.began_at else now
        lived_s = until - clocks.began_at if clocks.began_at and self.is_timed else 0.0
        return LifeView(
            run=self.run,
            now=now,
            attempt=self.attempt,
            step=self.step,
            planned=self.planned,
            waited_s=now - clocks.progress_at if judged else None,
            allowed=allowed,
            heard_s=now - clocks.heard_at,
            quiet_s=self._quiet_s(allowed),
            stage=self.stages.told(now),
            printing=tuple(sorted(self._printing.values(), key=lambda one: -one.at)) if judged else (),
            trainer=self._trainer,
            unseen=sights.words(),
            unseen_s=0.0 if sights.unseen_at is None else now - sights.unseen_at,
            faults=tuple(evidence.faults) if told else (),
            gone=evidence.gone if told else None,
            job=evidence.job if told else {},
            ended=evidence.ended if told else "",
            is_over=self.is_over,
            lived_s=max(lived_s, self.ledger.whole_s),  # a log that was read late shows less
            ledger=tuple(self.ledger.facts(gpus, lived_s)),
        )

    # ------------------------------------------------------------------------------------------------ state
    def kept(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `restore`."""
        return {
            "conditions": self.conditions.state(),
            "pace": self.pace.state(),
            "stages": self.stages.state(),
            "ledger": self.ledger.state(),
            "past": [list(change) for change in self.past],
            "is_live": self.is_live,
            "attempt": self.attempt,
            "clocks": self.clocks.state(),
            "late_steps": list(self.late_steps),
            "source": self._source,
            "trains": self._trains,
            "trainer": self._trainer,
            "evidence": self.evidence.state(),
            "rule": self._rule,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes up where it was."""
        self.conditions = Conditions.from_state(data["conditions"], self.settings.policy)
        self.pace.restore(data["pace"])
        self.stages.restore(data["stages"])
        self.ledger.restore(data["ledger"])
        self.past.extend(StateChange(*change) for change in data["past"])
        self.is_live, self.attempt = data["is_live"], data["attempt"]
        self.clocks.restore(data["clocks"])
        self.late_steps.extend(data["late_steps"])
        self._source, self._trainer, self._rule = data["source"], data["trainer"], data["rule"]
        self._trains = data["trains"]
        self.evidence.restore(data["evidence"])
        self.sights.forget()
