"""A run of the engine in the words of the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verlwatch.core.engine import Run
from verlwatch.core.phases import JUDGED, PHASES, STEP, THROUGHPUT
from verlwatch.core.work import experiment
from verlwatch.status import GpuStatus, PhaseState, PhaseStatus, RunStatus, StateStatus

_ORDER = {name: place for place, name in enumerate((*(phase.name for phase in PHASES), STEP))}


def run_status(run: Run, now: float) -> RunStatus:
    """How a run stands at ``now``."""
    cards = run.hardware.cards
    hint = cards.not_compared
    step_seconds = run.judged.recent.get(STEP)
    step = step_seconds[-1] if step_seconds else None
    return RunStatus(
        name=run.name,
        attempt=run.attempts.current,
        step=run.step if run.step >= 0 else None,
        total_steps=run.planned,
        step_at=run.step_at or None,
        age_s=max(0.0, now - run.step_at) if run.step_at else None,
        state=run.life.state,
        state_at=run.life.past[-1].at if run.life.past else None,
        states=tuple(
            StateStatus(state=one.state, at=one.at, attempt=one.attempt, step=one.step if one.step >= 0 else None)
            for one in run.life.past
        ),
        steps_seen=run.steps_seen,
        verl_version=run.release or None,
        experiment=experiment(run.config),
        phases=tuple(
            _phase(run, metric, step)
            for metric in sorted(run.judged.recent, key=lambda metric: _ORDER.get(metric, len(_ORDER)))
            if metric in JUDGED and metric != THROUGHPUT
        ),
        gpus=tuple(map(gpu_status, cards.table())),
        ranks_compared=not hint,
        ranks_hint=hint,
    )


_STATE_OF: dict[str, PhaseState] = {"spike": "slow", "level": "shift", "drift": "sliding", "dispersion": "noisy"}


def gpu_status(row: Mapping[str, Any]) -> GpuStatus:
    """A row of `Cards.table`."""
    return GpuStatus(recent=tuple(row["strip"]), **{name: value for name, value in row.items() if name != "strip"})


def _phase(run: Run, metric: str, step: float | None) -> PhaseStatus:
    recent = tuple(run.judged.recent[metric])
    now, expected, change = recent[-1], run.judged.expected.get(metric), run.judged.changes.get(metric)
    state: PhaseState = "warm-up" if expected is None and metric in run.judged.series else "normal"
    if change is not None:
        state = _STATE_OF[change.kind]
    return PhaseStatus(
        name=metric,
        now_s=now,
        baseline_s=expected,
        ratio=now / expected if expected else None,
        share=now / step if step else None,
        state=state,
        recent=recent,
    )
