"""An Ascend device that failed."""

from __future__ import annotations

from verlwatch.core.rules._life import death, of
from verlwatch.core.rules._life_view import LifeView
from verlwatch.core.types import Diagnosis

NAME = "npu_error"
NEEDS = "the error report of CANN or torch_npu"
TURN_ON = ""
ADVICE = ("Look at the device log (`npu-smi info`, ASCEND plog) of the host and rank named, by the error code.",)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis where a device of Ascend has reported an error."""
    faults = of(view, "npu_error")
    if not faults:
        return ()
    code = faults[0].said.get("code")
    return (death(NAME, view, "NPU error" + (f" {code}" if code else ""), faults=faults, advice=ADVICE),)
