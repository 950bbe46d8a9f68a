"""How fast lines are read: `python benchmarks/lines.py [--mb 64]`.

Writes made-up logs in the shapes that verl prints, and reads each three ways on one core: `read()` and counting
newlines (the floor), a plain `for line in file` that looks for ``step:`` and does nothing with it, and the Reader.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from verlwatch.core.lines import Reader

PIECE = 1 << 18
KEYS = (
    *(f"actor/{name}" for name in ("entropy", "kl_loss", "pg_loss", "pg_clipfrac", "ppo_kl", "grad_norm", "lr")),
    *(f"critic/{name}/{of}" for name in ("score", "rewards", "advantages", "returns") for of in ("mean", "max", "min")),
    *(f"{name}_length/{of}" for name in ("response", "prompt") for of in ("mean", "max", "min", "clip_ratio")),
    *(f"global_seqlen/{of}" for of in ("min", "max", "minmax_diff", "balanced_min", "balanced_max", "mean")),
    *(f"val-aux/data_{i}/reward/mean@{n}" for i in range(8) for n in (1, 4, 8, 16)),
    *(f"timing_s/agent_loop/{name}/{of}" for name in ("generate_sequences", "tool_calls") for of in ("min", "mean")),
    *(f"timing_s/{name}" for name in ("gen", "reward", "old_log_prob", "ref", "adv", "update_actor", "step")),
    *(f"timing_per_token_ms/{name}" for name in ("gen", "ref", "update_actor", "adv")),
    *(f"perf/{name}" for name in ("total_num_tokens", "time_per_step", "throughput")),
)
DIALECTS: dict[str, Callable[[float], str]] = {
    "step lines, .3f (verl <= 0.4.1)": "{:.3f}".format,
    "step lines, full floats (0.5-0.8)": repr,
    "step lines, np.float64 (0.9)": "np.float64({!r})".format,
}
WORDS = (
    "the model of batch rollout to generate tokens and worker loss warning import torch vllm engine running requests "
    "cache usage response prompt answer compute value shape deprecated node memory allocated shard loading weights"
)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mb", type=int, default=64, help="size of each log in MB (default 64)")
    args = parser.parse_args()
    print(
        f"{'MB per CPU second':<36}{'Reader':>8}{'for line':>10}{'read()':>8}{'Reader / for line':>20}{'/ read()':>9}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in logs().items():
            path = Path(folder, "run.log")
            size = write(path, lines, args.mb * 10**6)
            reader, loop, floor = (size / seconds(partial(way, path)) / 1e6 for way in (read, scan, count))
            print(f"{name:<36}{reader:>8.0f}{loop:>10.0f}{floor:>8.0f}{reader / loop:>20.2f}{reader / floor:>9.3f}")


def logs() -> dict[str, Callable[[random.Random, int], str]]:
    """Makers of lines by name; a maker gets a random source and a line number."""
    made: dict[str, Callable[[random.Random, int], str]] = {
        name: partial(step_line, text=text) for name, text in DIALECTS.items()
    }
    made["file logger, JSONL"] = json_line
    for name, text in DIALECTS.items():
        made[f"1 %{name.removeprefix('step lines,')}"] = partial(mixed_line, text=text)
    return made


def step_line(rnd: random.Random, number: int, text: Callable[[float], str]) -> str:
    """A step line of about a hundred keys, as Ray prints it."""
    items = " - ".join(f"{key}:{text(rnd.lognormvariate(1, 2))}" for key in KEYS)
    return f"\x1b[36m(TaskRunner pid=4242)\x1b[0m step:{number} - {items}\n"


def json_line(rnd: random.Random, number: int) -> str:
    """A line of the file logger."""
    items = ",".join(f'"{key}":{rnd.lognormvariate(1, 2)!r}' for key in KEYS)
    return f'{{"step":{number},"data":{{{items}}}}}\n'


def mixed_line(rnd: random.Random, number: int, text: Callable[[float], str]) -> str:
    """1 % step lines, 2 % memory lines, the rest words of workers."""
    draw = rnd.random()
    if draw < 0.01:
        return step_line(rnd, number, text)
    if draw < 0.03:
        gb = rnd.uniform(20, 70)
        return (
            f"\x1b[36m(WorkerDict pid={4243 + number % 8})\x1b[0m DEBUG:2026-01-02 03:04:05,678:After rollout "
            f"generation, memory allocated (GB): {gb:.2f}, memory reserved (GB): {gb:.2f}, "
            f"device memory used/total (GB): {gb:.2f}/79.11\n"
        )
    words = " ".join(rnd.choices(WORDS.split(), k=rnd.randint(5, 35)))
    return f"\x1b[36m(WorkerDict pid={4243 + number % 8})\x1b[0m {words}\n"


def write(path: Path, line: Callable[[random.Random, int], str], size: int) -> int:
    """Fills a log by repeating about 4 MB of lines; returns its size in bytes."""
    rnd = random.Random(1)
    part = bytearray()
    number = 0
    while len(part) < min(size, 4_000_000):
        part += line(rnd, number).encode()
        number += 1
    with path.open("wb") as file:
        for _ in range(max(1, size // len(part))):
            file.write(part)
    return path.stat().st_size


def seconds(call: Callable[[], int]) -> float:
    """CPU seconds, the best of three: another program on the machine costs the figures little."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return best


def read(path: Path) -> int:
    """The Reader, fed with pieces as the tailer does."""
    reader = Reader("run.log")
    records = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(PIECE):
            records += len(reader.feed(data, 0.0))
    return records + len(reader.finish(0.0))


def scan(path: Path) -> int:
    """What a script would do first, without reading any number."""
    with path.open("rb") as file:
        return sum(b"step:" in line for line in file)


def count(path: Path) -> int:
    """The floor: the bytes pass through memory once."""
    with path.open("rb", buffering=0) as file:
        lines = 0
        while data := file.read(PIECE):
            lines += data.count(b"\n")
    return lines


if __name__ == "__main__":
    main()
