"""The training bar: ``Training Progress:  33%|...| 1/3 [00:02<00:04,  2.50s/it]``.

Source: tqdm in verl's ``RayPPOTrainer.fit`` (since 0.3), on stderr.  It counts from the start of the loop, and after a
resume its rate covers only the steps since.  Bars of other names (validation, engines, forks) are not training.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line

NAME: Final = "progress"
NEEDLES: Final = (b"Training Progress",)

_BAR = re.compile(
    r"Training Progress: *[0-9]{1,3}%\|[^|]*\| *([0-9]{1,18})/([0-9]{1,18}) "
    r"\[([0-9]+(?::[0-9]{2}){1,2})<[^,\]]*(?:, *([0-9.]+|\?)(s/it|it/s))?"
)


def parse(line: Line) -> Fact | None:
    """``done`` and ``total`` steps, ``elapsed_s``, and ``s_per_it`` once the bar knows it."""
    bar = _BAR.match(line.text) if line.is_bar else None
    if bar is None:
        return None
    done, total, elapsed, rate, unit = bar.groups()
    attributes: dict[str, str | int | float] = {
        "done": int(done),
        "total": int(total),
        "elapsed_s": _seconds(elapsed),
    }
    pace = _number(rate)
    if pace:
        attributes["s_per_it"] = pace if unit == "s/it" else 1 / pace
    return Fact("progress", attributes)


def _seconds(clock: str) -> int:
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part[:18])
    return seconds


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None
