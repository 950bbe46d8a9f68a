"""`/metrics`: the status in the words of Prometheus, read at each scrape.

Names have base units and every label comes from the configuration or a log, so the number of series is capped: what
concerns the whole process comes first, then runs, their phases and their cards.  A finished run is shown only where
the others leave room for all of it.  `verlwatch_metrics_dropped` says how many series did not fit, and
`verlwatch_metrics_left_out` of which metrics.  The cap is what bounds the time a scrape takes from the event loop
(2,000 series: about 20 ms).
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from verlwatch.shell.http import _gpu_metrics, _run_metrics
from verlwatch.shell.printable import encodable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client.core import Metric

    from verlwatch.shell.http._source import StatusSource
    from verlwatch.status import AgentStatus, SourceStatus, Status

    Row = tuple[Sequence[str], float | None]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SERIES_LIMIT = 2_000


def registry(source: StatusSource) -> CollectorRegistry:
    """A registry of its own with the status of ``source`` and the usual ``process_…`` metrics."""
    own = CollectorRegistry(auto_describe=False)
    own.register(_StatusCollector(source))
    ProcessCollector(registry=own)
    return own


def render(own: CollectorRegistry) -> bytes:
    """The body of ``/metrics`` in the text format 0.0.4."""
    return generate_latest(own)


class _StatusCollector(Collector):
    def __init__(self, source: StatusSource) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        status = self._source.status()
        exposition = Exposition()
        yield from _process(exposition, status)
        yield from _receivers(exposition, status)
        yield from _incidents(exposition, status)
        if status.role == "hub":
            yield from _agents(exposition, status)
        yield from _sources(exposition, status.sources)
        yield from _run_metrics.runs(exposition, sorted(status.runs, key=lambda run: run.state == "finished"))
        yield from _gpu_metrics.cards(exposition, status)
        yield from exposition.left_out()


class Exposition:
    """Makes metric families and keeps their series within the limit."""

    def __init__(self, limit: int = SERIES_LIMIT) -> None:
        self._left = limit
        self._dropped = Counter[str]()

    @property
    def room(self) -> int:
        """How many series still fit."""
        return self._left

    def gauge(self, name: str, text: str, labels: Sequence[str], rows: Iterable[Row], most: float = math.inf) -> Metric:
        """A family of gauges; of its rows the first ``most`` are taken."""
        return self._fill(GaugeMetricFamily(f"verlwatch_{name}", text, labels=labels), rows, most)

    def counter(
        self, name: str, text: str, labels: Sequence[str], rows: Iterable[Row], most: float = math.inf
    ) -> Metric:
        """A family of counters; of its rows the first ``most`` are taken."""
        return self._fill(CounterMetricFamily(f"verlwatch_{name}", text, labels=labels), rows, most)

    def left_out(self) -> Iterator[Metric]:
        """What did not fit, in all and by metric."""
        text = "Series left out because there were too many"
        yield GaugeMetricFamily("verlwatch_metrics_dropped", f"{text}.", value=self._dropped.total())
        by_metric = GaugeMetricFamily("verlwatch_metrics_left_out", f"{text}, by metric.", labels=["metric"])
        for name, count in sorted(self._dropped.items()):
            by_metric.add_metric([name], count)
        yield by_metric

    def _fill(self, family: GaugeMetricFamily | CounterMetricFamily, rows: Iterable[Row], most: float) -> Metric:
        for place, (labels, value) in enumerate(rows):
            if value is None or math.isnan(value):
                continue  # unknown is no series, never zero
            if self._left == 0 or place >= most:
                self._dropped[family.name] += 1
                continue
            self._left -= 1
            family.add_metric([encodable(label) for label in labels], value)
        return family


def _process(to: Exposition, status: Status) -> Iterator[Metric]:
    config, store = status.config, status.store
    yield to.gauge(
        "build_info", "The version that runs, and as what.", ["version", "role"], [((status.version, status.role), 1)]
    )
    yield to.gauge("ready", "1 while everything is ready.", [], [((), status.ready)])
    yield to.gauge(
        "config_last_reload_successful", "0 after a configuration was refused.", [], [((), config.reload_ok)]
    )
    yield to.gauge(
        "config_last_reload_success_timestamp_seconds",
        "When the configuration in force was read.",
        [],
        [((), config.loaded_at)],
    )
    yield to.gauge("store_up", "1 while commits to the database succeed.", [], [((), store.ok)])
    yield to.gauge("store_size_bytes", "Size of the database on disk.", [], [((), store.bytes)])
    yield from _gpu_metrics.sampling(to, status.sampling)
    if (heartbeat := status.heartbeat) is not None:
        yield to.gauge("heartbeat_withheld", "1 while verlwatch does not see.", [], [((), bool(heartbeat.withheld))])
        yield to.gauge("heartbeat_sent_timestamp_seconds", "When the last was taken.", [], [((), heartbeat.sent_at)])
        yield to.counter("heartbeats_sent_total", "Heartbeats taken.", [], [((), heartbeat.sent)])


def _receivers(to: Exposition, status: Status) -> Iterator[Metric]:
    rows = [((one.name,), one) for one in status.receivers]
    labels = ["receiver"]
    yield to.gauge("outbox_pending", "Messages not yet taken.", labels, [(name, one.pending) for name, one in rows])
    yield to.gauge("outbox_dead", "Messages given up.", labels, [(name, one.dead) for name, one in rows])
    yield to.gauge(
        "outbox_oldest_seconds",
        "Age of the oldest message not yet taken, 0 where there is none.",
        labels,
        [(name, _age(status.now, one.oldest_pending_at)) for name, one in rows],
    )
    yield to.counter(
        "notifications_delivered_total",
        "Messages the receiver took.",
        labels,
        [(name, one.delivered) for name, one in rows],
    )


def _age(now: float, at: float | None) -> float:
    return 0.0 if at is None else max(0.0, now - at)


def _incidents(to: Exposition, status: Status) -> Iterator[Metric]:
    open_now: dict[tuple[str, ...], int] = {}
    for one in status.incidents:
        if one.state == "firing":
            key = (one.run, one.rule, one.phase, one.severity)
            open_now[key] = open_now.get(key, 0) + 1
    yield to.gauge(
        "incidents_open", "Incidents that are firing.", ["run", "rule", "phase", "severity"], open_now.items()
    )
    yield to.counter(
        "incidents_opened_total",
        "Incidents that opened.",
        ["run", "rule"],
        [((one.run, one.rule), one.opened) for one in status.incident_counts],
    )
    yield to.counter(
        "incidents_closed_total",
        "Incidents that closed, by how they closed.",
        ["run", "rule", "closed_as"],
        [((one.run, one.rule, how), count) for one in status.incident_counts for how, count in one.closed],
    )


def _agents(to: Exposition, status: Status) -> Iterator[Metric]:
    labels = ["agent"]
    rows = [((one.name,), one) for one in status.agents]
    heard = [
        (name, one) for name, one in rows if one.seen_at is not None
    ]  # what the others say of themselves is unknown
    yield to.gauge(
        "agent_last_seen_timestamp_seconds",
        "When the agent was last heard, by the hub's clock; no series before it is heard since the hub's start.",
        labels,
        [(name, one.seen_at) for name, one in heard],
    )
    yield to.gauge(
        "agent_taken",
        "Number of the agent's last shipment committed.",
        labels,
        [(name, one.taken) for name, one in rows],
    )
    yield to.gauge(
        "agent_skew_seconds",
        "By how much the agent's clock is ahead of the hub's.",
        labels,
        [(name, one.skew_s) for name, one in heard],
    )
    yield to.gauge(
        "agent_lag_seconds", "Longest lag of the agent's files.", labels, [(name, one.lag_s) for name, one in heard]
    )
    yield to.gauge(
        "agent_waiting_shipments",
        "Shipments in the agent's outbox.",
        labels,
        [(name, one.waiting) for name, one in heard],
    )
    yield to.gauge("agent_sources", "Files the agent reads.", labels, [(name, one.sources) for name, one in heard])
    yield to.gauge(
        "agent_unreadable_sources",
        "Files the agent cannot read.",
        labels,
        [(name, len(one.unreadable)) for name, one in heard],
    )
    yield from _agent_counts(to, rows)
    yield to.counter(
        "stranger_requests_total",
        "Deliveries with a token that is nobody's, or another agent's.",
        [],
        [((), status.strangers)],
    )


def _agent_counts(to: Exposition, rows: Sequence[tuple[tuple[str], AgentStatus]]) -> Iterator[Metric]:
    labels = ["agent"]
    yield to.counter(
        "agent_thinned_samples_total",
        "Samples the agent left out for want of room.",
        labels,
        [(name, one.thinned) for name, one in rows],
    )
    yield to.counter(
        "agent_lost_shipments_total",
        "Shipments lost with the agent's outbox or with the hub's own state.",
        labels,
        [(name, one.lost) for name, one in rows],
    )
    yield to.counter(
        "agent_repeated_shipments_total",
        "Shipments that came again and were ignored.",
        labels,
        [(name, one.repeated) for name, one in rows],
    )
    yield to.counter(
        "agent_refused_requests_total",
        "Deliveries that were refused.",
        labels,
        [(name, one.refused) for name, one in rows],
    )


def _sources(to: Exposition, sources: Sequence[SourceStatus]) -> Iterator[Metric]:
    rows = [((one.source, one.run), one) for one in sources]
    labels = ["source", "run"]
    yield to.gauge("source_up", "1 while the source can be read.", labels, [(key, one.readable) for key, one in rows])
    yield to.gauge(
        "source_lag_bytes", "Bytes written but not judged.", labels, [(key, one.lag_bytes) for key, one in rows]
    )
    yield to.gauge(
        "source_lag_seconds", "Age of the oldest byte not judged.", labels, [(key, one.lag_s) for key, one in rows]
    )
    yield to.gauge(
        "source_position_bytes", "Position in this generation.", labels, [(key, one.position) for key, one in rows]
    )
    yield to.gauge("source_size_bytes", "Size of this generation.", labels, [(key, one.size) for key, one in rows])
    yield to.gauge(
        "source_last_read_timestamp_seconds",
        "When bytes were last read.",
        labels,
        [(key, one.last_read_at) for key, one in rows],
    )
    yield to.counter("lines_total", "Lines that hold something known.", labels, [(key, one.lines) for key, one in rows])
    yield to.counter("lines_cut_total", "Lines cut for length.", labels, [(key, one.cut_lines) for key, one in rows])
    yield to.counter(
        "lines_broken_total", "Lines that made a reader fail.", labels, [(key, one.broken_lines) for key, one in rows]
    )
    yield to.counter(
        "lines_undecodable_total",
        "Lines that are no UTF-8.",
        labels,
        [(key, one.undecodable_lines) for key, one in rows],
    )
    yield to.counter("nul_bytes_total", "NUL bytes read.", labels, [(key, one.nul_bytes) for key, one in rows])
