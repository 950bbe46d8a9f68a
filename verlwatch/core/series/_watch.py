"""One judged series: numbers in, change points out.

Idea.  A step's value is compared with what its own work explains (:mod:`._baseline`); what is left goes through the
channels of ``DETECTORS``.  An alarm opens a change, and from then on the old baseline and the new level compete
(:mod:`._rival`) until the series is back, or has been quiet at the new level for so long that this is the baseline.
Noise that has become larger is another matter (:mod:`._noise`): it may be open beside a change of the level.

What the baseline learns, it learns late: a step waits until the ones after it have shown that nothing was beginning
there, and while a change is suspected or open nothing is learned at all.

Better is not an alarm: a lasting improvement is followed silently by the same rules and soon becomes the baseline.  So
does a change too small to matter to anyone, below 50 ms: where a log rounds to milliseconds, the ratio of two of the
smallest values it can print is large and means nothing.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal, Self

from verlwatch.core.series import dispersion, drift, level, spike
from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._channel import Alarm, Detector, Kind, Seen
from verlwatch.core.series._noise import Noise
from verlwatch.core.series._rival import Rival
from verlwatch.core.types import Action, ChangePoint, SeriesKey, Workload

DETECTORS: Final[tuple[type[Detector], ...]] = (level.Level, spike.Spike, drift.Drift, dispersion.Dispersion)
"""The channels; where two alarm at the same step the first one's word counts."""

STATE_VERSION: Final = 2

WARM_UP = 3  # steps after a start or restart that tell nothing: compilation, cold caches
START = 16  # judged steps a baseline begins from
LAG = 12  # steps between seeing and learning
RETELL = math.log(1.25)  # an open change is told again when its level moved by so much
LEAST_CHANGE = 0.05  # smallest change worth telling, in the metric's own unit (seconds)
SLIDING = 8  # steps that the size of a slide stands on: it goes on
BETTER_AFTER = 50  # quiet steps after which an improvement is the baseline
SMALLEST, LARGEST = 1e-9, 1e12  # numbers outside mean nothing, neither as a value nor as work


class Watch:
    """The watch over one series.

    Args:
        key: The series; it is repeated in every change point.
        shares: How much of the value grows with the tokens of a step and with its longest response, before the
            series has shown it (0 to 1 each; see ``Phase.tokens`` and ``Phase.longest``).
        rate: Requested false alarms per step, all channels together, for example 1e-5.
        worse: The direction that alarms: ``up`` for times, ``down`` for throughput.
        accept_after: Quiet steps after which a new level is the baseline.

    Raises:
        ValueError: If ``rate`` is not above 0 and at most 1.
    """

    STATE_VERSION: Final = STATE_VERSION

    def __init__(
        self,
        key: SeriesKey,
        shares: tuple[float, float],
        rate: float,
        *,
        worse: Literal["up", "down"] = "up",
        accept_after: int = 200,
    ) -> None:
        if not 0.0 < rate <= 1.0:
            raise ValueError(
                f"series {key.metric} of run {key.run}: rate is {rate}, give false alarms per step (0 to 1)"
            )
        self.key = key
        self._shift: ChangePoint | None = None
        self._swing: ChangePoint | None = None
        self._worse: Literal["up", "down"] = worse
        self._sign = 1.0 if worse == "up" else -1.0
        self._accept_after = accept_after
        self.expectation: float | None = None
        """What the old baseline expected of the last step, in the metric's own unit; None before there is one."""
        self._since = 0
        self._waiting: list[tuple[int, float, float, float]] = []
        self._pending: list[Seen] = []
        self._baseline = Baseline(*shares)
        self._detectors: tuple[Detector, ...] = tuple(detector(rate) for detector in DETECTORS)
        self._rival: Rival | None = None
        self._noise: Noise | None = None

    def update(self, step: int, value: float, work: Workload, *, restart: bool = False) -> tuple[ChangePoint, ...]:
        """Judge the value of one step; zero, negative and non-finite values are no values.

        ``restart`` says that this is the first step after a start or a resume of the run: the baseline stays, a change
        that was open is over, and the first steps are not judged.  Most steps answer with an empty tuple.
        """
        if restart:
            self._since = 0
            self._shift = None
            self._quieten()
            self._judge_from(None)
        if not SMALLEST < value < LARGEST:
            return ()
        self._since += 1
        if self._since <= WARM_UP:
            return ()
        y = self._sign * math.log(value)
        tokens, longest = work
        tokens = tokens if tokens is not None and SMALLEST < tokens < LARGEST else 0.0
        longest = longest if longest is not None and SMALLEST < longest < LARGEST else 0.0
        baseline, rival, noise = self._baseline, self._rival, self._noise
        if not baseline.ready:
            self._collect(step, y, tokens, longest)
            return ()
        offset = rival.offset if rival is not None else 0.0
        seen = baseline.judge(step, y, *baseline.relative(tokens, longest), offset)
        self.expectation = math.exp(self._sign * (y - seen.residual - offset))
        alarm = self._ask(seen)
        told: tuple[ChangePoint, ...] = ()
        if rival is not None:
            told = self._compete(rival, seen, seen.residual + offset)
        if alarm is not None and self._rival is rival and not told:
            told = self._heed(alarm, seen, seen.residual + offset, offset + alarm.size)
        if noise is not None and not told:
            told = self._calm(noise, seen, seen.residual + offset)
        if self._rival is None and self._noise is None:
            self._learn(seen)
        return told

    @property
    def change(self) -> ChangePoint | None:
        """The open change as last told, None while there is none; one of the noise where no other is open."""
        return self._shift or self._swing

    @property
    def current(self) -> ChangePoint | None:
        """The open change, its effect as all steps since have shown it."""
        change, rival = self._shift, self._rival
        if change is None or rival is None or not rival.lasting:
            return self.change
        effect = math.exp(self._sign * rival.size)
        return change._replace(effect=effect, after=change.before * effect)

    def expected(self, work: Workload) -> float | None:
        """What the old baseline expects of this work, in the metric's own unit; None before there is one."""
        baseline = self._baseline
        if not baseline.ready:
            return None
        relative = baseline.relative(_known(work.tokens), _known(work.longest))
        return math.exp(self._sign * baseline.expect(*relative))

    def tune(self, rate: float | None, accept_after: int) -> None:
        """Ask for another rate of false alarms unless it is None; accept a new level after so many quiet steps."""
        self._accept_after = accept_after
        if rate is not None:
            for detector in self._detectors:
                detector.rate = rate

    def state(self) -> dict[str, Any]:
        """Everything, JSON-safe and exact: a restored watch goes on bit for bit as this one would."""
        return {
            "worse": self._worse,
            "accept_after": self._accept_after,
            "since": self._since,
            "waiting": [list(row) for row in self._waiting],
            "pending": [list(seen) for seen in self._pending],
            "baseline": self._baseline.state(),
            "detectors": {detector.KIND: detector.state() for detector in self._detectors},
            "rival": None if self._rival is None else self._rival.state(),
            "noise": None if self._noise is None else self._noise.state(),
            "shift": _written(self._shift),
            "swing": _written(self._swing),
        }

    @classmethod
    def from_state(cls, key: SeriesKey, state: dict[str, Any]) -> Self:
        """Inverse of :meth:`state`, for a state of this ``STATE_VERSION``."""
        watch = cls(key, (0.0, 0.0), 1.0, worse=state["worse"], accept_after=state["accept_after"])
        watch._since = state["since"]
        watch._waiting = [(step, y, tokens, longest) for step, y, tokens, longest in state["waiting"]]
        watch._pending = [Seen(*row) for row in state["pending"]]
        watch._baseline = Baseline.from_state(state["baseline"])
        watch._detectors = tuple(detector.from_state(state["detectors"][detector.KIND]) for detector in DETECTORS)
        watch._rival = None if state["rival"] is None else Rival.from_state(state["rival"])
        watch._noise = None if state["noise"] is None else Noise.from_state(state["noise"])
        watch._shift = None if state["shift"] is None else ChangePoint(series=key, **state["shift"])
        watch._swing = None if state["swing"] is None else ChangePoint(series=key, **state["swing"])
        return watch

    def _collect(self, step: int, y: float, tokens: float, longest: float) -> None:
        """Gather the steps a baseline begins from; once there are enough, run them through it without a word."""
        self._waiting.append((step, y, tokens, longest))
        if len(self._waiting) < START:
            return
        rows, self._waiting = self._waiting, []
        baseline = self._baseline
        baseline.begin([row[1] for row in rows], [row[2] for row in rows], [row[3] for row in rows])
        for at, value, t, m in rows:
            seen = baseline.judge(at, value, *baseline.relative(t, m), 0.0)
            self._ask(seen)
            self._learn(seen)

    def _ask(self, seen: Seen) -> Alarm | None:
        """Show a step to every channel; the first one's alarm."""
        alarm = None
        for detector in self._detectors:
            found = detector.update(seen, self._baseline)
            if alarm is None:
                alarm = found
        return alarm

    def _learn(self, seen: Seen) -> None:
        """Put a step in line to be learned, and learn the one whose turn it is."""
        pending, detectors, baseline = self._pending, self._detectors, self._baseline
        pending.append(seen)
        if len(pending) <= LAG:
            return
        old = pending.pop(0)
        for detector in detectors:
            if detector.suspects:
                return
        baseline.learn(old)
        for detector in detectors:
            detector.learn(old, LAG, baseline)

    def _compete(self, rival: Rival, seen: Seen, residual: float) -> tuple[ChangePoint, ...]:
        """A change is open, or followed silently: does this step end it, move it, or make it the baseline?"""
        baseline, change = self._baseline, self._shift
        if rival.vote(seen.step, residual, baseline):
            return self._end(rival.back, rival.back_at, seen, residual)
        rival.follow(seen.residual, baseline.sd)
        if rival.quiet >= (min(BETTER_AFTER, self._accept_after) if change is None else self._accept_after):
            if rival.lasting:
                baseline.shift(rival.size, rival.steps)
            self._shift = None
            self._judge_from(None)
            if change is None:
                return ()
            return (self._point(_lasting(change.kind), "settled", seen, residual, change.onset, rival.size),)
        if change is not None and rival.lasting and self._moved(change, rival.size):
            rival.quiet = 0
            return self._tell(_lasting(change.kind), "changed", seen, residual, change.onset, rival.size)
        return ()

    def _heed(self, alarm: Alarm, seen: Seen, residual: float, size: float) -> tuple[ChangePoint, ...]:
        """An alarm, ``size`` from the old baseline: what it opens, confirms, moves, ends or silently begins."""
        if alarm.kind == "dispersion":
            return self._unsettle(alarm, seen, residual)
        change, old = self._shift, self._rival
        point = self._point(alarm.kind, "opened", seen, residual, alarm.onset, size)
        matters = abs(point.after - point.before) >= LEAST_CHANGE
        if alarm.kind == "spike":
            if change is not None or size < spike.LEAST or not matters:
                return ()
            rival = Rival(size, lasting=False)
            if old is None:
                self._rival = rival  # the level channel keeps its evidence: it is what will confirm the spike, or not
            else:
                self._judge_from(rival)
            return self._tell("spike", "opened", seen, residual, alarm.onset, size)
        if change is not None and size < level.GATE:
            return self._end(alarm.onset, size, seen, residual)
        if old is None:
            del self._pending[-alarm.steps :]  # what belongs to the change is never learned
        least, steps = level.GATE, alarm.steps
        if alarm.kind == "drift":
            least, steps = drift.GATE, min(steps, SLIDING)
        self._judge_from(Rival(size, lasting=True, steps=steps) if abs(size) >= least else None)
        if change is None:
            action: Action | None = "opened" if size >= least and matters else None
        else:
            action = "changed" if change.kind == "spike" or self._moved(change, size) else None
        kind = alarm.kind if change is None or change.kind == "spike" else change.kind
        return () if action is None else self._tell(kind, action, seen, residual, alarm.onset, size)

    def _unsettle(self, alarm: Alarm, seen: Seen, residual: float) -> tuple[ChangePoint, ...]:
        """More noise: it opens a change where none is open, and is what steps are judged by from now on."""
        if self._rival is not None or self._noise is not None:
            return ()
        point = self._point("dispersion", "opened", seen, residual, alarm.onset, alarm.size)
        if point.after - point.before < LEAST_CHANGE:
            return ()
        self._noise = Noise.begin(self._baseline, point.effect)
        del self._pending[-alarm.steps :]
        self._judge_from(None)
        self._swing = point
        return (point,)

    def _calm(self, noise: Noise, seen: Seen, residual: float) -> tuple[ChangePoint, ...]:
        """The series is noisier: is it back at the old noise, or is this its noise now?"""
        swing = self._swing
        if noise.vote(seen, self._baseline):
            point = self._point("dispersion", "returned", seen, residual, noise.back, 0.0)
            self._quieten()
        elif noise.steps >= self._accept_after and swing is not None:
            point = self._point("dispersion", "settled", seen, residual, swing.onset, 0.5 * math.log(noise.factor))
            self._noise = self._swing = None
        else:
            return ()
        return (point,)

    def _quieten(self) -> None:
        """Judge by the old noise again."""
        if self._noise is not None:
            self._noise.end(self._baseline)
            self._noise = self._swing = None

    def _end(self, onset: int, size: float, seen: Seen, residual: float) -> tuple[ChangePoint, ...]:
        """Back at the old baseline since ``onset``, to within ``size``."""
        change, self._shift = self._shift, None
        self._judge_from(None)
        return () if change is None else (self._point(change.kind, "returned", seen, residual, onset, size),)

    def _judge_from(self, rival: Rival | None) -> None:
        """Take residuals from another level: what was seen from the last one is no evidence any more."""
        self._rival = rival
        self._baseline.forget_past()
        for detector in self._detectors:
            detector.rebase()

    def _moved(self, change: ChangePoint, size: float) -> bool:
        return abs(size - self._sign * math.log(change.effect)) >= RETELL

    def _tell(
        self, kind: Kind, action: Action, seen: Seen, residual: float, onset: int, size: float
    ) -> tuple[ChangePoint, ...]:
        self._shift = self._point(kind, action, seen, residual, onset, size)
        return (self._shift,)

    def _point(self, kind: Kind, action: Action, seen: Seen, residual: float, onset: int, size: float) -> ChangePoint:
        """In the metric's own unit; ``residual`` is the latest step's from the old baseline, ``size`` the change's."""
        before, sign = math.exp(self._sign * (seen.y - residual)), self._sign
        if kind == "dispersion":
            usual = self._baseline if self._noise is None else self._noise
            before, sign = before * math.sqrt(usual.variance), 1.0
        effect = math.exp(sign * size)
        return ChangePoint(self.key, kind, action, seen.step, onset, effect, "ratio", before, before * effect)


def _lasting(kind: Kind) -> Kind:
    """What a change of this kind is called once it has lasted."""
    return "level" if kind == "spike" else kind


def _known(amount: float | None) -> float:
    """An amount of work, 0 where it is unknown."""
    return amount if amount is not None and SMALLEST < amount < LARGEST else 0.0


def _written(point: ChangePoint | None) -> dict[str, Any] | None:
    """A change point without its series."""
    return None if point is None else {name: value for name, value in point._asdict().items() if name != "series"}
