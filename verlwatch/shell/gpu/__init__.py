"""Sources of GPU numbers: `ls` of this folder is the list, SOURCES their order.  The first that is there is used."""

from __future__ import annotations

from typing import Final

from verlwatch.shell.gpu._card import Card, Fault, GpuSource, Process, Sample, SourceError
from verlwatch.shell.gpu._choice import Choice
from verlwatch.shell.gpu._feed import Answer, Feed
from verlwatch.shell.gpu._once import sampled
from verlwatch.shell.gpu._processes import CardProcesses
from verlwatch.shell.gpu._seen import Seen, asked, fault_event, sample_event, source_event
from verlwatch.shell.gpu.amd import AmdSmi, RocmSmi
from verlwatch.shell.gpu.ascend import NpuSmi
from verlwatch.shell.gpu.nvml import Nvml
from verlwatch.shell.gpu.smi import NvidiaSmi

__all__ = [
    "SOURCES",
    "Answer",
    "Card",
    "CardProcesses",
    "Choice",
    "Fault",
    "Feed",
    "GpuSource",
    "Process",
    "Sample",
    "Seen",
    "SourceError",
    "asked",
    "fault_event",
    "sample_event",
    "sampled",
    "source_event",
]

SOURCES: Final[tuple[type[GpuSource], ...]] = (Nvml, NvidiaSmi, AmdSmi, RocmSmi, NpuSmi)
"""Those of this host, best first.  Gauges of others (`prometheus`) are asked by URL beside them."""
