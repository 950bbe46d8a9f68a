"""``GET /api/v1/runs/NAME/gpus?since=&until=&points=``: what the cards of a run held, over a stretch of time.

``since`` and ``until`` are epoch seconds (the last hour, where they are not given), ``points`` how many instants of
each host at most.  The answer is bounded: of many cards there are fewer instants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from verlwatch.core.types import GpuCell, GpuRow, Json
from verlwatch.shell._gpu_samples import GpuSamples
from verlwatch.shell.http._actions import Actions

PATH = "/api/v1/runs/{run}/gpus"
STRETCH_S = 3600.0
POINTS, MOST_POINTS = 360, 2000
MOST_CELLS = 20_000
"""Cards times instants of an answer, so that making it holds up others for some 50 ms at most."""
_LATEST = 1e11
_VALUES = ("used_gb", "low_gb", "high_gb", "utilization", "power_w", "temperature_c")


def actions(samples: GpuSamples, now: Callable[[], float], runs: Callable[[], Collection[str]]) -> Actions:
    """By method and path; ``runs`` are the names that are known."""

    async def stretch(asked: Json) -> Mapping[str, Any]:
        run = asked["run"]
        until = _number(asked, "until", now(), _LATEST)
        since = _number(asked, "since", until - STRETCH_S, _LATEST)
        points = int(_number(asked, "points", POINTS, MOST_POINTS))
        if since >= until or points < 1:
            raise ValueError('"since" must lie before "until", and "points" be 1 or more')
        cards = sum(len(row.cells) for row in await samples.stretch(run, since, until, 1))
        if not cards and run not in runs():
            raise LookupError(f"there is no run {run}")
        points = max(1, min(points, MOST_CELLS // max(1, cards)))
        rows = await samples.stretch(run, since, until, points)
        return {"run": run, "since": since, "until": until, "hosts": list(_hosts(rows))}

    return {("GET", PATH): stretch}


def _hosts(rows: Iterable[GpuRow]) -> Iterable[Mapping[str, Any]]:
    """Rows of the same cards together: each value as a list by instant of lists by card."""
    found: dict[tuple[Any, ...], list[GpuRow]] = {}
    for row in rows:
        found.setdefault((row.host, *((cell.gpu, cell.rank, cell.total_gb) for cell in row.cells)), []).append(row)
    for (host, *cards), same in found.items():
        yield {
            "host": host,
            "cards": [{"gpu": gpu, "rank": rank, "total_gb": total} for gpu, rank, total in cards],
            "at": [row.at for row in same],
            **{name: [[_value(cell, name) for cell in row.cells] for row in same] for name in _VALUES},
        }


def _value(cell: GpuCell, name: str) -> float | None:
    """The least and the most of an instant that stands for itself are what the card held then."""
    value: float | None = getattr(cell, name)
    return cell.used_gb if value is None and name in {"low_gb", "high_gb"} else value


def _number(asked: Json, name: str, default: float, most: float) -> float:
    try:
        value = float(asked.get(name) or default)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= most:
        raise ValueError(f'"{name}" must be a number from 0 to {most:.0f}')
    return value
