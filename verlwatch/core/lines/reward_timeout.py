"""A reward was not there in time and counts 0: usual where answers are run in a sandbox, and no fault of the run.

Source: verl ``workers/reward_manager/prime.py`` (``Timeout occurred for completion: ...``, ``Global timeout in reward
computing! Setting all as 0.`` up to 0.2; ``[Timeout] Task timeout: ...``, ``[Timeout] Global reward scoring timed out.
Setting all as 0.`` since), ``utils/reward_score/prime_code/utils.py`` (``global timeout``) and
``utils/reward_score/sandbox_fusion/utils.py`` (``[Request ID: ...] Sandbox API call failed. Last error: ...``).
The model's answer, which some of these lines quote, is left out.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line

NAME: Final = "reward_timeout"
NEEDLES: Final = (b"Timeout", b"lobal timeout", b"Sandbox API call failed")

_BATCH = ("[Timeout] Global reward scoring timed out", "Global timeout in reward computing!")
_SAMPLE = ("[Timeout] Task timeout: ", "Timeout occurred for completion: ")
_SANDBOX = re.compile(r"\[Request ID: [0-9a-f-]{36}\] Sandbox API call failed\. Last error: ")
_TIMED_OUT = ("timed out", "Timeout")


def parse(line: Line) -> Fact | None:
    """``of``: one answer (``sample``), all of a step (``batch``) or a call of the ``sandbox``."""
    text = line.text
    if text.startswith(_BATCH):
        return Fact(NAME, {"of": "batch"}, excerpt=text[:80])
    if text.startswith(_SAMPLE) or text.strip() == "global timeout":
        return Fact(NAME, {"of": "sample"}, excerpt=text.partition(":")[0])
    sandbox = _SANDBOX.match(text)
    if sandbox and any(words in text[sandbox.end() :] for words in _TIMED_OUT):
        return Fact(NAME, {"of": "sandbox"})
    return None
