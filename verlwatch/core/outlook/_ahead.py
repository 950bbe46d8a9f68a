"""What a run is heading for: memory of hosts and cards, room for checkpoints, the end of its time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import inf, isfinite
from statistics import median
from typing import Any

from verlwatch.core.metrics import METRICS
from verlwatch.core.outlook._approach import AGREEING, DISAGREEING, Approach
from verlwatch.core.outlook._disk import Disk
from verlwatch.core.outlook._limits import Limits
from verlwatch.core.outlook._remaining import Remaining
from verlwatch.core.rules import Ahead, Arrival, Filling, Room
from verlwatch.core.types import Event, Scope

HOST = "cpu_memory_used_gb"
DEVICE = ("max_memory_allocated_gb", "max_memory_reserved_gb")
PLACES = 64
"""So many hosts, and so many file systems, are followed at most."""
STALE_S = 900.0
"""A host of which nothing was heard for so long is followed no longer."""
SAVES = 6


class Forecasts:
    """Of one run.  It hears what limits there are, takes each step, and says what lies `ahead`.

    ``planned`` is the number of steps the run will have, ``host_memory_gb`` what a host has by the configuration.
    """

    def __init__(self, host_memory_gb: float | None = None) -> None:
        self.planned: int | None = None
        self.limits = Limits(host_memory_gb)
        self._attempt, self._step = 0, -1
        self._pace = Remaining()
        self._series: dict[str, Approach] = {}
        """By metric, and by ``host:NAME`` where the host itself is seen."""
        self._used: dict[str, tuple[float, float]] = {}
        """By host: the most that was used since the last step, and when it was heard of last."""
        self._disks: dict[tuple[str, str], Disk] = {}
        self._saves: deque[int] = deque(maxlen=SAVES)
        self._late = [0, 0, 0]
        """Whether the run is told to be late, and how many steps agreed and disagreed."""

    # ------------------------------------------------------------------------------------------------ what is known
    def hear(self, event: Event, now: float) -> None:
        """Takes ``host_memory``, ``disk``, ``gpu_memory``, ``checkpoint``, ``job`` and ``fault``; nothing of others."""
        said = event.attributes
        host = dict(event.scope).get("host", "")
        if event.name == "checkpoint":
            self._save(said.get("step"))
        elif event.name == "host_memory" and (used := _number(said, "used_gb")) is not None:
            if host in self._used or len(self._used) < PLACES:
                self._used[host] = max(used, self._used.get(host, (0.0, 0.0))[0]), now
        elif event.name == "disk" and isinstance(path := said.get("path"), str):
            free, total = _number(said, "free_gb"), _number(said, "total_gb")
            if free is not None and total and ((host, path) in self._disks or len(self._disks) < PLACES):
                self._disks.setdefault((host, path), Disk()).see(free, total)
        self.limits.hear(event)

    def until(self, at: float | None, source: str) -> None:
        """The run may last until ``at`` (epoch seconds), by ``source`` in words; None: nothing is known of that."""
        self.limits.until(at, source)

    def _save(self, step: object) -> None:
        begun = step if isinstance(step, int) else self._step + 1
        if not self._saves or begun > self._saves[-1]:
            self._saves.append(begun)
            for disk in self._disks.values():
                disk.begin(begun)

    # ------------------------------------------------------------------------------------------------ steps
    def take(
        self, at: tuple[int, int], values: Mapping[str, float], seconds: Mapping[str, float], now: float, *, live: bool
    ) -> None:
        """Takes a step that nobody has taken before: all it prints, and its seconds by phase (`core.steps`).

        Another attempt begins anew: its processes have memory of their own.  ``live``: the step has just ended.
        """
        attempt, step = at
        if attempt != self._attempt:
            self._attempt, self._pace, self._series, self._late = attempt, Remaining(), {}, [0, 0, 0]
            self._saves.clear()
        elif step <= self._step:
            return
        self._step = step
        self._pace.add(step, seconds, now, live=live)
        for name, value in self._seen(values, now):
            limit = self.limits.of(name)
            remaining = inf if self.planned is None else self.planned - step
            self._series.setdefault(name, Approach()).add(step, value, limit[0] if limit else None, remaining)
        heard = self._heard(now)
        self._used = {host: (0.0, at) for host, (_, at) in self._used.items() if host in heard}
        self._series = {name: one for name, one in self._series.items() if name.partition(":")[2] in {"", *heard}}
        self._look_at_the_clock(now)

    def _heard(self, now: float) -> set[str]:
        return {host for host, (_, at) in self._used.items() if now - at <= STALE_S}

    def _seen(self, values: Mapping[str, float], now: float) -> Iterator[tuple[str, float]]:
        for name in (HOST, *DEVICE):
            found = next((values[key] for key in METRICS[name] if key in values), None)
            if found is not None and isfinite(found) and found > 0.0:
                yield name, found
        for host in sorted(self._heard(now)):
            key, used = f"host:{host}", self._used[host][0]
            points = self._series[key].trend.points if key in self._series else None
            if used > 0.0 or points:  # nothing new since the last step: as it was
                yield key, used or (points[-1][1] if points else 0.0)

    def _look_at_the_clock(self, now: float) -> None:
        """Late from the second step on that says so at its best; in time again where three say so at their worst."""
        told, agreed, disagreed = self._late
        arrival = self._arrival(now)
        if arrival is None:
            self._late = [0, 0, 0]
            return
        is_late = (arrival.need_s.high if told else arrival.need_s.low) > arrival.left_s
        agreed, disagreed = (agreed + 1, 0) if is_late else (0, disagreed + 1)
        told = int(agreed >= AGREEING or (bool(told) and disagreed < DISAGREEING))
        self._late = [told, agreed, disagreed]

    # ------------------------------------------------------------------------------------------------ ahead
    def ahead(self, now: float) -> Ahead:
        """What is told of at this step."""
        return Ahead(
            tuple(self._fillings()),
            tuple(self._rooms()),
            self._arrival(now) if self._late[0] else None,
        )

    def _fillings(self) -> Iterator[Filling]:
        for name, series in self._series.items():
            limit = self.limits.of(name)
            if series.lead is None or limit is None:
                continue
            growth, steps = series.lead
            host = name.partition(":")[2]
            scope: Scope = (("host", host),) if host else ()
            subject = HOST if name.startswith("host:") else name
            yield Filling(
                subject, *limit, growth.slope, steps, growth.level, growth.before, series.since, growth.seen,
                self._pace.step_s, scope,
            )  # fmt: skip

    def _rooms(self) -> Iterator[Room]:
        every = median([after - before for before, after in pairwise(self._saves)]) if len(self._saves) > 1 else 0.0
        for (host, path), disk in self._disks.items():
            room = disk.room(path, self._step, every)
            if room is not None and (self.planned is None or room.steps <= self.planned - self._step):
                yield room._replace(step_s=self._pace.step_s, scope=(("host", host),) if host else ())

    def _arrival(self, now: float) -> Arrival | None:
        end = self.limits.end
        if end is None or self.planned is None or self._step >= self.planned or not self._pace.known:
            return None
        left_s, steps = max(0.0, end[0] - now), self.planned - self._step
        reach = self._pace.reach(left_s, steps)
        return Arrival(
            self.planned,
            reach._replace(low=reach.low + self._step, mid=reach.mid + self._step, high=reach.high + self._step),
            left_s,
            self._pace.seconds(steps),
            self._pace.step_s,
            self._pace.drift_s,
            end[1],
        )

    # ------------------------------------------------------------------------------------------------ state
    def state(self) -> dict[str, Any]:
        """JSON-safe."""
        return {
            "planned": self.planned,
            "at": [self._attempt, self._step],
            "limits": self.limits.state(),
            "pace": self._pace.state(),
            "series": {name: series.state() for name, series in self._series.items()},
            "used": {host: list(used) for host, used in self._used.items()},
            "disks": [[host, path, disk.state()] for (host, path), disk in self._disks.items()],
            "saves": list(self._saves),
            "late": self._late,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self.planned = data["planned"]
        self._attempt, self._step = data["at"]
        self.limits.restore(data["limits"])
        self._pace = Remaining.from_state(data["pace"])
        self._series = {name: Approach.from_state(one) for name, one in data["series"].items()}
        self._used = {host: (used, at) for host, (used, at) in data["used"].items()}
        self._disks = {(host, path): Disk.from_state(one) for host, path, one in data["disks"]}
        self._saves.extend(data["saves"])
        self._late = list(data["late"])


def _number(said: Mapping[str, str | int | float], name: str) -> float | None:
    value = said.get(name)
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
