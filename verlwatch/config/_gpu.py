"""The section ``gpu``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from verlwatch import fields
from verlwatch.fields import Duration, Model, Url, within

_URLS = 64


class Gpu(Model):
    """Where numbers of GPUs come from (docs/GPU.md)."""

    source: Literal["auto", "nvml", "nvidia-smi", "amd-smi", "rocm-smi", "npu-smi", "off"] = Field(
        default="auto",
        description="What this host's GPUs are read with: `auto` takes the first of `nvml` (needs "
        "`pip install 'verlwatch[nvml]'`), `nvidia-smi`, `amd-smi`, `rocm-smi` and `npu-smi` that answers.",
    )
    every: Annotated[Duration, within(fields.parse_duration, "1s", "10m")] = Field(
        default="10s",
        validate_default=True,
        description="How often, at the same instants on all hosts: multiples of it since 1970 (1s to 10m).",
    )
    urls: tuple[Url, ...] = Field(
        default=(),
        max_length=_URLS,
        description="Prometheus exporters to ask for the GPUs of hosts without verlwatch: of Ray "
        "(`ray_node_gram_used`) or DCGM (at most 64).",
    )
