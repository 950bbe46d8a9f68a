r"""The heads that libraries put before a message, behind the envelope that `_envelope` takes off.

    [rank3]:[E419 10:42:29.858931807 ProcessGroupNCCL.cpp:616] ...            torchrun and torch's C++
    E0325 20:57:27.620000 2606 torch/distributed/elastic/...api.py:869] ...   torch's Python since 2.3
    [2024-05-08 08:47:31,877] torch.distributed.elastic...api: [ERROR] ...    and before
    INFO 05-09 00:49:33 metrics.py:455] ...                                   vLLM V0
    (EngineCore_DP0 pid=12) ERROR 05-12 01:48:42 [core.py:72] ...             vLLM V1
    [2025-01-23 19:35:34 DP1 TP0] ...                                         SGLang
    [2025-03-14 14:33:46,164 E 4711 4790] logging.cc:113: ...                 Ray's C++
    [3] node3:4711:4790 [3] misc/socket.cc:49 NCCL WARN ...                   launchers that tag NCCL's lines
    E   ValueError: ...                                                       pytest

Source: torch ``c10/util/Logging.cpp``, ``torch/_utils.py`` (``[rankN]: ``) and ``torch/_logging``, vLLM ``logger.py``,
``logging_utils/formatter.py`` and ``utils`` (``decorate_logs``), SGLang ``srt/utils`` (``configure_logger``), Ray
``src/ray/util/logging.cc``.
What a library says is believed where its words are the first of a message.  In a sentence they are a quotation.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from verlwatch.core.lines._line import Line

LABEL: Final = r"(?:[A-Z]{2,20}(?: [A-Z]{2,20}){0,2}: )?"
"""A pattern of what a script of one's own may write before an error of Ray: ``FATAL: ``, ``RUN FAILED: ``."""

_HEADS_MAX = 6
_HEAD = re.compile(
    r"\[rank(?P<rank>[0-9]{1,6})\]: ?"
    r"|(?P<vllm>\([\w.=:-]{1,60}(?: [\w.=:-]{1,40}){0,2} pid=[0-9]{1,10}\)) ?"
    r"|(?:\[[\w-]{1,30}\] )?(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) [0-9-]{5,10} [0-9:.,]{8,12} "
    r"\[?[\w./-]{1,100}:[0-9]{1,6}[\]:]? ?"
    r"|\[[0-9-]{10} [0-9:.,]{8,12}(?P<process>(?: [A-Z]{2,4}[0-9]{1,4}){1,5}| \w{1,40})?\] ?"
    r"|\[(?P<torch>[IWEF])(?:[0-9]{3,4} [0-9:.]{8,20})? [\w.+/-]{1,80}:[0-9]{1,6}\] ?"
    r"|(?:(?P<python>[IWEF])[0-9]{4} [0-9:.]{8,15} [0-9]{1,18} )?(?:site-packages/)?torch/[\w./]{1,100}:[0-9]{1,6}\] "
    r"|torch\.[\w.]{1,80}: \[(?P<module>[A-Z]{4,8})\] "
    r"|\[[0-9]{1,5}\] (?=[\w.-]{1,100}:[0-9]{1,10}:[0-9]{1,10} \[[0-9])"
    r"|E {3}(?=(?:[A-Za-z_]\w{0,60}\.){0,10}\w{0,80}(?:Error|Exception)\b)"
    r"|\[[0-9-]{10} [0-9:,]{12} (?P<ray>[DIWECF]) [0-9]{1,10} [0-9]{1,10}\] (?:\(\w{1,40}\) )?[\w.]{1,60}:[0-9]{1,6}: ?"
)
_ENGINES = ("vLLM", "SGLang", "EngineCore", "VllmWorker", "Worker_")


class Bare(NamedTuple):
    """A message without heads, and what they told.

    ``level`` is the first letter of its name; ``rank`` the one of the process, unless an engine counts for itself;
    ``process`` SGLang's name of it (``DP1 TP0``).
    """

    text: str
    level: str = ""
    rank: int | None = None
    process: str = ""

    @property
    def is_chatter(self) -> bool:
        """Whether who wrote it says himself that it is no error."""
        return self.level in {"D", "I", "W"}


def bare(line: Line) -> Bare:
    """The message without heads; the blanks of a traceback's rows stay."""
    text = line.text
    is_engine = line.writer.name.startswith(_ENGINES)
    at = 0
    level = process = ""
    rank = None
    for _ in range(_HEADS_MAX):
        head = _HEAD.match(text, at)
        if head is None:
            break
        at = head.end()
        letter = head["level"] or head["torch"] or head["python"] or head["module"] or head["ray"]
        level = letter[0] if letter else level
        rank = int(head["rank"]) if head["rank"] else rank
        process = (head["process"] or process).strip()
        is_engine = is_engine or bool(head["vllm"])
    return Bare(text[at:], level, None if is_engine else rank, process)
