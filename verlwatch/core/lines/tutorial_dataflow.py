"""Rates of the data flow as a line of JSON that people print themselves.

    { "rollout_throughput": "120 samples/s", "buffer_write_latency": "80ms", "dataloader_fetch_time": "45ms" }

Source: verl tutorials, which ascribe it to a ``get_dataflow_stats`` that is in no release.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from verlwatch.core.lines._line import Attributes, Fact, Line
from verlwatch.core.lines._quantity import NUMBER, SECONDS, number, seconds

NAME: Final = "tutorial_dataflow"
NEEDLES: Final = (b'"rollout_throughput"',)

_LENGTH = 4000
_TIME = re.compile(rf"({NUMBER}) ?({SECONDS})")
_RATE = re.compile(rf"({NUMBER}) ?(samples|tokens)/s")


def parse(line: Line) -> Fact | None:
    """``dataflow`` with the times as ``NAME_s`` and the rates as ``NAME_samples_per_s``."""
    text = line.text.strip()
    if line.from_rollout or not text.startswith("{") or len(text) > _LENGTH:
        return None
    try:
        items = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    values: Attributes = {}
    for key, value in items.items():
        if not isinstance(value, str):
            continue
        if time := _TIME.fullmatch(value):
            values[f"{key}_s"] = seconds(time[1], time[2])
        elif rate := _RATE.fullmatch(value):
            values[f"{key}_{rate[2]}_per_s"] = number(rate[1])
    return Fact("dataflow", values) if values else None
