"""A row of ``nvidia-smi --query-gpu=… --format=csv``, as somebody's loop writes it into a log or a file.

    0, GPU-7d1f0c3a-5b6e-4a87-9c1d-2f3e4a5b6c7d, 28123, 81559, 97                                  noheader,nounits
    2026/05/21 10:30:00.123, 0, NVIDIA H100 80GB HBM3, GPU-7d1f0c3a-…, 28123 MiB, 81559 MiB, 97 %, 412.33 W, 61
    2026/05/21 10:30:00.123, 0, 28123 MiB, 81559 MiB, 97 %                                                       csv

Source: ``nvidia-smi --help-query-gpu``.  A row does not name its columns, and the header stands once at the top of what
may be weeks of rows.  So one order is read: ``timestamp, index, name, uuid, memory.used, memory.total,
utilization.gpu, power.draw, temperature.gpu``, where index and the two of memory must be there, the others may be
missing (power and temperature only from the end), and a row has a uuid or units, else it is numbers like any others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from verlwatch.core.lines._line import Attributes, Fact, Line

NAME: Final = "nvidia_smi"
NEEDLES: Final = (b", GPU-", b" MiB, ")

_MIB = r"(?:([0-9]{1,9})( MiB)?|\[[\w /]{1,30}\])"
_ROW = re.compile(
    r"(?:(20[0-9]{2}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?), )?([0-9]{1,4})"
    r"(?:, ((?:NVIDIA|Tesla|GRID|GeForce|Quadro|A100|H100)[\w .()/-]{0,60}))?"
    rf"(?:, (GPU-[0-9a-fA-F-]{{8,60}}))?, {_MIB}, {_MIB}(.*)"
)
_REST = ("utilization.gpu", "power.draw", "temperature.gpu")
_NUMBER = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(?: (?:MiB|%|W|C))?")
_MASK = re.compile(r"0x[0-9a-fA-F]{1,16}")
_BITS: Final = (("thermal", 0x20 | 0x40), ("power", 0x04 | 0x80), ("hw_slowdown", 0x08 | 0x80))
_NUMBERS = {
    "utilization.gpu": "utilization",
    "power.draw": "power_w",
    "temperature.gpu": "temperature_c",
    "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected",
}
_SIZES = {"memory.used": "used_gb", "memory.total": "total_gb"}
_TEXTS = {"uuid": "uuid", "name": "name"}
_MASKS = frozenset({"clocks_throttle_reasons.active", "clocks_event_reasons.active"})
_LONGEST = 100


def parse(line: Line) -> Fact | None:
    """``gpu_sample``: ``gpu`` (its index), ``timestamp`` (text, in the host's own time) and what `reading` gives."""
    if line.shows_samples or line.cut:
        return None
    row = _ROW.fullmatch(line.text.rstrip())
    if row is None:
        return None
    stamp, index, name, uuid, used, used_unit, total, total_unit, rest = row.groups()
    if not (uuid or used_unit or total_unit) or (used and total and int(used) > int(total)):
        return None
    cells = [cell.strip() for cell in rest.split(",")[1:]]
    if (rest and not rest.startswith(", ")) or len(cells) > len(_REST) or not all(map(_is_plain, cells)):
        return None
    values = reading(
        ("name", "uuid", "memory.used", "memory.total", *_REST),
        (name or "", uuid or "", used or "", total or "", *cells),
    )
    return Fact("gpu_sample", {**({"timestamp": stamp} if stamp else {}), "gpu": int(index), **values})


def reading(columns: Sequence[str], cells: Sequence[str]) -> Attributes:
    """What the cells of a row tell, given the columns as ``--query-gpu`` names them.

    GiB, percent, watts, degrees Celsius, counts.  What nvidia-smi cannot tell (``[N/A]``, ``ERR!``) is absent.
    """
    values: Attributes = {}
    for column, cell in zip(columns, cells, strict=False):
        if text := _TEXTS.get(column):
            if cell and not cell.startswith("["):
                values[text] = cell[:_LONGEST]
        elif column in _MASKS:
            if _MASK.fullmatch(cell):
                values["throttle"] = throttle(int(cell, 16))
        elif number := _NUMBER.fullmatch(cell):
            if size := _SIZES.get(column):
                values[size] = float(number[1]) / 1024
            elif name := _NUMBERS.get(column):
                values[name] = float(number[1])
    return values


def throttle(mask: int) -> str:
    """Why the clocks are held back, of thermal, power and hw_slowdown; empty where they are not, or by request.

    Source: ``nvmlClocksEventReason*`` in nvml.h.  Power is the cap that a card under load runs at (SwPowerCap) or an
    external brake, which is a hardware slowdown too.
    """
    return ",".join(name for name, bits in _BITS if mask & bits)


def _is_plain(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None or cell in {"[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "ERR!"}
