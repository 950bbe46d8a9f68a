"""The peak of PyTorch's allocator creeps up to what the card has."""

from __future__ import annotations

from dataclasses import replace

from verlwatch.core.rules._filling import diagnosis
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "device_memory_forecast"
NEEDS = (
    "`perf/max_memory_allocated_gb` or `perf/max_memory_reserved_gb` in the step lines, and the memory of the card: "
    "`device memory used/total (GB):` (verl ≥ 0.4)"
)
TURN_ON = "`VERL_LOGGING_LEVEL=DEBUG` in the environment of the workers, where no such line is printed"
NAMES = {
    "max_memory_allocated_gb": ("device_memory_allocated", "device memory (peak allocated)"),
    "max_memory_reserved_gb": ("device_memory_reserved", "device memory (peak reserved)"),
}
ADVICE = (
    "Look at the longest sequences and micro batch sizes, and at tensors that are kept from step to step.",
    "If little of what is reserved is allocated, it is fragmentation: "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
)
PEAK = "a peak since the process started: it can only rise, so that it is weaker evidence than memory in use"
GIVEN_BACK = "PyTorch gives cached blocks back before it is out of memory: steps may become slower first"


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each of the two peaks that creeps up to its limit; never critical."""
    return tuple(
        _weakened(diagnosis(NAME, view, filling, NAMES[filling.subject], ADVICE, remarks=_remarks(filling.subject)))
        for filling in view.ahead.fillings
        if filling.subject in NAMES
    )


def _remarks(subject: str) -> tuple[str, ...]:
    return (PEAK, GIVEN_BACK) if "reserved" in subject else (PEAK,)


def _weakened(diagnosis: Diagnosis) -> Diagnosis:
    return replace(diagnosis, severity="warning") if diagnosis.severity == "critical" else diagnosis
