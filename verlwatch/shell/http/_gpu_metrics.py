"""The cards of all runs in the words of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.core import Metric

    from verlwatch.shell.http.metrics import Exposition
    from verlwatch.status import GpuStatus, SamplingStatus, Status

    Card = tuple[tuple[str, str, str, str], GpuStatus]

OF_CARD = 5
"""So many series has a card."""
STALE_S = 600.0
"""What a card held so long ago is no more what it holds; so is the last value of one that is missing."""
_LABELS = ("run", "host", "gpu", "rank")
_GIB = float(1 << 30)


def cards(to: Exposition, status: Status) -> Iterator[Metric]:
    """Each number of all cards before the next one: where there is no room, the lesser ones are left out."""
    known = [(_labels(run.name, card), card) for run in status.runs if run.state != "finished" for card in run.gpus]
    fresh = [(key, card) for key, card in known if _is_fresh(card, status.now)]
    yield to.gauge(
        "gpu_memory_used_bytes", "Memory in use on the card.", _LABELS, [(k, _bytes(one.used_gb)) for k, one in fresh]
    )
    yield to.gauge(
        "gpu_memory_offset_bytes",
        "By how much the card is above the median of those that do the same work, at the same instants.",
        _LABELS,
        [(key, _bytes(one.offset_gb)) for key, one in fresh],
    )
    yield to.gauge("gpu_up", "0 while a card that was seen is not.", _LABELS, _seen(known, fresh))
    yield to.gauge(
        "gpu_memory_total_bytes", "Memory of the card.", _LABELS, [(key, _bytes(one.total_gb)) for key, one in fresh]
    )
    yield to.gauge(
        "gpu_utilization_ratio",
        "Share of the time in which the card computed.",
        _LABELS,
        [(key, None if one.utilization is None else one.utilization / 100.0) for key, one in fresh],
    )


def sampling(to: Exposition, counts: SamplingStatus) -> Iterator[Metric]:
    """What this process has left out."""
    yield to.counter("gpu_samples_late_total", "Samples that came too late to be compared.", [], [((), counts.late)])
    yield to.counter("gpu_instants_missed_total", "Instants at which no card was asked.", [], [((), counts.missed)])
    yield to.counter("gpu_samples_refused_total", "Samples that found no room.", [], [((), counts.refused)])


def _labels(run: str, card: GpuStatus) -> tuple[str, str, str, str]:
    """A process that only a log tells of has its id in place of an index."""
    return run, card.host, card.gpu if card.gpu is not None else f"pid {card.pid}", card.rank or ""


def _is_fresh(card: GpuStatus, now: float) -> bool:
    return not card.missing and (card.gpu is None or (card.at is not None and now - card.at < STALE_S))


def _seen(known: Sequence[Card], fresh: Sequence[Card]) -> Iterator[tuple[tuple[str, str, str, str], float]]:
    seen = {key for key, _ in fresh}
    return ((key, float(key in seen)) for key, card in known if card.gpu is not None)


def _bytes(value: float | None) -> float | None:
    return None if value is None else value * _GIB
