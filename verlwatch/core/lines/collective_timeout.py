"""A collective operation did not come to an end: NCCL's watchdog, and HCCL's on Ascend, one line a rank.

    [rank7]:[E419 10:42:29.8 ProcessGroupNCCL.cpp:616] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(
        SeqNum=4486, OpType=ALLTOALL, NumelIn=46684160, NumelOut=46684160, Timeout(ms)=600000) ran for 600015
        milliseconds before timing out.
    [rank7]:[E419 ...] [PG ID 2 PG GUID 9 Rank 7] ... last enqueued NCCL work: 4489, last completed NCCL work: 4485.

Source: torch ``csrc/distributed/c10d/ProcessGroupNCCL.cpp`` (its second line is worded in several ways, since 2.6
``PG status: last enqueued work: 57, last completed work: 56``), torch_npu ``ProcessGroupHCCL.cpp`` (``WorkHCCL``, no
``Numel``).  The watchdog then ends its thread with the first line inside another: ``again`` is 1 there.
``[Rank n]`` counts within the process group; ``[rankN]:`` in front, where it stands, is the rank of the run.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line, fault, known
from verlwatch.core.lines._quantity import seconds

NAME: Final = "collective_timeout"
NEEDLES: Final = (b"atchdog ", b"ast enqueued ")

_GROUP = r"(?:\[([^\[\]]{1,120})\] ?)?"
_TIMEOUT = re.compile(
    rf"(?:Unhandled exception: \S{{1,200}} )?\s{{0,8}}(?:what\(\): {{1,4}})?(?:[\w.]{{1,80}}Error: )?{_GROUP}"
    rf"((?:Process group|NCCL|HCCL) watchdog thread terminated with exception: )?{_GROUP}"
    r"Watchdog caught collective operation timeout: Work(NCCL|HCCL|XCCL)\(SeqNum=([0-9]{1,18}), OpType=(\w{1,60}), "
    r"(?:NumelIn=([0-9]{1,18}), NumelOut=([0-9]{1,18}), )?Timeout\(ms\)=([0-9]{1,18})\) "
    r"ran for ([0-9]{1,18}) milliseconds"
)
_PROGRESS = re.compile(
    r"\[([^\[\]]{1,120})\] {0,2}(?:[^:]{1,200} at (?:[NH]CCL )?work(?: sequence id)?: ([0-9]{1,18})\b)?.{0,200}?"
    r"\b[Ll]ast enqueued (?:[NH]CCL )?work: (-?[0-9]{1,20}), last completed (?:[NH]CCL )?work: (-?[0-9]{1,20})\b"
)
_RANK = re.compile(r"Rank ([0-9]{1,6})$")
_NAME = re.compile(r"PG (?:ID )?([0-9]{1,6})(?![0-9])")


def parse(line: Line) -> Fact | None:
    """``backend``, ``rank``, ``seq``, ``op``, ``numel_in``, ``numel_out``, ``timeout_s`` and ``ran_s``.

    The second line is an event ``collective_progress`` with ``rank``, ``enqueued`` and ``completed``, and ``seq`` of
    the work that failed: a rank that has enqueued less than the others is the one they wait for.
    """
    if line.shows_samples:
        return None
    text, _, rank, _ = bare(line)
    if timeout := _TIMEOUT.match(text):
        ended_in, again, group, backend, seq, op, numel_in, numel_out, limit, ran = timeout.groups()
        return fault(
            NAME,
            {
                "backend": backend.lower(),
                **_who(group or ended_in, rank),
                "seq": int(seq),
                "op": op,
                "numel_in": _int(numel_in),
                "numel_out": _int(numel_out),
                "timeout_s": seconds(limit, "ms"),
                "ran_s": seconds(ran, "ms"),
                "again": 1 if again else None,
            },
        )
    progress = _PROGRESS.match(text)
    if progress is None or (line.cut and progress.end() == len(text)):
        return None
    group, seq, enqueued, completed = progress.groups()
    said = {**_who(group, rank), "seq": _int(seq), "enqueued": int(enqueued), "completed": int(completed)}
    return Fact("collective_progress", known(said))


def _who(group: str | None, rank: int | None) -> dict[str, int | None]:
    """The rank of the run, its rank within a process group where that differs, and the group's number."""
    inner = _RANK.search(group or "")
    name = _NAME.match(group or "")
    in_group = int(inner[1]) if inner else None
    if rank is None:
        return {"rank": in_group, "group": int(name[1]) if name else None}
    return {
        "rank": rank,
        "group_rank": in_group if in_group != rank else None,
        "group": int(name[1]) if name else None,
    }


def _int(text: str | None) -> int | None:
    return int(text) if text else None
