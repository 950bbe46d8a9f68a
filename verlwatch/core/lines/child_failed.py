"""A process that torchrun has started failed, and torchrun ends the others: verl's SFT trainers run so.

    ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 (pid: 4711) of binary: ...
    torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
    ============================================================
    verl.trainer.fsdp_sft_trainer FAILED
    ------------------------------------------------------------
    Failures:                                                    each like the root cause, or <NO_OTHER_FAILURES>
    ------------------------------------------------------------
    Root Cause (first observed failure):
    [0]:
      time      : 2025-07-31_10:50:07
      host      : gpu-node-3
      rank      : 11 (local_rank: 3)
      exitcode  : -9 (pid: 4711)
      error_file: <N/A>
      traceback : Signal 9 (SIGKILL) received by PID 4711
    ============================================================

Source: torch ``distributed/elastic/multiprocessing/api.py`` and ``errors/__init__.py``.  A negative exit code is that
of a signal.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Block, Fact, Line, Said, Take, fault

NAME: Final = "child_failed"
NEEDLES: Final = (b") local_rank: ", b"Root Cause (first observed failure)")

_FAILED = re.compile(
    r"failed \(exitcode: (-?[0-9]{1,10})\) local_rank: ([0-9]{1,6}) \(pid: ([0-9]{1,10})\) of (?:binary|fn): "
)
_ROOT = "Root Cause (first observed failure):"
_HOST = re.compile(r"  host {1,8}: (\S{1,253})$")
_RANK = re.compile(r"  rank {1,8}: ([0-9]{1,6}) \(local_rank: ([0-9]{1,6})\)$")
_EXIT = re.compile(r"  exitcode {1,8}: (-?[0-9]{1,10}) \(pid: ([0-9]{1,10})\)$")
_SIGNAL = re.compile(r"  traceback {1,8}: Signal [0-9]{1,3} \((SIG\w{1,10})\) received by PID ")


class Root:
    """The rows of the failure that came first."""

    LINES = 400
    BYTES = 1 << 15

    def __init__(self) -> None:
        self._told: dict[str, str | float | None] = {}

    def take(self, line: Line, said: Said | None, /) -> Take:
        """Its number, indented rows, and the rule under them."""
        text = bare(line).text.rstrip()
        if text.startswith("===="):
            return Take.DONE
        if text.startswith(("  ", "[0]:")):
            self._read(text)
            return Take.TAKEN
        return Take.ENDED if said is not None else Take.IGNORED

    def close(self) -> Fact | None:
        """``rank``, ``local_rank``, ``host``, ``pid``, ``exit_code`` and ``signal``, as far as the rows came."""
        return fault(NAME, self._told) if self._told else None

    def _read(self, row: str) -> None:
        if host := _HOST.match(row):
            self._told["host"] = host[1]
        elif rank := _RANK.match(row):
            self._told |= {"rank": int(rank[1]), "local_rank": int(rank[2])}
        elif ended := _EXIT.match(row):
            self._told |= {"exit_code": int(ended[1]), "pid": int(ended[2])}
        elif signal := _SIGNAL.match(row):
            self._told["signal"] = signal[1]


def parse(line: Line) -> Fact | Block | None:
    """``exit_code``, ``local_rank`` and ``pid`` of the first that failed; or the root cause that begins."""
    if line.shows_samples:
        return None
    text = bare(line).text
    if failed := _FAILED.match(text):
        code, local_rank, pid = map(int, failed.groups())
        found = {"exit_code": code, "local_rank": local_rank, "pid": pid}
        return fault(NAME, found, excerpt=failed[0].rpartition(" of ")[0])  # the command behind it may hold secrets
    return Root() if text.rstrip() == _ROOT else None
