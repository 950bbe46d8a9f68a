"""Validation begins to generate, and has generated; its scores are in the step line.

    test_gen_batch meta info: {'eos_token_id': 2, ..., 'validate': True, 'global_steps': 50}         since 0.3
    validation generation end                                                                        all releases

Source: verl ``RayPPOTrainer._validate``, which prints both for every batch of the validation set.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line, known

NAME: Final = "validation"
NEEDLES: Final = (b"test_gen_batch meta info: ", b"validation ")

_BEGIN = "test_gen_batch meta info: {"
_STEP = re.compile(r"'global_steps': ([0-9]{1,18})[,}]")


def parse(line: Line) -> Fact | None:
    """``what``: begin, with the ``step`` where the line tells it, or generated."""
    if line.from_rollout:
        return None
    if line.text.startswith(_BEGIN):
        step = _STEP.search(line.text)
        return Fact(NAME, known({"what": "begin", "step": int(step[1]) if step else None}))
    return Fact(NAME, {"what": "generated"}) if line.text.rstrip() == "validation generation end" else None
