"""What a run has at most: memory of its hosts and cards, time; each with the words that say where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from verlwatch.core.types import Event

RAY_KILLS = 0.95
"""Share of a node's memory at which Ray kills a worker: ``RAY_memory_usage_threshold``, 0.95 by default.

Source: Ray's "Out-Of-Memory Prevention", and ``GetMemoryThreshold`` in its ``common/memory_monitor.cc`` (since 2.2).
"""
HOSTS = 64
Limit = tuple[float, str]


class Limits:
    """What is known of them, from the configuration and from what was heard."""

    def __init__(self, host_memory_gb: float | None = None) -> None:
        self.host_memory_gb = host_memory_gb
        """By the configuration."""
        self._hosts: dict[str, float] = {}
        self._ray: tuple[float, float] | None = None  # memory of a node and Ray's threshold, from a report of Ray
        self._card_gb: float | None = None
        self._beside_gb: float | None = None  # of a card, outside PyTorch's allocator
        self._ends: dict[str, float] = {}

    def hear(self, event: Event) -> None:
        """Takes what an event says of a limit."""
        said = event.attributes
        total, used, reserved = (_positive(said.get(name)) for name in ("total_gb", "used_gb", "reserved_gb"))
        if event.name == "host_memory" and total:
            host = dict(event.scope).get("host", "")
            if host in self._hosts or len(self._hosts) < HOSTS:
                self._hosts[host] = total
        elif event.name == "fault" and said.get("class") == "host_oom" and total:
            self._ray = total, _positive(said.get("threshold")) or RAY_KILLS
        elif event.name == "gpu_memory" and total and said.get("unit") != "GB":
            self._card_gb = min(total, self._card_gb or total)
            if used and reserved and used > reserved:
                self._beside_gb = min(used - reserved, self._beside_gb or used)
        elif event.name == "job":
            self.until(_positive(said.get("ends_at")), "Slurm's time limit")

    def until(self, at: float | None, source: str) -> None:
        """The run may last until ``at``, by ``source``."""
        self._ends.pop(source, None)
        if at is not None:
            self._ends[source] = at

    @property
    def end(self) -> Limit | None:
        """The first of the times at which the run is ended."""
        return min(((at, source) for source, at in self._ends.items()), default=None)

    def of(self, series: str) -> Limit | None:
        """The limit of a metric, or of ``host:NAME``; None where it is not known."""
        kind, _, host = series.partition(":")
        if kind == "host":
            total = self._hosts.get(host)
            return None if total is None else _of_ray(total, RAY_KILLS, f"of {host or 'this host'}")
        if kind == "cpu_memory_used_gb":
            if self.host_memory_gb is not None:
                return _of_ray(self.host_memory_gb, RAY_KILLS, "by runs[].host_memory")
            return None if self._ray is None else _of_ray(*self._ray, "as Ray has told")
        if self._card_gb is None:
            return None
        if not self._beside_gb:
            return self._card_gb, f"{self._card_gb:.4g} GB of the card"
        words = f"{self._card_gb:.4g} GB of the card less {self._beside_gb:.2g} GB outside PyTorch's allocator"
        return self._card_gb - self._beside_gb, words

    def state(self) -> dict[str, Any]:
        """JSON-safe, without what the configuration says."""
        return {
            "hosts": self._hosts,
            "ray": None if self._ray is None else list(self._ray),
            "card": [self._card_gb, self._beside_gb],
            "ends": self._ends,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self._hosts, self._ends = dict(data["hosts"]), dict(data["ends"])
        self._ray = None if data["ray"] is None else (data["ray"][0], data["ray"][1])
        self._card_gb, self._beside_gb = data["card"]


def _of_ray(total: float, share: float, whose: str) -> Limit:
    return total * share, f"{share:.0%} of {total:,.4g} GB {whose}, where Ray kills (RAY_memory_usage_threshold)"


def _positive(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and isfinite(value) and value > 0 else None
