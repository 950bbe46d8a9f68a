"""Runs and their phases in the words of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verlwatch.shell.http import _gpu_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.core import Metric

    from verlwatch.shell.http.metrics import Exposition
    from verlwatch.status import RunStatus

_OF_RUN, _OF_PHASE = 7, 3
"""So many series has a run at most, and a phase."""
_AT_WORK = frozenset({"running", "validating", "saving"})


def runs(to: Exposition, known: Sequence[RunStatus]) -> Iterator[Metric]:
    """Runs and their phases, in the order in which they are to have room; finished ones last."""
    labels, most = ["run"], _fitting(to, known)
    yield to.gauge(
        "run_running",
        "1 while the run makes steps, validates or saves.",
        labels,
        [((run.name,), run.state in _AT_WORK) for run in known],
        most,
    )
    yield to.gauge(
        "run_state",
        "1 for the state that the run is in; others are absent.",
        ["run", "state"],
        [((run.name, run.state), 1) for run in known],
        most,
    )
    yield to.gauge(
        "run_state_timestamp_seconds",
        "When the run came into its state.",
        labels,
        [((run.name,), run.state_at) for run in known],
        most,
    )
    yield to.gauge("run_step", "Last step seen.", labels, [((run.name,), run.step) for run in known], most)
    yield to.gauge(
        "run_steps_planned",
        "Steps the run is to make.",
        labels,
        [((run.name,), run.total_steps) for run in known],
        most,
    )
    yield to.gauge(
        "run_last_step_timestamp_seconds",
        "When the last step arrived.",
        labels,
        [((run.name,), run.step_at) for run in known],
        most,
    )
    yield to.counter("run_steps_total", "Steps seen.", labels, [((run.name,), run.steps_seen) for run in known], most)
    yield from _phases(to, known, most)


def _fitting(to: Exposition, runs: Sequence[RunStatus]) -> int:
    """How many of the runs are shown: each whole, and a finished one only beside all that the others have."""
    left, count = to.room, 0
    for run in runs:
        cards = 0 if run.state == "finished" else len(run.gpus)
        left -= _OF_RUN + _OF_PHASE * len(run.phases) + _gpu_metrics.OF_CARD * cards
        if left < 0 and run.state == "finished":
            break
        count += 1
    return min(count, to.room // _OF_RUN)


def _phases(to: Exposition, runs: Sequence[RunStatus], most_runs: int) -> Iterator[Metric]:
    phases = [((run.name, phase.name), phase) for run in runs for phase in run.phases]
    labels, most = ["run", "phase"], sum(len(run.phases) for run in runs[:most_runs])
    yield to.gauge(
        "phase_seconds", "Seconds in the last step.", labels, [(key, one.now_s) for key, one in phases], most
    )
    yield to.gauge(
        "phase_baseline_seconds",
        "Seconds the baseline expects of that step's work.",
        labels,
        [(key, one.baseline_s) for key, one in phases],
        most,
    )
    yield to.gauge(
        "phase_slowdown_ratio",
        "Seconds divided by what the baseline expects.",
        labels,
        [(key, one.ratio) for key, one in phases],
        most,
    )
