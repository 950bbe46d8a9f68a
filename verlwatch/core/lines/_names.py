"""What the names tell that verl gives to actors and methods.

Source: verl ``single_controller/ray/base.py`` names actors ``{group}{class}_{node}:{local rank}``; the methods are
those of ``workers/fsdp_workers.py``, ``megatron_workers.py`` and ``engine_workers.py``, with the role before them
where several share a process (``actor_rollout_generate_sequences``).
"""

from __future__ import annotations

import re

_PLACE = re.compile(r"_([0-9]{1,6}):([0-9]{1,6})$")
_PHASES = (
    ("ref_compute_log_prob", "ref"),
    ("compute_ref_log_prob", "ref"),
    ("compute_log_prob", "old_log_prob"),
    ("recompute_log_prob", "old_log_prob"),
    ("compute_values", "values"),
    ("generate_sequences", "gen"),
    ("rollout_generation", "gen"),
    ("update_critic", "update_critic"),
    ("update_actor", "update_actor"),
    ("update_policy", "update_actor"),
    ("update_weights", "update_weights"),
    ("sync_rollout_weights", "update_weights"),
    ("sync_model_weights", "update_weights"),
    ("compute_rm_score", "reward"),
    ("compute_reward", "reward"),
    ("save_checkpoint", "save_checkpoint"),
)


def phase_of(method: str) -> str | None:
    """The phase that a method, or a text with blanks between its words, is part of."""
    words = method.replace(" ", "_")
    return next((phase for name, phase in _PHASES if name in words), None)


def place_of(actor: str) -> tuple[int, int] | tuple[None, None]:
    """Node and local rank of an actor, both counted from 0."""
    found = _PLACE.search(actor)
    return (int(found[1]), int(found[2])) if found else (None, None)
