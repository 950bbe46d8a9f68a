"""Numbers beside the steps and within them, as gauges: of the engine, of communication, of the data supply, of use."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from verlwatch.core.phases import STEP
from verlwatch.report._model import Gauge
from verlwatch.report._reading import FULL, WAIT, Reading
from verlwatch.report._seen import Seen
from verlwatch.report._series import known, present
from verlwatch.report._steps import Steps
from verlwatch.report._words import Words

_COLUMNS = {
    "engine": (
        ("timing_s/agent_loop/num_preempted/mean", "preempted requests of a sample", ""),
        ("timing_s/agent_loop/num_preempted/max", "preempted requests of the worst sample", ""),
    ),
    "communication": (
        ("timing_s/reshard", "weights to the engine (reshard)", "s"),
        ("update_weights", "weights to the engine (update_weights)", "s"),
        ("timing_s/timing_s/param_sync", "weights to the engine (param_sync)", "s"),
    ),
    "supply": (
        ("timing_s/wait_for_enough_samples", "waiting for samples", "s"),
        ("fully_async/trainer/idle_ratio", "trainer idle", ""),
    ),
    "utilisation": (
        ("throughput", "throughput", "tokens/s/GPU"),
        ("mfu_actor", "MFU of the actor", "%"),
        ("mfu_actor_infer", "MFU of the actor's forward pass", "%"),
        ("mfu_critic", "MFU of the critic", "%"),
    ),
}
"""By section: a column of the steps, what it is called, its unit."""
_SEEN = {
    "generation_tokens_per_s": ("tokens generated a second", "tokens/s"),
    "running": ("requests that run", ""),
    "waiting": ("requests that wait", ""),
    "kv_cache_percent": ("KV cache in use", "%"),
    "prefix_cache_hit_percent": ("prefix cache hits", "%"),
    "preemptions": ("preemptions in ten seconds", ""),
    "preemptions_total": ("preemptions since the engine started", ""),
    "retracted": ("requests taken back", ""),
    "still_in_use_gb": ("memory in use while the engine sleeps", "GB"),
    "communication_s": ("communication", "s"),
    "reshard_s": ("weights to the engine (reshard)", "s"),
    "param_sync_s": ("weights to the engine (param_sync)", "s"),
    "rollout_throughput_samples_per_s": ("samples generated a second", "samples/s"),
    "rollout_throughput_tokens_per_s": ("tokens generated a second", "tokens/s"),
    "buffer_write_latency_s": ("writing to the buffer", "s"),
    "dataloader_fetch_time_s": ("fetching a batch", "s"),
    "wait_s": ("waiting for samples", "s"),
    "idle_ratio": ("rollout idle", ""),
    "utilization": ("rollout in use", ""),
    "gpu_utilization": ("GPU utilisation", "%"),
    "tokens_per_s": ("throughput", "tokens/s"),
    "samples_per_s": ("throughput", "samples/s"),
}
PERCENT = frozenset({"mfu_actor", "mfu_actor_infer", "mfu_critic"})


def gauges(section: str, reading: Reading, steps: Steps, words: Words) -> tuple[Gauge, ...]:
    """Those of a section that the log shows."""
    return (*_of_steps(section, steps, words), *_of_lines(section, reading, words))


def _of_steps(section: str, steps: Steps, words: Words) -> Iterator[Gauge]:
    for name, label, unit in _COLUMNS[section]:
        scale = 100.0 if name in PERCENT else 1.0
        values = [scale * value for value in known(present(steps, name)) if value >= 0 or "num_preempted" not in name]
        if not values:
            continue
        share = _share(steps, name) if unit == "s" else ""
        remark = words("{share} of a step", share=share) if share else ""
        yield Gauge(name, words(label), unit, len(values), median(values), min(values), max(values), values[-1], remark)


def _share(steps: Steps, name: str) -> str:
    total = sum(known(present(steps, STEP)))
    return f"{sum(known(present(steps, name))) / total:.1%}" if total else ""


def _of_lines(section: str, reading: Reading, words: Words) -> Iterator[Gauge]:
    for name, seen in reading.gauges[section].items():
        if name.startswith(WAIT):
            label, unit = words("wait for {what}", what=name.removeprefix(WAIT)), "s"
        else:
            called, unit = _SEEN.get(name, ("", "s" if name.endswith("_s") else ""))
            label = words(called) or name
        remark = _remark(name, seen, words)
        yield Gauge(name, label, unit, seen.count, seen.median, seen.low, seen.high, seen.last, remark)
    if section == "communication":
        yield from _nccl(reading, words)


def _remark(name: str, seen: Seen, words: Words) -> str:
    if name == "kv_cache_percent" and seen.over:
        return words("over {full} % in {share} of the lines", full=f"{FULL:.0f}", share=f"{seen.over / seen.count:.0%}")
    return ""


def _nccl(reading: Reading, words: Words) -> Iterator[Gauge]:
    """The bus bandwidth of nccl-tests: its average, and at the largest size."""
    said = reading.nccl
    what = f"{said.get('operation', '')} {said.get('type', '')}".strip()
    average = said.get("busbw_gb_s")
    if isinstance(average, int | float):
        label = words("bus bandwidth (nccl-tests, average)")
        yield Gauge("busbw_gb_s", label, "GB/s", 1, average, average, average, average, what)
    sizes = sorted(int(key.rpartition(".")[2]) for key in said if key.startswith("busbw_gb_s."))
    if sizes:
        values = [float(said[f"busbw_gb_s.{size}"]) for size in sizes]
        low, high, largest = min(values), max(values), values[-1]
        remark = words("{mb} MB a message", mb=f"{sizes[-1] / 1e6:.0f}")
        label = words("bus bandwidth (nccl-tests, largest message)")
        yield Gauge(f"busbw_gb_s.{sizes[-1]}", label, "GB/s", len(values), largest, low, high, largest, remark)
