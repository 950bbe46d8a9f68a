"""An inference engine has died, with the exception that it died of where it prints one.

    (EngineCore_DP0 pid=12) ERROR 05-12 01:48:42 [core.py:72] EngineCore encountered a fatal error.
    ERROR 01-29 08:37:48 [core_client.py:564] Engine core proc EngineCore_DP1 died unexpectedly, shutting down client.
    vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) ...
    [2025-03-22 01:05:31 TP0] Scheduler hit an exception: Traceback (most recent call last):

Source: vLLM ``v1/engine/core.py``, ``core_client.py``, ``exceptions.py``, ``v1/executor/multiproc_executor.py`` and of
V0 ``engine/async_llm_engine.py`` and ``entrypoints/launcher.py``; SGLang ``srt/managers/scheduler.py``,
``tokenizer_manager.py``, ``srt/entrypoints/engine.py`` and ``srt/utils/watchdog.py``.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Block, Fact, Line, Numbers, Said, Take, fault
from verlwatch.core.lines._traceback import TRACE_BYTES, TRACE_LINES, Trace

NAME: Final = "engine_dead"
NEEDLES: Final = (
    b" died unexpectedly",
    b"EngineDeadError: ",
    b"EngineCore encountered a",
    b"EngineCore failed to start",
    b"Engine core initialization failed",
    b", terminating server process",
    b" hit an exception: Traceback (most recent call last)",
    b"It usually means ",
    b"atchdog ",
)

_DIED = re.compile(r"(?:Engine core|Worker) proc ([\w-]{1,60}) died unexpectedly, shutting down (?:client|executor)")
_FATAL = re.compile(r"EngineCore (?:encountered a fatal error|failed to start)\b")
_RAISED = re.compile(
    r"(?:[\w.]{1,80}\.)?(?:Async)?EngineDeadError: .|(?:[\w.]{1,80}Error: )?Engine core initialization failed\b|"
    r"\w{0,20}LLMEngine (?:is already dead|has failed), terminating server process"
)
_HIT = re.compile(
    r"(Scheduler|\w{0,20}TokenizerManager|DetokenizerManager|DataParallelController|TpModelWorker\w{0,20}|EngineCore|"
    r"Multi\w{0,20}Router) hit an exception: (.*)"
)
_SIGNAL = re.compile(r"SIGQUIT received\. |Received sigquit from a child proces")  # so in SGLang: with one s
_WATCHDOG = re.compile(r"(?:(\w{1,40}) watchdog|Watchdog) timeout \(self\.")


class Death:
    """An engine that prints the traceback it died of behind the line that says so."""

    LINES = TRACE_LINES
    BYTES = TRACE_BYTES

    def __init__(self, backend: str, process: str, rank: int | None, shard: str, text: str = "") -> None:
        self._known = {"backend": backend, "process": process, "rank": rank, "shard": shard}
        self._trace = Trace()
        if text:
            self._trace.take(text)

    def take(self, line: Line, said: Said | None, /) -> Take:
        """Rows of the traceback."""
        if isinstance(said, Numbers):
            return Take.IGNORED
        taken = self._trace.take(bare(line).text, cut=line.cut is True)
        return Take.ENDED if isinstance(said, Death) else taken

    def close(self) -> Fact:
        """``backend`` (vllm, sglang), ``process``, SGLang's ``shard``, and the exception as `exception` tells it."""
        return fault(NAME, {**self._known, **self._trace.told})


def parse(line: Line) -> Fact | Block | None:
    """A death, alone or with the traceback that follows; what engines call information is none."""
    if line.shows_samples:
        return None
    text, level, rank, shard = bare(line)
    if level in {"D", "I"}:
        return None
    if died := _DIED.match(text):
        return fault(NAME, {"backend": "vllm", "process": died[1], "rank": rank, "text": text})
    if _RAISED.match(text):
        return fault(NAME, {"backend": "vllm", "rank": rank, "text": text})
    if _FATAL.match(text):
        return Death("vllm", "EngineCore", rank, shard)
    if hit := _HIT.match(text):
        backend = "vllm" if hit[1] == "EngineCore" else "sglang"
        return Death(backend, hit[1], rank, shard, hit[2])
    watchdog = _WATCHDOG.match(text)
    if watchdog or _SIGNAL.match(text):
        process = watchdog[1] if watchdog else None
        return fault(NAME, {"backend": "sglang", "process": process, "rank": rank, "shard": shard, "text": text})
    return None
