"""A table of nccl-tests: how fast a collective is at each size.

    #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        16777216       4194304     float     sum      -1    163.2  102.80  102.80      0    161.9  103.63  103.63      0
    # Avg bus bandwidth    : 110.534

Source: nccl-tests ``src/common.cu`` (``all_reduce_perf`` and the others); verl tutorials run it before training.  The
first three numbers after the root are out of place, the other three in place; GB are 10**9 bytes.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Attributes, Fact, Line, Take
from verlwatch.core.lines._quantity import NUMBER, seconds

NAME: Final = "nccl_tests"
NEEDLES: Final = (b"algbw   busbw", b"# Avg bus bandwidth")

_HEADING = re.compile(r"# {1,40}size {1,40}count {1,40}type ")
_ROW = re.compile(
    r" {0,40}([0-9]{1,18}) {1,40}[0-9]{1,18} {1,40}([a-z][a-z0-9_]{1,15})(?: {1,40}([a-z]{3,12}))?"
    r"(?: {1,40}-?[0-9]{1,6})?"
    rf" {{1,40}}({NUMBER}) {{1,40}}({NUMBER}) {{1,40}}({NUMBER}) {{1,40}}[\w./+-]{{1,12}}"
    rf" {{1,40}}({NUMBER}) {{1,40}}({NUMBER}) {{1,40}}({NUMBER})(?: |$)"
)
_AVERAGE = re.compile(rf"# Avg bus bandwidth {{0,20}}: ({NUMBER})$")
_ROWS_MAX = 40


class _Table:
    """The rows under the heading."""

    LINES = 1000
    BYTES = 1 << 18

    def __init__(self) -> None:
        self._values: Attributes = {}
        self._rows = 0

    def take(self, line: Line, said: object, /) -> Take:
        """A row, or a comment; the average behind the table says the rest by itself, as the next heading does."""
        if said is not None:
            return Take.ENDED
        text = line.text.rstrip()
        if text.startswith("#"):
            return Take.TAKEN
        row = _ROW.match(text) if not line.cut else None
        if row is None:
            return Take.IGNORED
        self._rows += 1
        if self._rows <= _ROWS_MAX:
            self._add(row)
        return Take.TAKEN

    def close(self) -> Fact | None:
        """What each size took, as far as the rows came."""
        return Fact(NAME, self._values) if self._values else None

    def _add(self, row: re.Match[str]) -> None:
        size, kind, operation, time, algorithm, bus, time_in_place, _, bus_in_place = row.groups()
        self._values |= {
            "type": kind,
            **({"operation": operation} if operation else {}),
            f"time_s.{size}": seconds(time, "us"),
            f"algbw_gb_s.{size}": float(algorithm),
            f"busbw_gb_s.{size}": float(bus),
            f"in_place_time_s.{size}": seconds(time_in_place, "us"),
            f"in_place_busbw_gb_s.{size}": float(bus_in_place),
        }


def parse(line: Line) -> Fact | _Table | None:
    """The table, sizes in bytes as part of the names; or its average (``busbw_gb_s``)."""
    if line.shows_samples:
        return None
    return _Table() if _HEADING.match(line.text) else _average(line)


def _average(line: Line) -> Fact | None:
    average = _AVERAGE.match(line.text.rstrip()) if not line.cut else None
    return Fact(NAME, {"busbw_gb_s": float(average[1])}) if average else None
