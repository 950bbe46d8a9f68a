"""Skip and find: how fast a finished log is read, each way in a process of its own.

`python benchmarks/_reading.py WAY LOG` is such a process: it prints CPU seconds and what it found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PIECE = 128 << 10  # as the tail hands over
NEEDLE = " - timing_s/"


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading took: bytes, CPU seconds, how many were found, resident memory at most (MB; 0 if not known)."""

    size: int
    cpu_s: float
    found: int
    rss_mb: float

    @property
    def rate(self) -> float:
        """MB per CPU second."""
        return self.size / self.cpu_s / 1e6


def floor(path: Path) -> int:
    """Plain read() into one buffer; half a line is carried to the front."""
    buffer = bytearray(2 * PIECE)
    view = memoryview(buffer)
    carried = whole = 0
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(view[carried : carried + PIECE]):
            end = carried + count
            line = buffer.rfind(b"\n", 0, end) + 1
            whole += line > 0
            carried = min(end - line, PIECE)
            buffer[:carried] = buffer[end - carried : end]
    return whole


def find(path: Path) -> int:
    """The line finder, with the literals that the Reader looks for."""
    from verlwatch.core.lines._kinds import KINDS  # noqa: PLC0415  # only now: the other ways are to weigh nothing
    from verlwatch.core.lines._search import Candidates, Index  # noqa: PLC0415

    index = Index(KINDS)
    found, rest = 0, b""
    with path.open("rb", buffering=0) as file:
        while data := file.read(PIECE):
            end = data.rfind(b"\n") + 1
            block, rest = rest + data[:end], data[end:]
            candidates = Candidates(block, index)
            start, newline = candidates.after(0)
            while start < len(block):
                found += 1
                start, newline = candidates.after(newline + 1)
    return found


def records(path: Path) -> int:
    """The whole path from bytes to records, every key a number."""
    from verlwatch.core.lines import Reader  # noqa: PLC0415

    reader = Reader("train.log")
    found = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(PIECE):
            found += len(reader.feed(data, 0.0))
    return found + len(reader.finish(0.0))


WAYS: dict[str, Callable[[Path], int]] = {"floor": floor, "find": find, "records": records}


def python(way: str, log: Path) -> Cost:
    """One of the ways above, the best of three."""
    command = [sys.executable, __file__, way, str(log)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return Cost(log.stat().st_size, *told)


def tool(*command: str, log: Path) -> Cost:
    """A command that prints a number about the log, the best of three."""
    best = Cost(log.stat().st_size, float("inf"), 0, 0.0)
    for _ in range(3):
        with subprocess.Popen([*command, str(log)], stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}) as child:
            assert child.stdout is not None
            told = child.stdout.read()
            _, _, usage = os.wait4(child.pid, 0)
            child.returncode = 0
        cpu_s = usage.ru_utime + usage.ru_stime
        if cpu_s < best.cpu_s:
            best = Cost(best.size, cpu_s, int(told.split()[0]), 0.0)
    return best


def table(log: Path) -> list[tuple[str, Cost]]:
    """All ways, each with its cost."""
    return [
        ("read() into one buffer", python("floor", log)),
        ("wc -l", tool("wc", "-l", log=log)),
        (f"grep -c '{NEEDLE}'", tool("grep", "-c", "-e", NEEDLE, log=log)),
        ("line finder", python("find", log)),
        ("bytes -> records", python("records", log)),
    ]


def main() -> None:
    """The child's part."""
    way, path = sys.argv[1:]
    best, found = float("inf"), 0
    for _ in range(3):
        begun = time.process_time()
        found = WAYS[way](Path(path))
        best = min(best, time.process_time() - begun)
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps([best, found, int(peak.split()[1]) / 1024]))


if __name__ == "__main__" and len(sys.argv) > 1:
    main()
