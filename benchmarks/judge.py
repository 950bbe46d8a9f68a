"""One core reads, parses and judges recorded logs: megabytes a second of CPU time, beside what others need for less.

    python benchmarks/judge.py [--seconds 2]

Each recorded run of tests/data is taken twice: its step lines only, and with 99 other lines of the kinds that real logs
are full of between any two of them.  Beside the whole path (bytes -> findings):

* read: the same bytes in the same pieces, nothing done with them;
* split: every step line split and each value made a float, in plain Python, nothing judged.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from verlwatch.core.engine import Engine
from verlwatch.core.types import Chunk

DATA = Path(__file__).parents[1] / "tests" / "data"
LOGS = ("verl-0.3.0.post1.driver.log", "verl-0.4.1.debug.driver.log", "verl-0.9.1.numpy2.nocolor.driver.log")
PIECE = 128 << 10
BETWEEN = 99
FILLER = (
    b"\x1b[36m(WorkerDict pid=9144)\x1b[0m INFO:2025-04-01 12:00:00,000:[Rank 3] wrote 16 sequences to the buffer\n"
    b"(vLLMHttpServer pid=9) INFO 04-01 12:00:00 [loggers.py:257] Engine 000: Avg prompt throughput: 7107.0 tokens/s, "
    b"Avg generation throughput: 520.0 tokens/s, Running: 9 reqs, Waiting: 6 reqs, GPU KV cache usage: 13.3%\n"
    b"(AgentLoopWorker pid=77) the answer is 42, because six times seven steps are taken in order, as shown above\n"
).splitlines(keepends=True)


def step_lines(name: str) -> list[bytes]:
    text = gzip.decompress((DATA / f"{name}.gz").read_bytes())
    return [line + b"\n" for line in text.split(b"\n") if b"timing_s/step" in line]


def mixed(lines: list[bytes]) -> list[bytes]:
    between = [FILLER[i % len(FILLER)] for i in range(BETWEEN)]
    return [one for line in lines for one in (line, *between)]


def read(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(PIECE):
            pass


def split(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            if b"step:" not in line:
                continue
            values = {}
            for item in line.decode().strip().split(" - ")[1:]:
                key, _, value = item.rpartition(":")
                values[key] = float(value[value.index("(") + 1 : -1] if value.startswith("np.") else value)


def judge(path: Path) -> None:
    engine = Engine()
    offset = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(PIECE):
            engine.feed(Chunk(str(path), 1, offset, data), 0.0)
            offset += len(data)


def rate(work: Callable[[Path], None], path: Path, seconds: float) -> float:
    """Megabytes a second of CPU time, the best pass of those that fit into ``seconds``."""
    best, ends = 0.0, time.process_time() + seconds
    while time.process_time() < ends or not best:
        began = time.process_time()
        work(path)
        best = max(best, path.stat().st_size / 1e6 / max(1e-9, time.process_time() - began))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each cell")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'log':<27} {'lines':<16} {'read':>8} {'split':>8} {'judge':>8}   judge ÷ split")
        for name in LOGS:
            for label, lines in (("step lines only", step_lines(name)), ("1 % step lines", mixed(step_lines(name)))):
                path = Path(folder) / "bench.log"
                path.write_bytes(b"".join(lines))
                plain, parsed, judged = (rate(work, path, seconds) for work in (read, split, judge))
                row = (
                    f"{name.removesuffix('.driver.log')[:26]:<27} {label:<16} {plain:8.0f} {parsed:8.1f} {judged:8.1f}"
                )
                print(f"{row}   {judged / parsed:.2f}")


if __name__ == "__main__":
    main()
