"""Gauges of GPUs that others export: Ray's agent on each node, and NVIDIA's DCGM exporter.

    ray_node_gram_used{GpuDeviceName="NVIDIA H100",GpuIndex="3",ip="10.0.0.7",…} 28123.0
    DCGM_FI_DEV_FB_USED{gpu="3",UUID="GPU-7d1f…",modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-node-3"} 28123

Source: Ray ``dashboard/modules/reporter/reporter_agent.py`` (``gram`` is in MiB, whatever its description says) and
dcgm-exporter ``etc/default-counters.csv`` (``FB_`` in MiB, ``POWER_USAGE`` in W).  What they show was measured up to
their own interval ago, 30 s by default for DCGM.  The labels of a line are read by the official library; lines of other
metrics, which are most of what Ray's agent exports, are not looked at.
"""

from __future__ import annotations

import http.client
import math
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from verlwatch.core.lines.nvidia_smi import throttle
from verlwatch.shell.gpu._card import Card, Fault, Sample, SourceError

LIMIT_S = 10.0
_BYTES = 32 << 20
_LINES = 20_000
_CARDS = 2048
_NUMBER = re.compile(r"[0-9]{1,4}")
_HOST_LENGTH = 253
_PIECE = 1 << 16
_OK = 200
_DCGM = "DCGM_FI_DEV_"
_XID = f"{_DCGM}XID_ERRORS"
_NAMES: Mapping[str, str] = {
    "ray_node_gram_used": "used_mib",
    "ray_node_gram_available": "free_mib",
    "ray_node_gpus_utilization": "utilization",
    f"{_DCGM}FB_USED": "used_mib",
    f"{_DCGM}FB_FREE": "free_mib",
    f"{_DCGM}FB_RESERVED": "reserved_mib",
    f"{_DCGM}FB_TOTAL": "total_mib",
    f"{_DCGM}GPU_UTIL": "utilization",
    f"{_DCGM}POWER_USAGE": "power_w",
    f"{_DCGM}GPU_TEMP": "temperature_c",
    f"{_DCGM}ECC_DBE_VOL_TOTAL": "ecc_uncorrected",
    f"{_DCGM}PCIE_REPLAY_COUNTER": "pcie_replay",
    f"{_DCGM}CLOCK_THROTTLE_REASONS": "throttle",
    f"{_DCGM}CLOCKS_EVENT_REASONS": "throttle",
    _XID: "xid",
}
_AS_THEY_ARE = ("utilization", "power_w", "temperature_c", "ecc_uncorrected", "pcie_replay")


class _Place(NamedTuple):
    host: str
    gpu: str


class Gauges:
    """The cards that one URL shows.  Raises SourceError where it does not."""

    NAME: ClassVar[str] = "prometheus"

    def __init__(self, url: str, host: str, limit_s: float = LIMIT_S) -> None:
        self._url = url
        self._host = host
        self._limit_s = limit_s
        self._xids: dict[_Place, int] = {}

    def __call__(self) -> Sample:
        """All cards that it shows now; an Xid that was not there the time before is a fault."""
        found = _gauges(_fetched(self._url, self._limit_s), self._host)
        faults = []
        for place, gauges in found.items():
            xid = int(gauges.get("xid", 0))
            if xid and self._xids.get(place, xid) != xid:
                faults.append(Fault("xid", f"Xid {xid}", place.gpu, place.host))
            self._xids[place] = xid
        cards = _cards(found)
        if not cards:
            raise SourceError("shows no gauges of GPUs that are known (ray_node_gram_used, DCGM_FI_DEV_FB_USED)")
        return Sample(cards, tuple(faults))


def cards_of(text: str, host: str) -> tuple[Card, ...]:
    """The cards that an exposition shows; ``host`` is theirs where their labels name none."""
    return _cards(_gauges(text, host))


def _cards(found: Mapping[_Place, Mapping[str, Any]]) -> tuple[Card, ...]:
    return tuple(Card(place.gpu, _values(gauges), host=place.host) for place, gauges in found.items())


def _values(gauges: Mapping[str, Any]) -> dict[str, str | int | float]:
    values: dict[str, str | int | float] = {name: gauges[name] for name in ("uuid", "name", "mig") if gauges.get(name)}
    used, free, total = (gauges.get(f"{name}_mib") for name in ("used", "free", "total"))
    if total is None and used is not None and free is not None:
        total = used + free + gauges.get("reserved_mib", 0.0)
    values |= {name: gib / 1024 for name, gib in (("used_gb", used), ("total_gb", total)) if gib is not None}
    values |= {name: gauges[name] for name in _AS_THEY_ARE if name in gauges}
    if "throttle" in gauges:
        values["throttle"] = throttle(int(gauges["throttle"]))
    return values


def _gauges(text: str, host: str) -> dict[_Place, dict[str, Any]]:
    """What each card shows, under our names; MIG instances by their own."""
    found: defaultdict[_Place, dict[str, Any]] = defaultdict(dict)
    for name, labels, value in _samples(text):
        index = labels.get("GpuIndex") or labels.get("gpu") or ""
        if not _NUMBER.fullmatch(index) or len(found) >= _CARDS:
            continue
        if _NUMBER.fullmatch(part := labels.get("GPU_I_ID", "")):
            index = f"{index}:{part}"
        where = labels.get("Hostname") or labels.get("hostname") or labels.get("ip") or host
        gauges = found[_Place(where[:_HOST_LENGTH], index)]
        gauges[_NAMES[name]] = value
        gauges["uuid"] = labels.get("UUID", "")
        gauges["name"] = labels.get("modelName") or labels.get("GpuDeviceName", "")
        gauges["mig"] = labels.get("GPU_I_PROFILE", "")
    return found


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """The lines of the metrics that are known; one that is not well formed is passed over."""
    left = _LINES
    for line in text.splitlines():
        name = line.partition("{")[0]
        if name not in _NAMES or left <= 0:
            continue
        left -= 1
        try:
            samples = [sample for family in text_string_to_metric_families(f"{line}\n") for sample in family.samples]
        except (ValueError, KeyError, IndexError):
            continue
        for sample in samples:
            if sample.name in _NAMES and math.isfinite(sample.value) and sample.value >= 0:
                yield sample.name, sample.labels, sample.value


def _fetched(url: str, limit_s: float) -> str:
    """What the URL answers, without proxies and redirects.  Raises SourceError."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    ends = time.monotonic() + limit_s
    connection = kind(parts.hostname or "", parts.port, timeout=limit_s)
    try:
        connection.request("GET", f"{parts.path or '/metrics'}{'?' + parts.query if parts.query else ''}")
        response = connection.getresponse()
        if response.status != _OK:
            raise SourceError(f"answered {response.status}")
        pieces, size = [], 0
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > _BYTES:
                raise SourceError(f"answered more than {_BYTES >> 20} MiB")
            if time.monotonic() > ends:
                raise SourceError(f"did not answer within {limit_s:g} s")
        return b"".join(pieces).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise SourceError(f"cannot be read: {error or type(error).__name__}") from None
    finally:
        connection.close()
