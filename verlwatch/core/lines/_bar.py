"""A progress bar: ``Title:  33%|...| 1/3 [00:02<00:04,  2.50s/it]``.

Source: tqdm ``std.py:format_meter``.  The rate is ``?`` until the bar knows it, and turns into ``it/s`` above one.
"""

from __future__ import annotations

import re

from verlwatch.core.lines._line import Attributes

_BAR = re.compile(
    r"([A-Za-z][\w ()-]{0,40}): *[0-9]{1,3}%\|[^|]{0,1000}\| *([0-9]{1,18})/([0-9]{1,18}) "
    r"\[([0-9]{1,9}(?::[0-9]{2}){1,2})<[^,\]]{0,40}(?:, *([0-9]{1,18}(?:\.[0-9]{1,9})?)(s/it|it/s))?"
)


def bar(text: str) -> tuple[str, Attributes] | None:
    """Its title; ``done`` and ``total``, ``elapsed_s`` and, once known, ``s_per_it``.  None if it is no bar."""
    found = _BAR.match(text)
    if found is None:
        return None
    title, done, total, clock, rate, unit = found.groups()
    said: Attributes = {"done": int(done), "total": int(total), "elapsed_s": _seconds(clock)}
    if rate and (pace := float(rate)):
        said["s_per_it"] = pace if unit == "s/it" else 1 / pace
    return title, said


def _seconds(clock: str) -> int:
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return seconds
