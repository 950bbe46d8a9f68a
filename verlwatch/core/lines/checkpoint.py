"""A checkpoint is about to be saved: ``local_global_step_folder: checkpoints/x/global_step_50``.

Source: verl ``RayPPOTrainer._save_checkpoint`` (since 0.3).  The trainer prints nothing when it is done: how long it
took is in the step line (``timing_s/save_checkpoint``).
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line, known

NAME: Final = "checkpoint"
NEEDLES: Final = (b"local_global_step_folder: ",)

_LINE = re.compile(r"(?:\[FullyAsyncTrainer\] )?local_global_step_folder: (\S[^\n]{0,4096})")
_STEP = re.compile(r"global_step_([0-9]{1,18})/?$")


def parse(line: Line) -> Fact | None:
    """The ``folder``, and the ``step`` where its name tells."""
    found = _LINE.match(line.text) if not line.cut and not line.from_rollout else None
    if found is None:
        return None
    folder = found[1].strip()
    step = _STEP.search(folder)
    return Fact(NAME, known({"folder": folder, "step": int(step[1]) if step else None}))
