"""The bar of one phase: ``Update policy:  76%|...| 244/320 [08:56<02:05,  1.65s/it]``.

Source: tqdm in EasyR1 ``verl/workers/actor/dp_actor.py`` and ``critic/dp_critic.py``, on rank 0; verl itself has only
``Training Progress``.  A bar that stands still tells in which phase a run hangs or died.
"""

from __future__ import annotations

from typing import Final

from verlwatch.core.lines._bar import bar
from verlwatch.core.lines._line import Fact, Line

NAME: Final = "phase_bar"
NEEDLES: Final = (b"s/it]", b"it/s]")

_TITLES = frozenset({"Compute log probs", "Compute values", "Update policy", "Update critic", "Train mini-batches"})


def parse(line: Line) -> Fact | None:
    """``phase`` (the title in small letters), ``done`` of ``total`` parts, ``elapsed_s`` and ``s_per_it``."""
    found = bar(line.text) if line.is_bar else None
    if found is None or found[0] not in _TITLES:
        return None
    title, said = found
    return Fact(NAME, {"phase": title.lower().replace(" ", "_").replace("-", "_"), **said})
