"""When in a step a memory line was printed, as far as its head tells: ``update_actor Before update_actor``.

Heads are free text of the call (``After building vllm rollout``) or a role, ``Before`` or ``After``, and a function.
"""

from __future__ import annotations

import re

from verlwatch.core.lines._line import Attributes
from verlwatch.core.lines._names import phase_of

_RANK = re.compile(r"rank ([0-9]{1,6}): ")
_ROLE = re.compile(r"([\w ]{1,80}) (Before|After) ([A-Za-z_]\w{0,80})$")
_SHARED = frozenset({"dp actor compute_log_prob", "megatron actor compute_log_prob"})  # the reference policy's too


def moment(head: str) -> Attributes:
    """``when`` (before, after), ``phase``, ``role`` and ``rank``: those that the head names."""
    said: Attributes = {"head": head}
    if rank := _RANK.match(head):
        said["rank"] = int(rank[1])
        head = head[rank.end() :]
    first = head.partition(" ")[0].lower()
    if first in {"before", "after"}:
        said["when"] = first
    elif role := _ROLE.match(head):
        said |= {"role": role[1], "when": role[2].lower()}
        head = f"{role[1]} {role[3]}"
    phase = phase_of(head) if head not in _SHARED else None
    return {**said, "phase": phase} if phase else said
