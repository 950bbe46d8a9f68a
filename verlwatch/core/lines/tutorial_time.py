"""Times and rates that people print themselves, one a line.

    [INFO] step: gen: 2487.3ms            [INFO] communication time: 412.5ms
    [INFO] wait for rollout workers: 2.41s    [INFO] resharding duration: 1.83s    [INFO] throughput: 1834.2 tokens/s

Source: verl tutorials; no release prints them.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line
from verlwatch.core.lines._quantity import NUMBER, SECONDS, number, seconds

NAME: Final = "tutorial_time"
NEEDLES: Final = (
    b"[INFO] step: ",
    b"throughput: ",
    b"[INFO] wait for ",
    b"communication time: ",
    b"resharding duration: ",
)

_TIME = re.compile(
    r"(?:\[[A-Z]{4,8}\] )?(?:step: (\w{1,60})|(communication) time|(reshard)ing duration|(wait) for ([\w ]{1,80}))"
    rf": ({NUMBER}) ?({SECONDS})$"
)
_THROUGHPUT = re.compile(rf"\[INFO\] throughput: ({NUMBER}) ?(tokens|samples)/s(?:ec)?$")


def parse(line: Line) -> Fact | None:
    """``phase_time`` with ``phase`` and ``seconds``, or ``throughput`` with ``tokens_per_s`` or ``samples_per_s``."""
    if line.from_rollout:
        return None
    text = line.text.rstrip()
    if rate := _THROUGHPUT.match(text):
        return Fact("throughput", {f"{rate[2]}_per_s": number(rate[1])})
    time = _TIME.match(text)
    if time is None:
        return None
    phase = time[1] or time[2] or time[3] or time[4]
    awaited = {"awaited": time[5]} if time[5] else {}
    return Fact("phase_time", {"phase": phase, **awaited, "seconds": seconds(time[6], time[7])})
