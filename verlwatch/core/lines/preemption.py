"""vLLM takes a running request off the GPU because the KV cache is full, and has to compute it again.

    Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. ...
        total_cumulative_preemption_cnt=1                                                        one line

Source: vLLM ``core/scheduler.py`` (V0), every 50th time, with ``total_num_cumulative_preemption``; vLLM's documentation
quotes ``total_cumulative_preemption_cnt``.  V1 prints no warning: its stats line counts them.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line

NAME: Final = "preemption"
NEEDLES: Final = (b"cumulative_preemption",)

_PREEMPTED = re.compile(r"Sequence group \S{1,100} is preempted by (?:PreemptionMode\.)?(\w{1,20}) mode because ")
_TOTAL = re.compile(r"total_(?:num_)?cumulative_preemption(?:_cnt)?=([0-9]{1,18})$")


def parse(line: Line) -> Fact | None:
    """``mode`` (recompute, swap), and the ``total`` of this engine since it started."""
    if line.cut or line.shows_samples:
        return None
    text = bare(line).text
    preempted = _PREEMPTED.match(text)
    total = _TOTAL.search(text.rstrip()[-80:]) if preempted else None
    return Fact(NAME, {"mode": preempted[1].lower(), "total": int(total[1])}) if preempted and total else None
