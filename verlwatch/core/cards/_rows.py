"""Memory that logs tell -> cards beside their peers at the same stage of the same step.

Each process prints for itself (`gpu_memory`), and its lines come in whatever order their files are read.  The head of a
line names the stage, so the k-th line with that head of one process belongs to the k-th of another: they make a row.
A row is compared when all who print that head have told theirs, and one that comes late with those that came before.
Rows need no clock: a file of yesterday gives what a live one does.

A line that names several GPUs (tutorials) is a row by itself.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isfinite, isnan, nan
from statistics import median
from typing import NamedTuple, TypeVar

from verlwatch.core.types import Event, Writer

ROWS = 128
"""Of each stage: about what a piece of one process' file holds before another's is read."""
STAGES = 32
"""So many heads of lines are compared; what comes with others is left out."""
STALE_S = 300.0
PROCESSES = 1024
"""So many of one attempt are followed."""
_ENOUGH = 3
"""Of two that differ nobody knows which one is strange."""
_GB = 1e9 / 2**30
_UPDATE = "update_actor"
_WIDTH = 4
"""Numbers of a line: step, value, used, total."""

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
    key: Key
    step: int
    value: float
    used: float | None
    total: float | None


class _Column:
    """What one process told with one head: its last lines, as numbers side by side; nan is unknown."""

    def __init__(self) -> None:
        self.first = 1
        """Which line of the process the first of them is."""
        self._numbers = array("d")

    @property
    def last(self) -> int:
        """Which line the last of them is."""
        return self.first + len(self._numbers) // _WIDTH - 1

    def add(self, cell: _Cell) -> None:
        """Takes the next line."""
        unknown = (nan if number is None else number for number in cell[1:])
        self._numbers.extend(unknown)

    def cell(self, key: Key, count: int) -> _Cell | None:
        """The line ``count``, if it is still there."""
        at = (count - self.first) * _WIDTH
        if not 0 <= at < len(self._numbers):
            return None
        step, value, *device = self._numbers[at : at + _WIDTH]
        used, total = (None if isnan(number) else number for number in device)
        return _Cell(key, int(step), value, used, total)

    def drop(self, count: int) -> None:
        """Lets go of the lines up to ``count``."""
        gone = min(max(0, count + 1 - self.first), len(self._numbers) // _WIDTH)
        del self._numbers[: gone * _WIDTH]
        self.first += gone


class _Stage:
    """The rows of one head."""

    def __init__(self) -> None:
        self.heard: dict[Key, float] = {}
        self.columns: dict[Key, _Column] = {}
        self.dropped = 0
        """So many rows are gone."""
        self.judged: dict[int, set[Key]] = {}

    def add(self, cell: _Cell) -> int:
        """Takes a line; which one of its process that is."""
        column = self.columns.setdefault(cell.key, _Column())
        column.add(cell)
        return column.last

    def row(self, count: int) -> tuple[_Cell, ...]:
        """The lines ``count`` of all processes."""
        cells = (column.cell(key, count) for key, column in self.columns.items())
        return tuple(cell for cell in cells if cell is not None)

    def drop(self) -> int:
        """Lets go of the oldest row; which one that was."""
        self.dropped += 1
        for column in self.columns.values():
            column.drop(self.dropped)
        return self.dropped


class Rows:
    """Every stage of one run."""

    def __init__(self) -> None:
        self._stages: dict[str, _Stage] = {}
        self._clocks: dict[Key, dict[str, int]] = {}
        self._who: dict[Key, tuple[int, str]] = {}
        """The process id and the name of whoever prints."""
        self._keys: dict[Writer, Key] = {}
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
            yield from self._one(str(said.get("head", "")), cell, now)

    def _all_at_once(self, event: Event, step: int) -> Iterator[Reading]:
        said = event.attributes
        told = ((name[8:], _number(said, name, 1.0)) for name in said if name.startswith("used_gb."))
        used = {gpu: value for gpu, value in told if value is not None}
        self._lines += 1
        for gpu, value in used.items():
            size = _number(said, f"total_gb.{gpu}", 1.0)
            peers = _peers(gpu, used)
            if peers is not None:
                host = event.origin.writer.ip
                yield Reading((host, gpu), float(self._lines), max(step, 0), value, peers, value, size, at_once=True)

    def _one(self, head: str, cell: _Cell, now: float) -> Iterator[Reading]:
        key = cell.key
        if head not in self._stages and len(self._stages) >= STAGES:
            return
        stage = self._stages.setdefault(head, _Stage())
        count = stage.add(cell)
        stage.heard[key] = now
        row = stage.row(count)
        done = stage.judged.get(count, set())
        expected = sum(1 for heard in stage.heard.values() if now - heard <= STALE_S)
        if done or len(row) >= max(2, expected, min(_ENOUGH, len(stage.columns))):
            yield from self._readings(row, done)
            stage.judged[count] = done
        if count - stage.dropped > ROWS:
            left = stage.row(stage.dropped + 1)
            yield from self._readings(left, stage.judged.pop(stage.drop(), set()))

    def _cell(self, event: Event, step: int) -> _Cell | None:
        said, writer = event.attributes, event.origin.writer
        value = said.get("allocated_gb")
        if not isinstance(value, int | float) or not isfinite(value) or not writer.pid:
            return None
        if writer not in self._keys and len(self._keys) >= PROCESSES:
            return None
        factor = _GB if said.get("unit") == "GB" else 1.0
        key = self._key(writer)
        at = self._step(key, str(said.get("head", "")), said, step)
        used, total = (_number(said, name, factor) for name in ("used_gb", "total_gb"))
        return _Cell(key, at, float(value) * factor, used, total)

    def _key(self, writer: Writer) -> Key:
        """One object for each process, however many lines it prints."""
        key = self._keys.get(writer)
        if key is None:
            key = self._keys[writer] = (writer.ip, f"pid {writer.pid}")
            self._who[key] = (writer.pid, writer.name)
        return key

    def _readings(self, row: Sequence[_Cell], done: set[Key]) -> Iterator[Reading]:
        values = {cell.key: cell.value for cell in row}
        for cell in row:
            peers = None if cell.key in done else _peers(cell.key, values)
            if peers is not None:
                done.add(cell.key)
                pid, actor = self._who[cell.key]
                yield Reading(
                    cell.key, float(cell.step), cell.step, cell.value, peers, cell.used, cell.total, at_once=False,
                    pid=pid, actor=actor,
                )  # fmt: skip

    def _step(self, key: Key, head: str, said: Mapping[str, str | int | float], step: int) -> int:
        """The step of a line: an actor is updated once a step, so its lines count them; else the one in progress."""
        self._began = began = max(step, 0) if self._began is None else self._began
        clock = self._clocks.setdefault(key, {})
        if said.get("phase") == _UPDATE:
            if head in clock or len(clock) < STAGES:
                clock[head] = clock.get(head, 0) + 1
            return began + clock.get(head, 1)
        return began + max(clock.values()) + 1 if clock else max(step, 0) + 1


def _peers(name: _Name, values: Mapping[_Name, float]) -> float | None:
    """The median of all; of two the other one's value; None for one alone."""
    if len(values) < 2:  # noqa: PLR2004 - nobody to be compared with
        return None
    if len(values) == 2:  # noqa: PLR2004
        return next(value for other, value in values.items() if other != name)
    return median(values.values())


def _number(said: Mapping[str, str | int | float], name: str, factor: float) -> float | None:
    value = said.get(name)
    return float(value) * factor if isinstance(value, int | float) and isfinite(value) else None
