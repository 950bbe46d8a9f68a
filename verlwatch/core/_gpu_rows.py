"""Memory that logs tell -> cards beside their peers at the same stage of the same step.

Each process prints for itself (`gpu_memory`), and its lines come in whatever order their files are read.  The head of a
line names the stage, so the k-th line with that head of one process belongs to the k-th of another: they make a row.
A row is compared when all who print that head have told theirs, and one that comes late with those that came before.
Rows need no clock: a file of yesterday gives what a live one does.

A line that names several GPUs (tutorials) is a row by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from statistics import median
from typing import NamedTuple, TypeVar

from verlwatch.core.types import Event

ROWS = 512
STALE_S = 300.0
_ENOUGH = 3
"""Of two that differ nobody knows which one is strange."""
_GB = 1e9 / 2**30
_UPDATE = "update_actor"

_Name = TypeVar("_Name", bound=Hashable)
Key = tuple[str, str]
"""Host and card: of a process its ip (empty on the driver's node) and ``pid N``."""


class Reading(NamedTuple):
    """What one card held: ``value`` is what is compared, ``used`` and ``total`` are the device's where they are told.

    ``at_once``: one process saw all cards, so a single row counts.
    """

    key: Key
    x: float
    step: int
    value: float
    peers: float
    used: float | None
    total: float | None
    at_once: bool
    pid: int = 0
    actor: str = ""


class _Cell(NamedTuple):
    step: int
    value: float
    used: float | None
    total: float | None
    pid: int
    actor: str


class _Stage:
    """The rows of one head."""

    def __init__(self) -> None:
        self.counts: dict[Key, int] = {}
        self.heard: dict[Key, float] = {}
        self.rows: dict[int, dict[Key, _Cell]] = {}
        self.judged: dict[int, set[Key]] = {}


class Rows:
    """Every stage of one run."""

    def __init__(self) -> None:
        self._stages: dict[str, _Stage] = {}
        self._clocks: dict[Key, dict[str, int]] = {}
        self._began: int | None = None
        self._lines = 0

    @property
    def processes(self) -> int:
        """How many print their memory."""
        return len(self._clocks)

    def forget(self) -> None:
        """Another attempt: other processes, and they count from one."""
        self.__init__()  # type: ignore[misc]

    def hear(self, event: Event, step: int, now: float) -> Iterator[Reading]:
        """Takes a ``gpu_memory`` event; gives every card that can be compared by it."""
        said = event.attributes
        if "gpus" in said:
            yield from self._all_at_once(event, step)
        elif (cell := self._cell(event, step)) is not None:
            writer = event.origin.writer
            yield from self._one((writer.ip, f"pid {writer.pid}"), str(said.get("head", "")), cell, now)

    def _all_at_once(self, event: Event, step: int) -> Iterator[Reading]:
        said = event.attributes
        used = {name[8:]: float(value) for name, value in said.items() if name.startswith("used_gb.")}
        self._lines += 1
        for gpu, value in used.items():
            total = said.get(f"total_gb.{gpu}")
            size = float(total) if isinstance(total, int | float) else None
            peers = _peers(gpu, used)
            if peers is not None:
                host = event.origin.writer.ip
                yield Reading((host, gpu), float(self._lines), max(step, 0), value, peers, value, size, at_once=True)

    def _one(self, key: Key, head: str, cell: _Cell, now: float) -> Iterator[Reading]:
        stage = self._stages.setdefault(head, _Stage())
        count = stage.counts[key] = stage.counts.get(key, 0) + 1
        stage.heard[key] = now
        row = stage.rows.setdefault(count, {})
        row[key] = cell
        done = stage.judged.setdefault(count, set())
        expected = sum(1 for heard in stage.heard.values() if now - heard <= STALE_S)
        if done or len(row) >= max(2, expected, min(_ENOUGH, len(stage.counts))):
            yield from _readings(row, done)
        if len(stage.rows) > ROWS:
            oldest = min(stage.rows)
            left = stage.rows.pop(oldest)
            yield from _readings(left, stage.judged.pop(oldest))

    def _cell(self, event: Event, step: int) -> _Cell | None:
        said, writer = event.attributes, event.origin.writer
        value = said.get("allocated_gb")
        if not isinstance(value, int | float) or not writer.pid:
            return None
        factor = _GB if said.get("unit") == "GB" else 1.0
        key = (writer.ip, f"pid {writer.pid}")
        at = self._step(key, str(said.get("head", "")), said, step)
        used, total = (_number(said, name, factor) for name in ("used_gb", "total_gb"))
        return _Cell(at, float(value) * factor, used, total, writer.pid, writer.name)

    def _step(self, key: Key, head: str, said: Mapping[str, str | int | float], step: int) -> int:
        """The step of a line: an actor is updated once a step, so its lines count them; else the one in progress."""
        self._began = began = max(step, 0) if self._began is None else self._began
        clock = self._clocks.setdefault(key, {})
        if said.get("phase") == _UPDATE:
            clock[head] = clock.get(head, 0) + 1
            return began + clock[head]
        return began + max(clock.values()) + 1 if clock else max(step, 0) + 1


def _readings(row: Mapping[Key, _Cell], done: set[Key]) -> Iterator[Reading]:
    values = {key: cell.value for key, cell in row.items()}
    for key, cell in row.items():
        peers = None if key in done else _peers(key, values)
        if peers is not None:
            done.add(key)
            yield Reading(
                key, float(cell.step), cell.step, cell.value, peers, cell.used, cell.total, at_once=False,
                pid=cell.pid, actor=cell.actor,
            )  # fmt: skip


def _peers(name: _Name, values: Mapping[_Name, float]) -> float | None:
    """The median of all; of two the other one's value; None for one alone."""
    if len(values) < 2:  # noqa: PLR2004 - nobody to be compared with
        return None
    if len(values) == 2:  # noqa: PLR2004
        return next(value for other, value in values.items() if other != name)
    return median(values.values())


def _number(said: Mapping[str, str | int | float], name: str, factor: float) -> float | None:
    value = said.get(name)
    return float(value) * factor if isinstance(value, int | float) else None
