"""Which rank a process is: nothing else joins the pid of Ray's prefix to a rank.

    [Rank 3] Saved model to /ckpt/global_step_50/actor/model_world_size_8_rank_3.pt          since 0.4, level INFO
    [rank-3]: Saving model to /ckpt/global_step_50/actor/model_world_size_8_rank_3.pt        0.2 and 0.3
    local rank 0                                                                             vLLM up to 0.6

Source: verl ``utils/checkpoint/fsdp_checkpoint_manager.py``, ``megatron_checkpoint_manager.py`` and
``utils/logger/aggregate_logger.py:log_with_rank``; ``third_party/vllm/*/spmd_gpu_executor.py``.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line, known

NAME: Final = "rank"
NEEDLES: Final = (b"global_step_", b"local rank ")

_RANK = re.compile(r"(?:\[Rank ([0-9]{1,6})\]|\[rank-([0-9]{1,6})\]:) (?:Saved|Saving|Loaded|Loading) ")
_WORLD = re.compile(r"_world_size_([0-9]{1,6})_rank_[0-9]{1,6}\.pt")
_LOCAL = re.compile(r"local rank ([0-9]{1,6})$")


def parse(line: Line) -> Fact | None:
    """``rank`` and, where a file's name tells, ``world_size``; or ``local_rank``, which counts on one host."""
    if line.shows_samples:
        return None
    if found := _RANK.match(line.text):
        world = _WORLD.search(line.text)
        size = int(world[1]) if world else None
        return Fact(NAME, known({"rank": int(found[1] or found[2]), "world_size": size}))
    local = _LOCAL.match(line.text.rstrip()) if not line.cut else None
    return Fact(NAME, {"local_rank": int(local[1])}) if local else None
