"""A log read for a report: replayed through the engine that the daemon uses, and listened to on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from verlwatch.core import layout, steps
from verlwatch.core.engine import Engine, Run, Told
from verlwatch.core.settings import Settings
from verlwatch.core.types import Diagnosis, Event, Record, Samples, StepRow, Transition
from verlwatch.core.verl_keys import Value
from verlwatch.replay import Progress, replay
from verlwatch.report._columns import Columns
from verlwatch.report._seen import Cards, Seen

LARGE = 1 << 20
PRINTED = 64
"""Meshes and shapes kept, the last ones."""
_VLLM = {
    "generation_tokens_per_s": "generation_tokens_per_s",
    "running": "running",
    "waiting": "waiting",
    "kv_cache_percent": "kv_cache_percent",
    "prefix_cache_hit_percent": "prefix_cache_hit_percent",
    "preemptions": "preemptions",
}
WAIT = "wait for "
FULL = 95.0
"""Per cent of the KV cache in use that count as full."""
_COMMUNICATION = frozenset({"communication", "reshard"})
_ASYNC = {
    "wait_s": "supply",
    "param_sync_s": "communication",
    "idle_ratio": "utilisation",
    "utilization": "utilisation",
}


class Listening(Engine):
    """An engine that shows each record to ``hear``, with its run and what became of it, once it is judged."""

    def __init__(self, settings: Settings, hear: Callable[[Run, Record, Sequence[StepRow]], None]) -> None:
        super().__init__(settings)
        self._hear = hear

    def take(self, run: Run, records: Iterable[Record], now: float, told: Told) -> None:
        """Shows each of them."""
        for record in records:
            known = len(told.steps)
            super().take(run, (record,), now, told)
            self._hear(run, record, told.steps[known:])


class Reading:
    """Everything that a report needs of the logs of one run."""

    def __init__(self, run: str, logs: Sequence[str] = ()) -> None:
        self.run = run
        self.logs = tuple(logs)
        self.columns = Columns()
        self.transitions: list[Transition] = []
        self.releases: dict[int, str] = {}
        self.config: dict[str, Value] = {}
        self.meshes: list[layout.Mesh] = []
        self.shapes: list[layout.Shape] = []
        self.offloads: dict[str, bool] = {}
        self.hosts: dict[str, None] = {}
        self.world: int | None = None
        self.cards = Cards()
        self.gauges: dict[str, dict[str, Seen]] = {
            section: {} for section in ("engine", "communication", "supply", "utilisation")
        }
        self.nccl: dict[str, Value] = {}
        self.planned: int | None = None
        self.finished = False
        self.is_async = False
        self.release = ""
        self.prints_total = False
        self.still: dict[str, Diagnosis] = {}
        self.step_sources: set[str] = set()

    # ------------------------------------------------------------------------------------------------ hearing
    def hear(self, run: Run, record: Record, rows: Sequence[StepRow]) -> None:
        """Takes a record that has been judged, and the steps that it has become."""
        if run.name != self.run:
            return
        for row in rows:
            self._put(run, row)
        if isinstance(record, Samples):
            if steps.timings(record.values):
                self.step_sources.add(record.origin.source)
        elif (take := _TAKEN.get(record.name)) is not None:
            take(self, record, run.step + 1)

    def _put(self, run: Run, row: StepRow) -> None:
        at = self.columns.put(row.attempt, row.step, row.values)
        self.releases[row.attempt] = run.release
        judged, here = run.judged, (row.attempt, row.step)
        for metric, expected in judged.expected.items():
            if judged.last.get(metric) == here:
                self.columns.expect(at, metric, expected)

    def gauge(self, section: str, name: str, value: object, step: int, *, is_over: bool = False) -> None:
        """Takes a number that is seen beside the steps; what is none is not seen."""
        if isinstance(value, int | float):
            known = self.gauges[section]
            known.setdefault(name, Seen()).add(float(value), step, is_over=is_over)


def _config(reading: Reading, event: Event, _: int) -> None:
    # what the trainer prints is resolved, and counts for more than what Hydra composed
    if event.origin.kind == "config_dump" or not reading.config:
        reading.config.update(event.attributes)
    else:
        reading.config = {**event.attributes, **reading.config}


def _overrides(reading: Reading, event: Event, _: int) -> None:
    """A command line says what is configured where the log does not print all of it."""
    given = {key: _typed(str(value)) for key, value in event.attributes.items()}
    reading.config = {**given, **reading.config}


def _typed(text: str) -> Value:
    """A value of the command line as the configuration would hold it."""
    if text.lower() in {"true", "false"}:
        return text.lower()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _mesh(reading: Reading, event: Event, step: int) -> None:
    said = event.attributes
    sizes = tuple(int(size) for size in str(said.get("shape", "")).split("x") if size.isdigit())
    dims = tuple(dim.strip() for dim in str(said.get("dims", "")).split(",") if dim.strip())
    reading.meshes.append(layout.Mesh(str(said.get("mesh", "")), sizes, dims, step))
    del reading.meshes[1:-PRINTED]


def _shape(reading: Reading, event: Event, step: int) -> None:
    sizes = tuple(int(size) for size in str(event.attributes.get("shape", "")).split("x") if size.isdigit())
    reading.shapes.append(layout.Shape(str(event.attributes.get("tensor", "")), sizes, step))
    del reading.shapes[:-PRINTED]


def _offload(reading: Reading, event: Event, _: int) -> None:
    what = str(event.attributes.get("what", ""))
    reading.offloads[what] = reading.offloads.get(what, False) or bool(event.attributes.get("on"))


def _host(reading: Reading, event: Event, _: int) -> None:
    reading.hosts[str(event.attributes.get("host", ""))] = None


def _rank(reading: Reading, event: Event, _: int) -> None:
    reading.cards.take_rank(event)
    world = event.attributes.get("world_size")
    if isinstance(world, int):
        reading.world = max(world, reading.world or 0)


def _memory(reading: Reading, event: Event, step: int) -> None:
    reading.cards.take(event, step)


def _sample(reading: Reading, event: Event, step: int) -> None:
    reading.cards.take_sample(event, step)
    reading.gauge("utilisation", "gpu_utilization", event.attributes.get("utilization"), step)


def _vllm(reading: Reading, event: Event, step: int) -> None:
    said = event.attributes
    if said.get("running") or said.get("waiting"):  # it prints while it sleeps, too
        for name, gauge in _VLLM.items():
            value = said.get(name)
            full = name == "kv_cache_percent" and isinstance(value, int | float) and value >= FULL
            reading.gauge("engine", gauge, value, step, is_over=full)


def _sglang(reading: Reading, event: Event, step: int) -> None:
    said = event.attributes
    usage = said.get("token_usage")
    if isinstance(usage, int | float):
        reading.gauge("engine", "kv_cache_percent", 100.0 * usage, step, is_over=100.0 * usage >= FULL)
    for name in ("generation_tokens_per_s", "running", "waiting", "retracted"):
        reading.gauge("engine", name, said.get(name), step)


def _preemption(reading: Reading, event: Event, step: int) -> None:
    reading.gauge("engine", "preemptions_total", event.attributes.get("total"), step)


def _asleep(reading: Reading, event: Event, step: int) -> None:
    reading.gauge("engine", "still_in_use_gb", event.attributes.get("still_in_use_gb"), step)


def _nccl(reading: Reading, event: Event, _: int) -> None:
    reading.nccl.update(event.attributes)


def _time(reading: Reading, event: Event, step: int) -> None:
    phase = str(event.attributes.get("phase", ""))
    if phase in _COMMUNICATION:
        reading.gauge("communication", f"{phase}_s", event.attributes.get("seconds"), step)
    elif phase == "wait":
        reading.gauge(
            "communication", f"{WAIT}{event.attributes.get('awaited', '')}", event.attributes.get("seconds"), step
        )


def _throughput(reading: Reading, event: Event, step: int) -> None:
    for name in ("tokens_per_s", "samples_per_s"):
        reading.gauge("utilisation", name, event.attributes.get(name), step)


def _dataflow(reading: Reading, event: Event, step: int) -> None:
    for name, value in event.attributes.items():
        reading.gauge("supply", name[:80], value, step)


def _asynchronous(reading: Reading, event: Event, step: int) -> None:
    for name, section in _ASYNC.items():
        reading.gauge(section, name, event.attributes.get(name), step)


_TAKEN: dict[str, Callable[[Reading, Event, int], None]] = {
    "config": _config,
    "overrides": _overrides,
    "device_mesh": _mesh,
    "tensor_shape": _shape,
    "offload": _offload,
    "host": _host,
    "rank": _rank,
    "gpu_memory": _memory,
    "gpu_sample": _sample,
    "vllm_stats": _vllm,
    "sglang_stats": _sglang,
    "preemption": _preemption,
    "engine_memory": _asleep,
    "nccl_tests": _nccl,
    "phase_time": _time,
    "throughput": _throughput,
    "dataflow": _dataflow,
    "async_trainer": _asynchronous,
}


def read(
    paths: Sequence[Path], run: str, settings: Settings | None = None, progress: Progress | None = None
) -> Reading:
    """Replays ``paths`` as one run.

    Raises:
        LogError: a file cannot be read.
    """
    reading = Reading(run, [str(path) for path in paths])
    engine = Listening(settings or Settings(), reading.hear)
    piece = LARGE if len(paths) == 1 else 0  # files of one run are read side by side, a little of each
    for outcome, _ in replay(engine, paths, run, progress, piece=piece):
        reading.transitions += outcome.transitions
    state = engine.runs.get(run)
    if state is not None:
        reading.release, reading.planned, reading.finished = state.release, state.planned, state.finished
        reading.is_async, reading.prints_total = state.judged.is_async, state.prints_total
        reading.still = {incident.id: incident.diagnoses[0] for incident in state.incidents}
    return reading
