"""Series to judge: made ones, and those of the recorded runs under tests/data, read without the product's reader."""

from __future__ import annotations

import gzip
import json
import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from verlwatch.core.phases import JUDGED, PHASES, STEP, THROUGHPUT, phase
from verlwatch.core.series import Watch
from verlwatch.core.types import ChangePoint, SeriesKey, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DATA = Path(__file__).parents[2] / "data"
NUMBER = re.compile(r"(?:np\.\w+\()?([-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?)\)?$")
STEP_LINE = re.compile(r"step:(\d+) - (.*)")
SHORT_LINE = re.compile(r"Step (\d+): total=(\d+)ms, (.*)")
# Which phases a release counts into its own step time, beside those it is made of.
INSIDE = {
    "verl-0.3": ("testing", "save_checkpoint"),
    "verl-0.4": ("testing", "save_checkpoint"),
    "worker-9": ("testing", "save_checkpoint"),
    "verl-0.9": ("save_checkpoint",),
}

NO_WORK = Workload()


@dataclass(frozen=True)
class RecordedStep:
    """One step of a recorded run: seconds (throughput: tokens per second) of each judged metric, and its work."""

    step: int
    values: dict[str, float]
    work: Workload


def noise(seed: int, length: int, *, sd: float = 0.02, phi: float = 0.3, heavy: bool = False) -> list[float]:
    """AR(1) noise in log units; ``heavy`` draws from Student's t with four degrees of freedom."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_t(4, length) / math.sqrt(2.0) if heavy else rng.standard_normal(length)
    path, last = [], 0.0
    for draw in draws.tolist():
        last = phi * last + sd * math.sqrt(1.0 - phi * phi) * draw
        path.append(last)
    return path


def watch_of(metric: str = "gen", rate: float = 1e-5, *, accept_after: int = 200) -> Watch:
    """A watch as the daemon would make it."""
    shares = phase(metric)
    return Watch(
        SeriesKey("run", metric),
        (shares.tokens, shares.longest),
        rate,
        worse="down" if metric == THROUGHPUT else "up",
        accept_after=accept_after,
    )


def feed(watch: Watch, values: Sequence[float], works: Sequence[Workload] | None = None) -> list[ChangePoint]:
    """Judge values as steps 0, 1, ...; every change point in order."""
    told: list[ChangePoint] = []
    for step, value in enumerate(values):
        told += watch.update(step, value, works[step] if works else NO_WORK)
    return told


def seconds(factors: Callable[[int], float], length: int, *, seed: int = 1, usual: float = 40.0) -> list[float]:
    """A quiet phase of ``usual`` seconds with 2 % noise, times ``factors(step)``."""
    return [usual * factors(step) * math.exp(e) for step, e in enumerate(noise(seed, length))]


@cache
def recorded(name: str) -> tuple[RecordedStep, ...]:
    """The steps of a recorded run that carry timing."""
    return tuple(_steps(name))


def _steps(name: str) -> Iterator[RecordedStep]:
    within = next((phases for head, phases in INSIDE.items() if Path(name).name.startswith(head)), ())
    for step, found in _numbers(name):
        values = {p.name: found[key] for p in PHASES for key in reversed(p.keys) if key in found}
        if not values:
            continue
        if "timing_s/step" in found:
            values[STEP] = found["timing_s/step"] - sum(values.get(extra, 0.0) for extra in within)
            if "perf/throughput" in found:
                values[THROUGHPUT] = found["perf/throughput"] * found["timing_s/step"] / values[STEP]
        tokens = found.get("perf/total_num_tokens")
        if tokens is None and "response_length/mean" in found:
            tokens = found["response_length/mean"] + found["prompt_length/mean"]
        work = Workload(tokens, found.get("response_length/max"))
        yield RecordedStep(step, {metric: value for metric, value in values.items() if metric in JUDGED}, work)


@cache
def judge(name: str, rate: float) -> dict[str, list[ChangePoint]]:
    """Every change point of a recorded run, by metric; metrics without one are there, empty."""
    watches: dict[str, Watch] = {}
    told: dict[str, list[ChangePoint]] = {}
    for record in recorded(name):
        for metric, value in record.values.items():
            watch = watches.setdefault(metric, watch_of(metric, rate))
            told.setdefault(metric, []).extend(watch.update(record.step, value, record.work))
    return told


def _numbers(name: str) -> Iterator[tuple[int, dict[str, float]]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if name.endswith(".jsonl.gz"):
                row = json.loads(line)
                yield row["step"], {k: v for k, v in row["data"].items() if isinstance(v, (int, float))}
            elif match := STEP_LINE.search(line):
                yield int(match[1]), _pairs(match[2].split(" - "))
            elif match := SHORT_LINE.match(line):
                parts = (part.split("=") for part in match[3].split(", "))
                yield int(match[1]), {f"timing_s/{k}": float(v.rstrip("ms\n")) / 1000.0 for k, v in parts}


def _pairs(parts: list[str]) -> dict[str, float]:
    split = (part.rpartition(":") for part in parts)
    return {key: float(number[1]) for key, _, text in split if (number := NUMBER.match(text.strip()))}
