"""A gradient is nan or infinite, and the step is skipped: ``WARN: rank 3 grad_norm is not finite: nan``.

Source: verl ``workers/actor/dp_actor.py`` (0.4 to 0.7, with the rank), ``workers/critic/dp_critic.py`` and
``workers/engine/*/transformer_impl.py`` (since 0.6, no rank, ``tensor(nan, device='cuda:0')``), printed by every rank.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line, fault

NAME: Final = "not_finite"
NEEDLES: Final = (b"grad_norm is not finite: ",)

_LINE = re.compile(
    r"(?:WARN: )?(?:rank ([0-9]{1,6}) )?grad_norm is not finite: "
    r"(?:DTensor\(local_tensor=)?(?:tensor\()?(-?nan|-?inf)\b"
)


def parse(line: Line) -> Fact | None:
    """``value`` (nan or inf), and the ``rank`` where the line names it."""
    if line.shows_samples:
        return None
    text, _, rank, _ = bare(line)
    found = _LINE.match(text)
    if found is None:
        return None
    return fault(NAME, {"value": found[2], "rank": int(found[1]) if found[1] else rank}, "warning")
