"""All GPUs of a node in one line: ``[INFO] After rollout generation: GPU 0: 48.2GB / 80GB, GPU 1: 12.1GB / 80GB``.

Source: verl tutorials; in no release does one process print more than its own GPU.  The heads are those of verl's own
memory lines.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Attributes, Fact, Line
from verlwatch.core.lines._moment import moment
from verlwatch.core.lines._quantity import NUMBER, number

NAME: Final = "tutorial_memory"
NEEDLES: Final = (b": GPU 0: ",)

_HEAD = re.compile(r"(?:\[[A-Z]{4,8}\] )?([\w ()/-]{1,200}): (?=GPU 0: )")
_GPU = re.compile(rf"GPU ([0-9]{{1,4}}): ({NUMBER}) ?(GB|GiB) ?/ ?({NUMBER}) ?(GB|GiB)")
_GPUS_MAX = 64


def parse(line: Line) -> Fact | None:
    """``gpu_memory`` with ``head``, ``used_gb.N`` and ``total_gb.N`` of GPU N, ``gpus`` (how many) and ``unit``."""
    head = _HEAD.match(line.text) if not line.shows_samples else None
    if head is None:
        return None
    *items, last = line.text[head.end() :].rstrip().split(", ", _GPUS_MAX)
    gpus = [_GPU.fullmatch(item) for item in items]
    if end := _GPU.fullmatch(last):
        gpus.append(end)
    values: Attributes = {}
    for gpu in gpus:
        if gpu is None:
            return None
        values |= {f"used_gb.{gpu[1]}": number(gpu[2]), f"total_gb.{gpu[1]}": number(gpu[4]), "unit": gpu[3]}
    return Fact("gpu_memory", {**moment(head[1]), **values, "gpus": len(gpus)}) if gpus else None
