"""What stands before a message of an inference engine: level, time, place, and which of the engine's processes.

    INFO 05-09 00:49:33 metrics.py:455] text                                  vLLM V0
    (EngineCore_DP0 pid=12) INFO 02-12 14:27:01 [loggers.py:257] text         vLLM V1
    [2025-01-23 19:35:34 DP1 TP0] text                                        SGLang

Source: vLLM ``logger.py`` and ``logging_utils/formatter.py``; SGLang ``srt/utils``, ``configure_logger``.
"""

from __future__ import annotations

import re

_HEAD = re.compile(
    r"(?:\([\w ]{1,40} pid=[0-9]{1,10}\) )?(?:"
    r"(?:DEBUG|INFO|WARNING|ERROR) [0-9-]{5,10} [0-9:.,]{8,12} \[?[\w./-]{1,80}:[0-9]{1,6}[\]:]? ?"
    r"|\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.,]{8,12}(?P<ranks>(?: [A-Z]{2,4}[0-9]{1,4}){0,5})\] )?"
)


def message(text: str) -> tuple[str, str]:
    """The message without what stands before it, and SGLang's name of the process (``TP0``, ``DP1 TP0``), or empty."""
    head = _HEAD.match(text)
    return (text[head.end() :], (head["ranks"] or "").strip()) if head else (text, "")
