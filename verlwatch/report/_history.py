"""A finished log as numbers: every step once, and the incidents that replaying it opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from verlwatch.core import steps
from verlwatch.core.engine import Engine
from verlwatch.core.phases import STEP
from verlwatch.core.types import StepRow, Transition
from verlwatch.replay import Progress, replay

STRETCH = 50
"""At most so many steps on each side of a change make its medians."""


@dataclass(frozen=True, slots=True)
class Line:
    """One step: seconds by metric (STEP as printed in ``total``), tokens of its batch, longest response."""

    attempt: int
    step: int
    total: float | None
    seconds: dict[str, float]
    tokens: float | None
    longest: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """One incident as the log tells it, with plain medians of the metric before its onset and while it lasted.

    Seconds (tokens/s/GPU for throughput), and milliseconds per token where the log prints tokens.
    """

    opened: Transition
    latest: Transition
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

    def found(self) -> list[Found]:
        """Each incident once, in the order in which they opened."""
        incidents: dict[str, list[Transition]] = {}
        for transition in self.transitions:
            incidents.setdefault(transition.incident, []).append(transition)
        return [self._found(life) for life in incidents.values()]

    def _found(self, life: Sequence[Transition]) -> Found:
        opened, latest = life[0], life[-1]
        closed = latest.event == "closed"
        lines = [line for line in self.lines if line.attempt == opened.attempt]
        onset = latest.onset_step
        end = latest.step if closed and latest.closed_as == "resolved" else None
        before = [line for line in lines if onset - STRETCH <= line.step < onset]
        during = [line for line in lines if line.step >= onset and (end is None or line.step < end)][:STRETCH]
        return Found(
            opened,
            latest,
            latest.step if closed else None,
            _median(before, opened.phase),
            _median(during, opened.phase),
            _median(before, opened.phase, per_token=True),
            _median(during, opened.phase, per_token=True),
        )


def read(paths: Sequence[Path], run: str, engine: Engine, progress: Progress | None = None) -> History:
    """Replays ``paths`` as one run.

    Raises:
        OSError: a file cannot be read.
    """
    history = History(run)
    known: dict[tuple[int, int], int] = {}
    for outcome, _ in replay(engine, paths, run, progress):
        history.transitions += outcome.transitions
        for row in outcome.steps:
            _add(history, known, row, engine)
    state = engine.runs.get(run)
    if state is not None:
        history.release, history.planned = state.release, state.planned
    history.lines.sort(key=lambda line: (line.attempt, line.step))
    return history


def _add(history: History, known: dict[tuple[int, int], int], row: StepRow, engine: Engine) -> None:
    """Adds a step, or what a second source tells of it that the first did not."""
    printed = steps.timings(row.values)
    if not printed:
        return
    facts = steps.read(row.values, engine.runs[row.run].release)
    at = (row.attempt, row.step)
    line = Line(row.attempt, row.step, printed.get(STEP), dict(facts.seconds), facts.work.tokens, facts.work.longest)
    if at not in known:
        known[at] = len(history.lines)
        history.lines.append(line)
    else:
        for metric, value in line.seconds.items():
            history.lines[known[at]].seconds.setdefault(metric, value)


def _median(lines: Sequence[Line], metric: str, *, per_token: bool = False) -> float | None:
    values = [
        line.seconds[metric] / (line.tokens / 1000 if per_token and line.tokens else 1.0)
        for line in lines
        if metric in line.seconds and (line.tokens or not per_token)
    ]
    return median(values) if values else None
