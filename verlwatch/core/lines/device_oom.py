"""A device has no memory left: ``torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 144.00 MiB. ...``.

Source: torch ``c10/cuda/CUDACachingAllocator.cpp``: up to 2.0 ``(GPU 0; 79.15 GiB total capacity; 1.00 GiB already
allocated; 5.94 MiB free; 2.00 GiB reserved in total by PyTorch)``, which torch_npu still writes with ``NPU``; since 2.1
``GPU 0 has a total capacity of 79.25 GiB of which 6.88 MiB is free.`` with the processes that hold it, as the driver
counts them.  Also the driver's own ``CUDA error: out of memory`` (vLLM's sleep mode: ``CUDA Error: out of memory at``),
and vLLM's ``CUDA out of memory occurred when warming up sampler with 256 dummy requests``.  ``gpu`` is the visible
index: a Ray worker that sees one GPU calls it 0.  Sizes are GiB, converted by powers of two.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line, fault
from verlwatch.core.lines._quantity import SIZE, gib

NAME: Final = "device_oom"
NEEDLES: Final = (b"out of memory",)

_HEAD = re.compile(
    r"(?:[\w.]{0,80}(?:Error|Exception): (?:[\w ]{1,60}: )?)?"
    r"(?:(CUDA|NPU|HIP|XPU) out of memory(?:\. | occurred when warming up )|(CUDA|NPU) [Ee]rror: out of memory)"
)
_SIZES = {
    "tried_gb": re.compile(rf"Tried to allocate {SIZE}"),
    "total_gb": re.compile(rf"has a total capaci?ty of {SIZE}|; {SIZE} total capacity"),
    "free_gb": re.compile(rf"of which {SIZE} is free|; {SIZE} free"),
    "process_gb": re.compile(rf"this process has {SIZE} memory in use"),
    "allocated_gb": re.compile(rf"(?:memory|;) {SIZE} (?:is allocated by PyTorch|already allocated)"),
    "reserved_gb": re.compile(rf"; {SIZE} reserved in total by PyTorch"),
    "unused_gb": re.compile(rf"(?:and|with) {SIZE} (?:is )?reserved by PyTorch but unallocated"),
}
_GPU = re.compile(r"(?:GPU|NPU) ([0-9]{1,4})(?: has a total|; )")
_HOLDER = re.compile(rf"Process ([0-9]{{1,10}}) has {SIZE} memory in use")


def parse(line: Line) -> Fact | None:
    """``device`` (cuda, npu, ...), ``gpu`` and the sizes that the message names.

    ``allocated_gb`` is what PyTorch has handed out, ``unused_gb`` what it keeps without using it, ``reserved_gb`` both
    (old wording).  ``holder_pid`` and ``holder_gb`` are the process that holds most, as named by the driver: another
    process on the GPU, or this one under the id it has outside its container.  ``shard`` is SGLang's (``DP1 TP0``).
    """
    if line.shows_samples:
        return None
    said = bare(line)
    text = said.text
    head = _HEAD.match(text)
    if head is None or said.is_chatter:
        return None
    gpu = _GPU.search(text)
    holders = [(gib(size, unit), int(pid)) for pid, size, unit in _HOLDER.findall(text)]
    holder_gb, holder_pid = max(holders, default=(None, None))
    sizes = {name: _size(pattern, text) for name, pattern in _SIZES.items()}
    return fault(
        NAME,
        {
            "device": (head[1] or head[2]).lower(),
            "gpu": int(gpu[1]) if gpu else None,
            "rank": said.rank,
            "shard": said.process,
            **sizes,
            "holder_gb": holder_gb,
            "holder_pid": holder_pid,
        },
    )


def _size(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    if found is None:
        return None
    size, unit = [group for group in found.groups() if group]
    return gib(size, unit)
