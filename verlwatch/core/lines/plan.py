"""How long the run will be: ``Total training steps: 300``, ``Size of train dataloader: 300[, Size of val ...: 1]``.

Source: verl ``RayPPOTrainer._create_dataloader``: one line for both sizes since 0.4, two before; the 0.9 v1 trainer
logs the total (``INFO:...:Total training steps: 300``) instead of printing it.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line

NAME: Final = "plan"
NEEDLES: Final = (b"Total training steps: ", b"Size of train dataloader: ")

_TOTAL = re.compile(r"Total training steps: ([0-9]{1,18})$")
_SIZES = re.compile(r"Size of train dataloader: ([0-9]{1,18})(?:, Size of val dataloader: ([0-9]{1,18}))?$")


def parse(line: Line) -> Fact | None:
    """``total`` steps, or ``train_batches`` and, on the same line, ``val_batches``."""
    if line.cut or line.from_rollout:
        return None
    if total := _TOTAL.match(line.text):
        return Fact(NAME, {"total": int(total[1])})
    if sizes := _SIZES.match(line.text):
        found = {"train_batches": sizes[1], "val_batches": sizes[2]}
        return Fact(NAME, {name: int(size) for name, size in found.items() if size})
    return None
