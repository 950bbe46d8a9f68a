"""A training process that begins: from scratch, or from a checkpoint.

Source: verl ``RayPPOTrainer._load_checkpoint``.  A resume prints three of these lines, each an event of its own:
``Load from checkpoint folder: DIR``, ``Setting global step to N``, ``Resuming from DIR``; the fully asynchronous
trainer puts ``[FullyAsyncTrainer] `` in front, and the version of its parameters behind the step.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import TEXT_LENGTH, Fact, Line

NAME: Final = "resume"
NEEDLES: Final = (b"Setting global step to ", b"global_step_", b"Training from scratch")

_ASYNC = r"(?:\[FullyAsyncTrainer\] )?"
_STEP = re.compile(rf"{_ASYNC}Setting global step to ([0-9]{{1,18}})(?:$|, current_param_version)")
_FOLDER = re.compile(
    rf"{_ASYNC}(?:Load from checkpoint folder: |Resuming from {{1,2}})(\S.*global_step_([0-9]{{1,18}})/?)$"
)


def parse(line: Line) -> Fact | None:
    """``from`` (``scratch`` or ``checkpoint``), and the ``step`` and ``folder`` that the line names."""
    if line.cut or line.from_rollout:
        return None
    if line.text.rstrip() == "Training from scratch":
        return Fact(NAME, {"from": "scratch"})
    if step := _STEP.match(line.text):
        return Fact(NAME, {"from": "checkpoint", "step": int(step[1])})
    if folder := _FOLDER.match(line.text):
        return Fact(NAME, {"from": "checkpoint", "step": int(folder[2]), "folder": folder[1][:TEXT_LENGTH]})
    return None
