"""One core reads, parses and judges recorded logs: megabytes a second, beside what reading alone costs.

    python benchmarks/judge.py [--mb 64]

Two logs are made from each of the recorded runs in tests/data: one of step lines only (one long
run), and one in which 1 % of the lines are step lines and the rest is what real logs are full of.  Beside them:
reading the same bytes in the same pieces, and Python's `for line in file` with a test for `step:`.
"""

from __future__ import annotations

import argparse
import gzip
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from verlwatch.core.engine import Engine
from verlwatch.core.types import Chunk

DATA = Path(__file__).parents[1] / "tests" / "data"
LOGS = ("verl-0.3.0.post1.driver.log", "verl-0.4.1.debug.driver.log", "verl-0.9.1.numpy2.nocolor.driver.log")
PIECE = 128 << 10
FILLER = (
    b"\x1b[36m(WorkerDict pid=9144)\x1b[0m INFO:2025-04-01 12:00:00,000:[Rank 3] wrote 16 sequences, now 64\n"
    b"(vLLMHttpServer pid=9) INFO 04-01 12:00:00 [loggers.py:257] Engine 000: Avg prompt throughput: 7107.0 tokens/s, "
    b"Avg generation throughput: 520.0 tokens/s, Running: 9 reqs, Waiting: 6 reqs, GPU KV cache usage: 13.3%\n"
    b"(AgentLoopWorker pid=77) the answer is 42, because six times seven steps are taken in order, as shown above\n"
)


def step_lines(name: str) -> list[bytes]:
    text = gzip.decompress((DATA / f"{name}.gz").read_bytes())
    return [line + b"\n" for line in text.split(b"\n") if b"timing_s/step" in line]


def read(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(PIECE):
            pass


def look_at_lines(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            if b"step:" in line:
                line.split(b" - ")


def judge(path: Path) -> None:
    engine = Engine()
    offset = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(PIECE):
            engine.feed(Chunk(str(path), 1, offset, data), 0.0)
            offset += len(data)


def rate(work: Callable[[Path], None], path: Path) -> float:
    """Megabytes a second of CPU time, the best of three."""
    best = 0.0
    for _ in range(3):
        began = time.process_time()
        work(path)
        best = max(best, path.stat().st_size / 1e6 / (time.process_time() - began))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=64, help="size of each log")
    size = parser.parse_args().mb * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'log':<44} {'read':>8} {'lines':>8} {'judge':>8}   judge ÷ lines")
        for name in LOGS:
            for share, label in ((1.0, "step lines only"), (0.01, "1 % step lines")):
                path = Path(folder) / "bench.log"
                path.write_bytes(_text(step_lines(name), share, size))
                plain, lines, judged = (rate(work, path) for work in (read, look_at_lines, judge))
                print(
                    f"{name.removesuffix('.log')[:26]:<27} {label:<16} {plain:8.0f} {lines:8.0f} {judged:8.1f}   "
                    f"{judged / lines:.2f}"
                )


def _text(lines: list[bytes], share: float, size: int) -> bytes:
    filler = FILLER.splitlines(keepends=True)
    between = round(1 / share) - 1
    out: list[bytes] = []
    length = i = 0
    while length < size:
        piece = _numbered(lines[i % len(lines)], i + 1) + b"".join(filler[k % len(filler)] for k in range(between))
        out.append(piece)
        length += len(piece)
        i += 1
    return b"".join(out)


def _numbered(line: bytes, step: int) -> bytes:
    """The line as that of another step: a step seen twice is not judged twice."""
    return re.sub(rb"step:\d+", b"step:%d" % step, line, count=1)


if __name__ == "__main__":
    main()
