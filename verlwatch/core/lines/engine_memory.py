"""Memory as an inference engine sees it: what is left in use while it sleeps, what is available at a stage.

    Sleep mode freed 19.49 GiB memory, 26.33 GiB memory is still in use.           vLLM
    Memory pool end. avail mem=7.12 GB                                            SGLang
    Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=62.94 GB, mem usage=14.87 GB.

Source: vLLM ``v1/worker/gpu_worker.py`` (``worker/worker.py`` before), also quoted without its first half; SGLang
``srt/model_executor/model_runner.py``.  Both count 2**30 bytes.  What stays in use while the engine sleeps belongs to
the trainer and to what leaks.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line, known
from verlwatch.core.lines._quantity import NUMBER

NAME: Final = "engine_memory"
NEEDLES: Final = (b"GiB memory is still in use", b"avail mem=")

_ASLEEP = re.compile(
    rf"(?:Sleep mode freed ({NUMBER}) GiB(?: memory)?, )?({NUMBER}) GiB memory is still in use(?:\.|$)"
)
_AVAILABLE = re.compile(rf"avail mem=({NUMBER}) GB(?!\w)")
_USED = re.compile(rf"mem usage=({NUMBER}) GB(?!\w)")
_STAGE = re.compile(
    r"((?:Load weight|Memory pool|Capture (?:draft )?c[pu]\w{1,2} graph|Update engine weights online from disk) "
    r"(?:begin|end))\. "
)


def parse(line: Line) -> Fact | None:
    """``freed_gb``, ``still_in_use_gb`` (vLLM); ``stage``, ``process``, ``available_gb``, ``taken_gb`` (SGLang)."""
    if line.shows_samples:
        return None
    text, _, _, process = bare(line)
    if asleep := _ASLEEP.match(text):
        freed = float(asleep[1]) if asleep[1] else None
        return Fact(NAME, known({"freed_gb": freed, "still_in_use_gb": float(asleep[2])}))
    stage = _STAGE.match(text)
    available = _AVAILABLE.search(text) if stage else None
    if stage is None or available is None:
        return None
    used = _USED.search(text)
    said = {
        "stage": stage[1],
        "process": process,
        "available_gb": float(available[1]),
        "taken_gb": float(used[1]) if used else None,
    }
    return Fact(NAME, known(said))
