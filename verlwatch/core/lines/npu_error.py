"""Ascend's runtime reports an error, in several lines of which each knows a part.

    [rank0]:[E126 03:28:30.98 compiler_depend.ts:444] ... NPU function error: call aclnnX failed, error code is 107000
    [ERROR] 2026-01-26-03:28:30 (PID:4711, Device:0, RankID:-1) ERR00100 PTA call acl api failed
    [Error]: Parameter verification failed.
            Check whether the input parameters of the interface are correct.
    [PID: 4711] 2026-01-26-03:28:30.625.369 Invalid_Argument(EE1001): The argument is invalid.Reason: ...
    EI0002: [PID: 4711] 2025-06-25-10:45:24.586.187 The wait execution of the Notify register times out. Reason: ...

Source: torch_npu ``csrc/core/npu/NPUException.h`` (``ERRxxxxx``, PID, Device, RankID; -1 is unknown), CANN's error
manager (``EEnnnn`` runtime, ``EInnnn`` collectives).  EI0002, EI0006 and the codes 507046 and 507048 are HCCL's
time-outs: the twins of NCCL's watchdog.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line, Numbers, Said, Take, fault

NAME: Final = "npu_error"
NEEDLES: Final = (b"on error: ", b", RankID:", b"[PID: ")

_CALL = re.compile(
    r"(?:[\w.]{1,80}Error: )?[\w()]{1,80}:[\w./-]{1,200}:[0-9]{1,6} NPU function error: "
    r"(?:call )?(\w{1,100})(?: failed)?, error code is ([0-9]{1,9})(?![0-9])"
)
_ERROR = re.compile(
    r"\[ERROR\] [0-9-]{10}-[0-9:]{8} "
    r"\(PID:([0-9]{1,10}), Device:([0-9]{1,4}), RankID:(-?[0-9]{1,6})\) (ERR[0-9]{5}) (.+)"
)
_ACL = re.compile(
    r"(?:(E[A-Z][0-9]{4}): )?\[PID: ([0-9]{1,10})\] [0-9-]{10}-[0-9:.]{8,20} ?(?:\w{1,60}\((E[A-Z][0-9]{4})\): )?(.+)"
)
_TIMED_OUT = frozenset({"EI0002", "EI0006", 507046, 507048})


class Report:
    """What one process says of one error."""

    LINES = 24
    BYTES = 1 << 14

    def __init__(self) -> None:
        self._told: dict[str, str | float | None] = {}

    def take(self, line: Line, said: Said | None, /) -> Take:
        """Further lines of the report; one that says again what is known begins another."""
        text = bare(line).text
        if found := _read(text, cut=line.cut is True):
            return Take.ENDED if not self.add(found) else Take.TAKEN
        if text.startswith("[Error]: "):
            self._told.setdefault("reason", text[len("[Error]: ") :])
            return Take.TAKEN
        if text.startswith("  "):
            return Take.TAKEN
        return Take.IGNORED if said is None or isinstance(said, Numbers | Fact) else Take.ENDED

    def add(self, found: dict[str, str | float | None]) -> bool:
        """Whether all of it is new or the same process's."""
        told = self._told
        repeats = {"error_code", "code", "acl"} & found.keys() & told.keys()
        if repeats or told.get("pid", found.get("pid")) != found.get("pid", told.get("pid")):
            return False
        self._told = {**found, **told}
        return True

    def close(self) -> Fact:
        """``code`` is EInnnn, or else ERRnnnnn, ``acl`` EInnnn or EEnnnn, ``rank`` -1 where nobody knows it.

        ``reason`` is torch_npu's word for it and ``text`` CANN's.  ``collective_timeout`` is 1 where the codes say so.
        """
        told = self._told
        acl = str(told.get("acl", ""))
        timed_out = not _TIMED_OUT.isdisjoint({acl, told.get("error_code")})
        code = acl if acl.startswith("EI") else told.get("code")
        return fault(NAME, {**told, "code": code, "collective_timeout": 1 if timed_out else None})


def parse(line: Line) -> Report | None:
    """A report that begins; what the first line tells is in it."""
    if line.shows_samples:
        return None
    said = bare(line)
    found = _read(said.text, cut=line.cut is True)
    if not found or said.is_chatter:
        return None
    report = Report()
    report.add({"rank": said.rank, **found} if said.rank is not None else found)
    return report


def _read(text: str, *, cut: bool) -> dict[str, str | float | None]:
    if call := _CALL.match(text):
        is_whole = not cut or call.end() < len(text)
        return {"call": call[1], "error_code": int(call[2])} if is_whole else {"call": call[1]}
    if error := _ERROR.match(text):
        pid, device, rank, code, words = error.groups()
        return {"code": code, "pid": int(pid), "gpu": int(device), "rank": int(rank), "reason": words}
    acl = _ACL.match(text)
    if acl and (acl[1] or acl[3]):
        return {"acl": acl[1] or acl[3], "pid": int(acl[2]), "text": acl[4]}
    return {}
