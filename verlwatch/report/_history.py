"""A finished log as numbers: every step once, and the incidents that replaying it opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from verlwatch.core import steps
from verlwatch.core.engine import Engine
from verlwatch.core.phases import STEP, THROUGHPUT
from verlwatch.core.types import Diagnosis, Transition
from verlwatch.replay import Progress, replay

STRETCH = 50
"""At most so many steps on each side of a change make its medians."""
_SHOWN = ("timing_s/", "timing/", "perf/", "response_length/", "prompt_length/")


@dataclass(frozen=True, slots=True)
class Line:
    """One step: seconds by metric (STEP as printed in ``total``), tokens of its batch, longest response."""

    attempt: int
    step: int
    total: float | None
    seconds: dict[str, float]
    tokens: float | None
    longest: float | None

    @property
    def length(self) -> float:
        """Seconds of the step: as printed, else the sum of what is known of it."""
        parts = (seconds for metric, seconds in self.seconds.items() if metric != THROUGHPUT)
        return sum(parts) if self.total is None else self.total


@dataclass(frozen=True, slots=True)
class Found:
    """One incident as the log tells it, with plain medians of the metric before its onset and from there to ``last``.

    Seconds (tokens/s/GPU for throughput), and milliseconds per token where the log prints tokens.  ``last`` is the last
    step that it slowed, ``until`` the one that told so; None while it is open.
    """

    opened: Transition
    latest: Transition
    last: int | None
    until: int | None
    before: float | None
    during: float | None
    before_per_token: float | None
    during_per_token: float | None


@dataclass(slots=True)
class History:
    """All steps with timing, in order, and all incidents."""

    run: str
    lines: list[Line] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    release: str = ""
    planned: int | None = None
    still: dict[str, Diagnosis] = field(default_factory=dict)
    """What holds of each open incident at the last step."""

    def found(self) -> list[Found]:
        """Each incident once, in the order in which they opened."""
        incidents: dict[str, list[Transition]] = {}
        for transition in self.transitions:
            incidents.setdefault(transition.incident, []).append(transition)
        return [self._found(life) for life in incidents.values()]

    def _found(self, life: Sequence[Transition]) -> Found:
        opened, latest = life[0], life[-1]
        if (now := self.still.get(latest.incident)) is not None:
            latest = replace(latest, ratio=now.ratio, before=now.before, after=now.after)
        onset, last = latest.onset_step, latest.last_step
        lines = [line for line in self.lines if line.attempt == opened.attempt]
        before = [line for line in lines if onset - STRETCH <= line.step < onset]
        during = [line for line in lines if onset <= line.step and (last is None or line.step <= last)][:STRETCH]
        return Found(
            opened,
            latest,
            last,
            latest.step if latest.event == "closed" else None,
            _median(before, opened.phase),
            _median(during, opened.phase),
            _median_per_token(before, opened.phase),
            _median_per_token(during, opened.phase),
        )


def read(paths: Sequence[Path], run: str, engine: Engine, progress: Progress | None = None) -> History:
    """Replays ``paths`` as one run.

    Raises:
        LogError: a file cannot be read.
    """
    history = History(run)
    told: dict[tuple[int, int], dict[str, float]] = {}
    releases: dict[int, str] = {}
    for outcome, _ in replay(engine, paths, run, progress):
        history.transitions += outcome.transitions
        for row in outcome.steps:
            # what another source told of the step first wins, as in the store
            values = {key: value for key, value in row.values.items() if key.startswith(_SHOWN)}
            told[row.attempt, row.step] = values | told.get((row.attempt, row.step), {})
            releases[row.attempt] = engine.runs[row.run].release
    state = engine.runs.get(run)
    if state is not None:
        history.release, history.planned = state.release, state.planned
        history.still = {incident.id: incident.diagnoses[0] for incident in state.incidents}
    prints_total = any(steps.TOTAL_TOKENS in values for values in told.values())
    history.lines = [
        _line(attempt, step, values, releases[attempt], prints_total=prints_total)
        for (attempt, step), values in sorted(told.items())
        if steps.timings(values)
    ]
    return history


def _line(attempt: int, step: int, values: Mapping[str, float], release: str, *, prints_total: bool) -> Line:
    facts = steps.read(values, release, prints_total=prints_total)
    total = steps.timings(values).get(STEP)
    return Line(attempt, step, total, dict(facts.seconds), facts.work.tokens, facts.work.longest)


def _median(lines: Sequence[Line], metric: str) -> float | None:
    values = [line.seconds[metric] for line in lines if metric in line.seconds]
    return median(values) if values else None


def _median_per_token(lines: Sequence[Line], metric: str) -> float | None:
    """Milliseconds per token; None for what is no time."""
    values = [
        1000 * line.seconds[metric] / line.tokens
        for line in lines
        if metric in line.seconds and line.tokens and metric != THROUGHPUT
    ]
    return median(values) if values else None
