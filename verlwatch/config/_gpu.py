"""The section ``gpu``."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from verlwatch import fields
from verlwatch.fields import Duration, Model, Url, within

_URLS = 64
_GROUP = re.compile(r"\s*([\w.-]{1,64})\s*=\s*(\S{1,200}:\S{1,16}(?:\s+\S{1,200}:\S{1,16}){0,255})\s*")


def parse_group(value: object) -> tuple[str, tuple[str, ...]]:
    """Name and patterns of ``critic = node-3:4 node-3:5``."""
    group = _GROUP.fullmatch(value) if isinstance(value, str) else None
    if group is None:
        raise ValueError("must be NAME = HOST:GPU …, with * and ? in them; write for example critic = node-3:*")
    return group[1], tuple(group[2].split())


CardGroup = Annotated[
    tuple[str, tuple[str, ...]],
    BeforeValidator(parse_group),
    WithJsonSchema({"type": "string", "examples": ["critic = node-3:4 node-3:5"]}),
]


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
    groups: tuple[CardGroup, ...] = Field(
        default=(),
        max_length=_URLS,
        description="Cards that are compared, for example `critic = node-3:4 node-3:5`. Default: learned "
        "from what they hold and who runs on them (at most 64).",
    )
