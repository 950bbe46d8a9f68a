"""The training bar: ``Training Progress:  33%|...| 1/3 [00:02<00:04,  2.50s/it]``.

Source: tqdm in verl's ``RayPPOTrainer.fit`` (since 0.3), on stderr; EasyR1 calls it ``Running step``.  It counts from
the start of the loop, and after a resume its rate covers only the steps since.  Bars of other names (validation,
engines, phases) are not training, nor is one that a process prints which shows what models write.
"""

from __future__ import annotations

from typing import Final

from verlwatch.core.lines._bar import bar
from verlwatch.core.lines._line import Fact, Line

NAME: Final = "progress"
NEEDLES: Final = (b"Training Progress", b"s/it]", b"it/s]")

_TITLES = ("Training Progress", "Running step")


def parse(line: Line) -> Fact | None:
    """``done`` and ``total`` steps, ``elapsed_s``, and ``s_per_it`` once the bar knows it."""
    found = bar(line.text) if line.is_bar and not line.from_rollout else None
    return Fact(NAME, found[1]) if found and found[0] in _TITLES else None
