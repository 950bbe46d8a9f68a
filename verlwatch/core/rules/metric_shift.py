"""MFU or throughput lastingly lower where no phase explains it, or memory that grows."""

from __future__ import annotations

from math import log

from verlwatch.core.metrics import EFFICIENCY
from verlwatch.core.phases import STEP, THROUGHPUT
from verlwatch.core.rules._phase_change import explained_s, step_s
from verlwatch.core.rules._view import View
from verlwatch.core.types import ChangePoint, Diagnosis

NAME = "metric_shift"
NEEDS = "`perf/mfu/actor`, `perf/cpu_memory_used_gb`, `perf/max_memory_allocated_gb` …: those of `detection.metrics`"
TURN_ON = "`detection.metrics` in the configuration; verl prints MFU and memory of its own accord"
EXPLAINED = 0.5
"""Share of a change which the phases must account for so that the metric itself is not told."""
HOST_MEMORY = "cpu_memory_used_gb"
_MFU = (
    "The phase takes as long as before for its tokens, so fewer FLOPs were counted: look at the lengths of sequences, "
    "packing and micro batch sizes.",
)
ADVICE = {
    THROUGHPUT: ("Steps take as long as before and bring fewer tokens: look at filtered or aborted samples.",),
    "mfu_actor": _MFU,
    "mfu_critic": _MFU,
    "mfu_actor_infer": _MFU,
    HOST_MEMORY: (
        "Look at what accumulates on the host before workers are killed: data loader workers, offloaded or pinned "
        "buffers, Ray's object store, other jobs.",
    ),
}
OTHERWISE = (
    "Look at the longest sequences and micro batch sizes before it is out of memory; it is the peak that PyTorch's "
    "allocator has seen since the process started, without the memory of vLLM's pools and NCCL.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each judged metric that has changed for the worse to stay."""
    return tuple(
        _diagnosis(view, point)
        for name in EFFICIENCY
        if name in view.metrics and (point := view.changes.get(name)) and _is_told(view, point)
    )


def _is_told(view: View, point: ChangePoint) -> bool:
    """Whether it lasts, is large enough, and is no consequence of what is told already."""
    metric = point.series.metric
    if point.kind not in {"level", "drift"}:
        return False
    if metric in view.told:
        return True
    if any(filling.subject == metric for filling in view.ahead.fillings):
        return False  # that it will be full says more
    return abs(point.effect - 1.0) >= EFFICIENCY[metric].least and not _is_explained(view, point)


def _is_explained(view: View, point: ChangePoint) -> bool:
    """Whether the slower phases, or the slower step, account for the metric; nothing accounts for memory."""
    metric = point.series.metric
    if metric == THROUGHPUT:
        lost = step_s(view) * (1 / point.effect - 1)
        return _slowed(view, STEP) > 0.0 or explained_s(view) > EXPLAINED * lost
    slowed = sum(_slowed(view, name) for name in EFFICIENCY[metric].phases)
    return slowed > 0.0 and slowed >= EXPLAINED * -log(point.effect)


def _slowed(view: View, metric: str) -> float:
    """How much slower it has become, as a logarithm; 0 where it has not."""
    point = view.changes.get(metric)
    return 0.0 if point is None or point.kind == "dispersion" else max(0.0, log(point.effect))


def _diagnosis(view: View, point: ChangePoint) -> Diagnosis:
    metric, measure = point.series.metric, EFFICIENCY[point.series.metric]
    before, after = (f"{value:.4g} {measure.unit}" for value in (point.before, point.after))
    change = f"{abs(point.effect - 1):.0%} {'lower' if measure.worse == 'down' else 'higher'}"
    since = f"since {'about ' if point.kind == 'drift' else ''}step {point.onset}"
    evidence = [f"{since}: {after} instead of {before}"]
    if covers := _covers(view, metric):
        evidence.append(covers)
    if measure.phases:
        evidence.append("no phase explains it")
    return Diagnosis(
        rule=NAME,
        run=view.run,
        subject=metric,
        severity="info" if measure.worse == "down" else "warning",
        onset=point.onset,
        step=point.step,
        ratio=point.effect,
        before=point.before,
        after=point.after,
        cost_s=0.0,
        summary=f"{metric} has been {change} than before {since}, {after} by now",
        evidence=tuple(evidence),
        advice=ADVICE.get(metric, OTHERWISE),
    )


def _covers(view: View, metric: str) -> str:
    """Whose memory a metric tells of.

    Source: verl's ``DataProto.concat`` keeps the first rank's metrics up to 0.5, reduces by maximum in 0.6 and 0.7; the
    ``TensorDict`` of 0.8 to 0.9.1 keeps the first again.
    """
    if metric == HOST_MEMORY:
        return "memory used on the host of one rank, by everything that runs there"
    if "max_memory" not in metric:
        return ""
    if view.release in {"0.6-0.7.0", ">=0.7.1"}:
        return "the maximum over the ranks; which of them is not printed"
    if view.release:
        return "rank 0 only: this release prints no other rank's"
    return "rank 0 only in verl up to 0.5 and from 0.8 on, the maximum over the ranks in 0.6 and 0.7"
