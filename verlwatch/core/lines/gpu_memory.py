"""What one process holds on its GPU, in the three forms that verl has printed.

    {head}, memory allocated (GB): 55.34482717514038, memory reserved (GB): 61.265625                   up to 0.3
    {head}, memory allocated (GB): 29.97, memory reserved (GB): 37.46, device memory used/total (GB): 40.46/79.11
    before init cache memory allocated: 5.96926464GB, reserved: 6.079643648GB                           vLLM up to 0.6

Source: verl ``utils/debug/performance.py``, later ``utils/profiler/performance.py`` (``log_gpu_memory_usage`` and
``GPUMemoryLogger``), and ``third_party/vllm/*/spmd_gpu_executor.py``.  ``(GB)`` counts 2**30 bytes, ``GB`` right behind
the number 10**9: attribute ``unit`` says which.  Only ``device memory`` sees what lies outside torch's allocator.  The
line names no GPU and hardly ever a rank: its writer is who holds the memory.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line
from verlwatch.core.lines._moment import moment
from verlwatch.core.lines._quantity import NUMBER

NAME: Final = "gpu_memory"
NEEDLES: Final = (b"memory allocated",)

_HEAD_LENGTH = 200
_IN_GIB = ", memory allocated (GB): "
_GIB = re.compile(
    rf"({NUMBER}), memory reserved \(GB\): ({NUMBER})(?![\w.])"
    r"(?:, device memory used/total \(GB\): ([0-9]{1,6}\.[0-9]{2})/([0-9]{1,6}\.[0-9]{2})(?![\w.]))?"
)
_IN_GB = " memory allocated: "
_GB = re.compile(rf"({NUMBER})GB, reserved: ({NUMBER})GB$")
_TWO_DECIMALS = re.compile(r"[0-9]+\.[0-9]{2}")


def parse(line: Line) -> Fact | None:
    """``head`` and what it tells, ``allocated_gb``, ``reserved_gb``, ``used_gb`` and ``total_gb`` of the device."""
    if line.shows_samples:
        return None
    head, mark, rest = line.text.partition(_IN_GIB)
    if mark:
        found, unit = _GIB.match(rest), "GiB"
    else:
        head, mark, rest = line.text.partition(_IN_GB)
        found, unit = _GB.match(rest.rstrip()), "GB"
    if found is None or not 0 < len(head) <= _HEAD_LENGTH:
        return None
    numbers = found.groups()
    if unit == "GiB" and found.end() == len(rest) and numbers[-1] is None and _may_be_cut(line, *numbers[:2]):
        numbers = numbers[:1]
    names = ("allocated_gb", "reserved_gb", "used_gb", "total_gb")
    values = {name: float(text) for name, text in zip(names, numbers, strict=False) if text is not None}
    return Fact(NAME, {**moment(head), **values, "unit": unit})


def _may_be_cut(line: Line, allocated: str, reserved: str) -> bool:
    """Whether ``reserved``, at the end of the line, may miss digits: two decimals go with a part that is not there."""
    if line.cut is not None:
        return line.cut
    return bool(_TWO_DECIMALS.fullmatch(allocated)) and not _TWO_DECIMALS.fullmatch(reserved)
