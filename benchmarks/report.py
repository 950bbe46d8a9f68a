"""How long `verlwatch report` takes for a long log, and how much memory: seconds of wall and CPU time, peak in MB.

    python benchmarks/report.py [--steps 60000] [--size 1e9] [--keep train.log]

The log is made up: 99 lines of workers between any two step lines of 90 keys, a line about memory in each step, times
that follow tokens, a slow stretch and a lasting shift.  What it takes apart: reading (the same bytes through the
reader alone), and judging (the engine without a report).
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks._verl_log import KEYS, WORDS
from verlwatch.core.engine import Engine
from verlwatch.core.lines import Reader
from verlwatch.replay import replay

BETWEEN = 99
POOL = 4000
WITHOUT_VALIDATION = tuple(key for key in KEYS if not key.startswith("val-aux/"))


def write(path: Path, steps: int, size: float) -> None:
    """A log of so many steps and about so many bytes."""
    rnd = random.Random(1)
    step_bytes = len(_step_line(rnd, 1, steps))
    words = max(1, int((size / steps - step_bytes) / BETWEEN / 7))
    pool = [
        f"\x1b[36m(WorkerDict pid={4243 + i % 8})\x1b[0m {' '.join(rnd.choices(WORDS, k=words))}\n" for i in range(POOL)
    ]
    with path.open("w", encoding="utf-8") as file:
        for step in range(1, steps + 1):
            at = rnd.randrange(POOL - BETWEEN)
            file.write("".join(pool[at : at + BETWEEN]))
            file.write(
                f"(WorkerDict pid=4243) After rollout generation, memory allocated (GB): {rnd.uniform(30, 31):.2f}, "
                "memory reserved (GB): 40.00, device memory used/total (GB): 41.00/79.11\n"
            )
            file.write(_step_line(rnd, step, steps))


def _step_line(rnd: random.Random, step: int, steps: int) -> str:
    work = (1 + 0.3 * step / steps) * rnd.lognormvariate(0, 0.03)
    slow = 4.0 if step % 5000 in range(100, 104) else 1.5 if step > 0.8 * steps else 1.0
    seconds = {
        "gen": 40 * work * slow * rnd.lognormvariate(0, 0.03),
        "reward": 0.3 * rnd.lognormvariate(0, 0.02),
        "old_log_prob": 6 * work * rnd.lognormvariate(0, 0.02),
        "ref": 5 * work * rnd.lognormvariate(0, 0.02),
        "adv": 0.1 * rnd.lognormvariate(0, 0.02),
        "update_actor": 18 * work * rnd.lognormvariate(0, 0.02),
    }
    values = {key: rnd.lognormvariate(1, 0.1) for key in WITHOUT_VALIDATION if not key.startswith("timing_s/")}
    values |= {f"timing_s/{name}": s for name, s in seconds.items()}
    values |= {"timing_s/step": sum(seconds.values()) + 1.0, "perf/total_num_tokens": int(15000 * work)}
    values |= {"response_length/mean": 220 * work, "response_length/max": 320 * work, "prompt_length/mean": 90.0}
    return f"\x1b[36m(TaskRunner pid=4242)\x1b[0m step:{step} - {' - '.join(f'{k}:{v!r}' for k, v in values.items())}\n"


def _read(path: Path) -> None:
    reader = Reader(str(path))
    with path.open("rb") as file:
        while data := file.read(1 << 16):
            reader.feed(data, 0.0)


def _judge(path: Path) -> None:
    for _ in replay(Engine(), [path], "train"):
        pass


def _timed(what: str, work: Callable[[], object]) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    work()
    print(f"{what:<24}{time.perf_counter() - began:8.1f} s{time.process_time() - cpu:8.1f} s CPU")


def _whole(path: Path) -> None:
    """The command itself, in a process of its own: its peak of memory is its own."""
    command = [sys.executable, "-m", "verlwatch", "report", str(path)]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - began
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    print(f"{'verlwatch report':<24}{took:8.1f} s{cpu:8.1f} s CPU{peak:8.0f} MB")


def main() -> None:
    """Measures, and prints a line for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--size", type=float, default=1e9)
    parser.add_argument("--keep", type=Path, help="keep the log here")
    parser.add_argument("--parts", action="store_true", help="also measure reading and judging by themselves")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "train.log"
        if not path.exists():
            write(path, args.steps, args.size)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {args.steps} steps")
        _whole(path)
        if args.parts:
            _timed("reading alone", lambda: _read(path))
            _timed("reading and judging", lambda: _judge(path))


if __name__ == "__main__":
    main()
