"""`/metrics`: the status in the words of Prometheus, read at each scrape.

Names have base units and every label comes from the configuration or a log, so the number of series is capped: what
concerns the whole process comes first, phases of finished runs last, and `verlwatch_metrics_dropped` says how many
series did not fit.  The cap is what bounds the time a scrape takes from the event loop (2,000 series: about 20 ms).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from verlwatch.shell.printable import encodable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client.core import Metric

    from verlwatch.shell.http._source import StatusSource
    from verlwatch.status import AgentStatus, RunStatus, SourceStatus, Status

    Row = tuple[Sequence[str], float | None]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SERIES_LIMIT = 2_000
_AT_WORK = frozenset({"running", "validating", "saving"})


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
        exposition = _Exposition()
        yield from _process(exposition, status)
        yield from _receivers(exposition, status)
        yield from _incidents(exposition, status)
        if status.role == "hub":
            yield from _agents(exposition, status)
        yield from _sources(exposition, status.sources)
        yield from _runs(exposition, sorted(status.runs, key=lambda run: run.state == "finished"))
        yield GaugeMetricFamily(
            "verlwatch_metrics_dropped", "Series left out because there were too many.", value=exposition.dropped
        )


class _Exposition:
    """Makes metric families and keeps their series within the limit."""

    def __init__(self, limit: int = SERIES_LIMIT) -> None:
        self._left = limit
        self.dropped = 0

    def gauge(self, name: str, text: str, labels: Sequence[str], rows: Iterable[Row]) -> Metric:
        family = GaugeMetricFamily(f"verlwatch_{name}", text, labels=labels)
        return self._fill(family, rows)

    def counter(self, name: str, text: str, labels: Sequence[str], rows: Iterable[Row]) -> Metric:
        family = CounterMetricFamily(f"verlwatch_{name}", text, labels=labels)
        return self._fill(family, rows)

    def _fill(self, family: GaugeMetricFamily | CounterMetricFamily, rows: Iterable[Row]) -> Metric:
        for labels, value in rows:
            if value is None or math.isnan(value):
                continue  # unknown is no series, never zero
            if self._left == 0:
                self.dropped += 1
                continue
            self._left -= 1
            family.add_metric([encodable(label) for label in labels], value)
        return family


def _process(to: _Exposition, status: Status) -> Iterator[Metric]:
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
    if (heartbeat := status.heartbeat) is not None:
        yield to.gauge("heartbeat_withheld", "1 while verlwatch does not see.", [], [((), bool(heartbeat.withheld))])
        yield to.gauge("heartbeat_sent_timestamp_seconds", "When the last was taken.", [], [((), heartbeat.sent_at)])
        yield to.counter("heartbeats_sent_total", "Heartbeats taken.", [], [((), heartbeat.sent)])


def _receivers(to: _Exposition, status: Status) -> Iterator[Metric]:
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


def _incidents(to: _Exposition, status: Status) -> Iterator[Metric]:
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


def _agents(to: _Exposition, status: Status) -> Iterator[Metric]:
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


def _agent_counts(to: _Exposition, rows: Sequence[tuple[tuple[str], AgentStatus]]) -> Iterator[Metric]:
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


def _sources(to: _Exposition, sources: Sequence[SourceStatus]) -> Iterator[Metric]:
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


def _runs(to: _Exposition, runs: Sequence[RunStatus]) -> Iterator[Metric]:
    labels = ["run"]
    yield to.gauge(
        "run_running",
        "1 while the run makes steps, validates or saves.",
        labels,
        [((run.name,), run.state in _AT_WORK) for run in runs],
    )
    yield to.gauge(
        "run_state",
        "1 for the state that the run is in; others are absent.",
        ["run", "state"],
        [((run.name, run.state), 1) for run in runs],
    )
    yield to.gauge(
        "run_state_timestamp_seconds",
        "When the run came into its state.",
        labels,
        [((run.name,), run.state_at) for run in runs],
    )
    yield to.gauge("run_step", "Last step seen.", labels, [((run.name,), run.step) for run in runs])
    yield to.gauge(
        "run_steps_planned", "Steps the run is to make.", labels, [((run.name,), run.total_steps) for run in runs]
    )
    yield to.gauge(
        "run_last_step_timestamp_seconds",
        "When the last step arrived.",
        labels,
        [((run.name,), run.step_at) for run in runs],
    )
    yield to.counter("run_steps_total", "Steps seen.", labels, [((run.name,), run.steps_seen) for run in runs])
    phases = [((run.name, phase.name), phase) for run in runs for phase in run.phases]
    labels = ["run", "phase"]
    yield to.gauge("phase_seconds", "Seconds in the last step.", labels, [(key, one.now_s) for key, one in phases])
    yield to.gauge(
        "phase_baseline_seconds",
        "Seconds the baseline expects of that step's work.",
        labels,
        [(key, one.baseline_s) for key, one in phases],
    )
    yield to.gauge(
        "phase_slowdown_ratio",
        "Seconds divided by what the baseline expects.",
        labels,
        [(key, one.ratio) for key, one in phases],
    )
