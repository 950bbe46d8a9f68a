r"""What the kinds of fault share: the heads that libraries put before a message, and the form of a fault.

A process prints what its libraries say, each with a head of its own, behind the envelope that `_envelope` takes off:

    [rank3]:[E419 10:42:29.858931807 ProcessGroupNCCL.cpp:616] ...      torchrun and torch's C++
    (EngineCore_DP0 pid=12) ERROR 05-12 01:48:42 [core.py:72] ...       vLLM
    [2025-03-22 01:05:31 TP0] ...                                       SGLang
    [2025-03-14 14:33:46,164 E 4711 4790] logging.cc:113: ...           Ray's C++

Source: torch ``c10/util/Logging.cpp`` and ``torch/_utils.py`` (``[rankN]: ``), vLLM ``logger.py`` and ``utils``
(``decorate_logs``), SGLang ``srt/utils`` (``configure_logger``), Ray ``src/ray/util/logging.cc``.
A fault is believed where its words are the first of a message.  In the middle of a sentence they are a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from verlwatch.core.lines._line import Fact, Line
from verlwatch.core.types import Severity, Writer

_TEXT = 300
_HEADS_MAX = 6
_HEAD = re.compile(
    r"\[rank(?P<rank>[0-9]{1,6})\]: ?"
    r"|(?P<process>\([\w.=:-]{1,60}(?: [\w.=:-]{1,40}){0,2} pid=[0-9]{1,10}\)) ?"
    r"|(?:\[[\w-]{1,30}\] )?(?P<engine>DEBUG|INFO|WARNING|ERROR|CRITICAL) [0-9]{2}-[0-9]{2} [0-9:]{8} "
    r"(?:\[[\w./-]{1,100}:[0-9]{1,6}\]|[\w./-]{1,100}:[0-9]{1,6}\]?) ?"
    r"|\[[0-9-]{10} [0-9:]{8}(?: [\w ]{1,40})?\] ?"
    r"|\[(?P<torch>[IWEF])(?:[0-9]{3,4} [0-9:.]{8,20})? [\w.+/-]{1,80}:[0-9]{1,6}\] ?"
    r"|\[[0-9-]{10} [0-9:,]{12} (?P<ray>[DIWECF]) [0-9]{1,10} [0-9]{1,10}\] (?:\(\w{1,40}\) )?[\w.]{1,60}:[0-9]{1,6}: ?"
)
_ENGINES = ("vLLM", "SGLang", "EngineCore", "VllmWorker", "Worker_")
_PRINTS_OUTPUT = ("AgentLoopWorker", "RewardLoopWorker", "RewardManager", "ExecutionWorker")


class Bare(NamedTuple):
    """A message without heads, and what they told: the first letter of the level and the rank of the process.

    An engine's process counts its ranks for itself, which tells nothing of the run's.
    """

    text: str
    level: str = ""
    rank: int | None = None

    @property
    def is_chatter(self) -> bool:
        """Whether who wrote it says himself that it is no error."""
        return self.level in {"D", "I", "W"}


def bare(line: Line) -> Bare:
    """The message without heads; the blanks of a traceback's rows stay."""
    text = line.text
    is_engine = line.writer.name.startswith(_ENGINES)
    at = 0
    level = ""
    rank = None
    for _ in range(_HEADS_MAX):
        head = _HEAD.match(text, at)
        if head is None:
            break
        at = head.end()
        letter = head["engine"] or head["torch"] or head["ray"]
        level = letter[0] if letter else level
        rank = int(head["rank"]) if head["rank"] else rank
        is_engine = is_engine or bool(head["process"])
    return Bare(text[at:], level, None if is_engine else rank)


def prints_output(writer: Writer) -> bool:
    """Whether the process has no device and no engine, and prints what models and sandboxes said."""
    return writer.name.startswith(_PRINTS_OUTPUT)


def fault(
    kind: str, attributes: Mapping[str, str | float | None], severity: Severity = "critical", excerpt: str = ""
) -> Fact:
    """A fault of this class; what is None or empty is not known, and long texts are cut to 300 characters."""
    return Fact("fault", {"class": kind, **told(attributes)}, severity, excerpt)


def told(attributes: Mapping[str, str | float | None]) -> dict[str, str | int | float]:
    """What is known."""
    return {
        name: value[:_TEXT].strip() if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None and value != ""
    }
