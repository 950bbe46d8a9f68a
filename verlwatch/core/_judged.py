"""The judged series of one run: each step's seconds go to their series, and what changed to the rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any

from verlwatch.core import steps
from verlwatch.core._courses import Courses
from verlwatch.core._early import Early
from verlwatch.core._finite import Finite
from verlwatch.core.incidents import Ending
from verlwatch.core.metrics import MEASURES, MOVING
from verlwatch.core.outlook import Forecasts
from verlwatch.core.phases import JUDGED, STEP, THROUGHPUT, phase
from verlwatch.core.rules import NOTHING_AHEAD, RULES, Ahead, Rule, View
from verlwatch.core.series import Watch
from verlwatch.core.settings import Settings
from verlwatch.core.types import ChangePoint, ClosedAs, Diagnosis, Json, SeriesKey, State, Workload

RECENT = 24
SETTLING = 3
SLIGHT = 2.0
"""A phase that takes less than the least share of a step that is told, by this factor, is not judged yet."""
MONTH_S = 30 * 86400.0
_ENDING: dict[str, ClosedAs] = {"returned": "resolved", "settled": "accepted"}

At = tuple[int, int]
"""Attempt and step."""


class JudgedSeries:
    """By metric: its series, its last values, and what is expected of it."""

    def __init__(self, run: str, settings: Settings) -> None:
        self.run = run
        self.settings = settings
        self._limits = dict(settings.limits)
        self.series: dict[str, Watch] = {}
        self.last: dict[str, At] = {}
        """Of the last judged value."""
        self.recent: dict[str, deque[float]] = {}
        self.expected: dict[str, float] = {}
        self.quarantined: dict[str, str] = {}
        """Series or rule -> why it is no longer judged."""
        self._waiting: dict[str, deque[tuple[int, int, float, float | None, float | None]]] = {}
        """Of metrics not judged yet: attempt, step, value, tokens and longest response."""
        self._dirty: set[str] = set()
        self._early = Early()
        self._courses = Courses()
        self.finite = Finite()
        self.is_async = False
        self.forecasts = Forecasts(settings.of(run).host_memory_gb)

    def judge(self, at: At, facts: steps.StepFacts, measured: Mapping[str, float]) -> tuple[bool, dict[str, Ending]]:
        """Shows each metric's series its value: whether any value was new, and the changes that ended.

        ``measured`` are the measures that are judged beside the phases, as `core.metrics` has them.
        """
        endings: dict[str, Ending] = {}
        fresh = False
        for metric, value in {**measured, **facts.seconds}.items():
            # late values fill only series that are not past this step
            if at <= self.last.get(metric, (0, -1)) or metric in self.quarantined:
                continue
            work = facts.work if metric not in MEASURES or metric == THROUGHPUT else Workload()
            if metric not in MEASURES and metric not in self.expected:
                self._early.update(SeriesKey(self.run, metric), at, value, self.recent.get(metric, ()))
            watch = self.series.get(metric) or self._take_up(metric, at, value, work, facts.seconds.get(STEP, 0.0))
            fresh = fresh or metric in self.recent
            if watch is None:
                continue
            was_held = self._courses.is_held(metric)
            points = self._update(watch, at, value, work)
            if metric in self.expected and self._early.forget(metric):
                endings[metric] = Ending("accepted", at[1])
            for point in points:
                if point.action in _ENDING:
                    last = point.onset - 1 if point.action == "returned" else at[1]
                    endings[metric] = Ending(_ENDING[point.action], last)
                if point.action == "settled" and was_held:
                    self._leave(metric)
        return fresh, endings

    def diagnose(
        self,
        step: int,
        now: Mapping[str, float],
        told: frozenset[str],
        *,
        values: Mapping[str, float],
        release: str,
        ahead: Ahead = NOTHING_AHEAD,
    ) -> tuple[Diagnosis, ...]:
        """What the rules make of the open changes; ``told`` are the subjects of open incidents.

        ``now`` are the step's judged values by metric, ``values`` all that the ``release`` printed of it, ``ahead``
        what the `forecasts` say.
        """
        changes, early = self.changes, self._early.changes
        not_finite = self.finite.look(step, values)
        if not (changes or early or self._limits or not_finite or any(ahead)):
            return ()
        view = View(
            self.run,
            step,
            changes,
            now,
            self.expected,
            self.settings.min_step_share,
            told,
            early={metric: change for metric, change in early.items() if metric in now},
            limits=self._limits,
            is_async=self.is_async,
            metrics=self._measures(),
            release=release,
            per_token=steps.per_token_ms(values, now),
            values=values,
            not_finite=not_finite,
            ahead=ahead,
        )
        return tuple(diagnosis for rule in RULES for diagnosis in self._ask(rule, view))

    @property
    def changes(self) -> dict[str, ChangePoint]:
        """Open changes by metric."""
        return {
            m: self._courses.change(m, c)
            for m, watch in self.series.items()
            if watch.change is not None and self._is_judged(m) and (c := watch.current)
        }

    def _measures(self) -> frozenset[str]:
        """The measures judged beside the phases; throughput is judged in the step's place where none is printed."""
        return frozenset(m for m in self.settings.metrics if m != THROUGHPUT or STEP in self.recent)

    def _is_judged(self, metric: str) -> bool:
        if metric == THROUGHPUT:
            return STEP not in self.recent or metric in self.settings.metrics
        return metric in JUDGED or metric in self.settings.measures

    def tune(self, settings: Settings) -> None:
        """Takes up other settings; baselines stay, and so does what the settings leave as it is."""
        before, self.settings = self.settings, settings
        self._limits = dict(settings.limits)
        self.forecasts.limits.host_memory_gb = settings.of(self.run).host_memory_gb
        rate = self._rate() if settings.false_alarms_per_month != before.false_alarms_per_month else None
        for watch in self.series.values():
            watch.tune(rate, settings.accept_after_steps)

    # ------------------------------------------------------------------------------------------------ series
    def _take_up(self, metric: str, at: At, value: float, work: Workload, step_s: float) -> Watch | None:
        """The series of a metric that is judged from now on; None if it is not, or not yet.

        The first values only wait: they are the slowest, and no measure of how many steps a month has.  So do those of
        a phase that takes so little of a step that it would have to triple before anybody is told.  When it takes
        more, what has waited is shown to its series first: the very step is judged.  So does what is still nothing,
        as preemptions that there are none of.
        """
        if not self._is_judged(metric):
            return None
        recent = self.recent.setdefault(metric, deque(maxlen=RECENT))
        past = self._waiting.setdefault(metric, deque(maxlen=RECENT))
        least = 0.0 if metric in MEASURES else self.settings.min_step_share / SLIGHT * step_s
        if value < least or len(recent) < SETTLING or (value == 0.0 and metric in MOVING):
            self.last[metric] = at
            recent.append(value)
            past.append((*at, value, *work))
            return None
        watch = self.series[metric] = self._watch(metric)
        attempt = 0
        for earlier, step, old, tokens, longest in self._waiting.pop(metric):
            self._show(watch, step, old, Workload(tokens, longest), restart=earlier != attempt)
            attempt = earlier
        return watch

    def _leave(self, metric: str) -> None:
        """A metric has settled far off its course: where it is now, it begins anew."""
        del self.series[metric], self.expected[metric]
        self._courses.forget(metric)

    def _watch(self, metric: str) -> Watch:
        """A new series."""
        # waiting follows no tokens, nor does a measure
        shares = phase("adv" if metric in MEASURES or (metric == "gen" and self.is_async) else metric)
        return Watch(
            SeriesKey(self.run, metric),
            (shares.tokens, shares.longest),
            self._rate(),
            worse=MEASURES[metric].worse if metric in MEASURES and metric not in MOVING else "up",
            accept_after=self.settings.accept_after_steps,
        )

    def _rate(self) -> float:
        """False alarms per step that a series may raise: the run's budget over a month's steps and all it prints.

        What training moves has no part of the budget, and raises no alarm before it has moved far: counted in, it
        would make the phases slower to be told.
        """
        seconds = self.recent.get(STEP) or [
            sum(median(values) for m, values in self.recent.items() if m not in MEASURES)
        ]
        step_s = min(max(median(seconds), 1.0), 3600.0)
        sharing = max(1, len(self.recent.keys() - MOVING))
        return min(1.0, self.settings.false_alarms_per_month / (MONTH_S / step_s * sharing))

    def _update(self, watch: Watch, at: At, value: float, work: Workload) -> tuple[ChangePoint, ...]:
        metric = watch.key.metric
        restart = self.last.get(metric, (0, 0))[0] != at[0]
        self.last[metric] = at
        self.recent[metric].append(value)
        self._dirty.add(metric)
        points = self._show(watch, at[1], value, work, restart=restart)
        if watch.expectation is not None:
            self.expected[metric] = self._courses.meant(metric, watch.expectation)
        return points

    # A series or a rule that raises is set aside and reported; the rest of the run, and other runs, go on.
    def _show(self, watch: Watch, step: int, value: float, work: Workload, *, restart: bool) -> tuple[ChangePoint, ...]:
        metric = watch.key.metric
        try:
            points = watch.update(step, self._courses.shown(metric, value), work, restart=restart)
            self._courses.follow(metric, value, watch.current)
        except Exception as error:  # noqa: BLE001 - the guarded border around a run's judgement
            self.quarantined[metric] = repr(error)[:300]
            return ()
        return points

    def _ask(self, rule: Rule, view: View) -> tuple[Diagnosis, ...]:
        if rule.NAME in self.quarantined:
            return ()
        try:
            return rule.diagnose(view)
        except Exception as error:  # noqa: BLE001 - the guarded border around a run's judgement
            self.quarantined[rule.NAME] = repr(error)[:300]
            return ()

    # ------------------------------------------------------------------------------------------------ state
    def states(self) -> list[State]:
        """The series that changed since the last call, for the store."""
        out = [
            State("series", f"{self.run}\0{metric}", Watch.STATE_VERSION, self._state_of(metric))
            for metric in sorted(self._dirty)
        ]
        self._dirty.clear()
        return out

    def _state_of(self, metric: str) -> Json | None:
        return self.series[metric].state() if metric in self.series else None

    def begin_anew(self) -> None:
        """Forgets what is known of every series: what comes does other work."""
        self._dirty.update(self.series)
        self._early, self.finite = Early(), Finite()
        for known in (self.series, self.last, self.recent, self.expected, self._waiting, self._courses):
            known.clear()

    def forgotten(self) -> list[State]:
        """What makes the store forget every series."""
        return [State("series", f"{self.run}\0{metric}", Watch.STATE_VERSION, None) for metric in sorted(self.series)]

    def state(self) -> dict[str, Any]:
        """JSON-safe, without the series: each of them has a state of its own."""
        return {
            "judged": {metric: list(at) for metric, at in self.last.items()},
            "recent": {metric: list(values) for metric, values in self.recent.items()},
            "waiting": {metric: [list(row) for row in rows] for metric, rows in self._waiting.items()},
            "expected": self.expected,
            "forecasts": self.forecasts.state(),
            "early": self._early.state(),
            "courses": self._courses.state(),
            "finite": self.finite.state(),
            "is_async": self.is_async,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self.last = {metric: (at[0], at[1]) for metric, at in data["judged"].items()}
        self.recent = {metric: deque(values, maxlen=RECENT) for metric, values in data["recent"].items()}
        self._waiting = {m: deque(map(tuple, rows), maxlen=RECENT) for m, rows in data["waiting"].items()}
        self.expected = dict(data["expected"])
        if "forecasts" in data:
            self.forecasts.restore(data["forecasts"])
        self._early.restore(self.run, data["early"])
        self._courses.restore(data["courses"])
        self.finite.restore(data["finite"])
        self.is_async = data["is_async"]

    def restore_series(self, metric: str, data: Mapping[str, Any]) -> None:
        """Takes up a series where it was."""
        self.series[metric] = Watch.from_state(SeriesKey(self.run, metric), dict(data))
