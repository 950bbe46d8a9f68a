"""NVIDIA cards by ``nvidia-smi --query-gpu``: where its library cannot be asked, at the cost of a process each time.

It does not tell PCIe and NVLink errors, Xids or MIG instances.  Source: ``nvidia-smi --help-query-gpu`` and
``--help-query-compute-apps``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from verlwatch.core.lines.nvidia_smi import reading
from verlwatch.shell.gpu._card import Card, Process, Sample, SourceError
from verlwatch.shell.gpu._command import LIMIT_S, Command

_COLUMNS: tuple[str, ...] = (
    "index",
    "uuid",
    "name",
    "memory.used",
    "memory.total",
    "utilization.gpu",
    "power.draw",
    "temperature.gpu",
)
_MORE: tuple[str, ...] = (*_COLUMNS, "ecc.errors.uncorrected.volatile.total", "clocks_throttle_reasons.active")
_FORMAT = "--format=csv,noheader,nounits"
_UNKNOWN_COLUMN = "is not a valid field"


class NvidiaSmi:
    """See the module."""

    NAME: ClassVar[str] = "nvidia-smi"

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._command = Command(self.NAME, limit_s)
        self._columns = _MORE
        self.asking = ""

    def open(self, avoid: frozenset[str]) -> None:
        """Looks whether the program is there.  It asks all cards or none: with one to avoid it is of no use."""
        self._command.path()
        if avoid:
            raise SourceError(f"{self.NAME} asks cards that do not answer")

    def sample(self) -> Sample:
        """All cards, and the processes on them."""
        cards = cards_of(self._printed(), self._columns)
        if not cards:
            raise SourceError(f"{self.NAME} lists no card")
        try:
            apps = apps_of(self._command.output("--query-compute-apps=gpu_uuid,pid,used_gpu_memory", _FORMAT))
        except SourceError as error:
            return Sample(cards, notes=(str(error),))
        return Sample(
            tuple(card._replace(processes=tuple(apps.get(str(card.values.get("uuid")), ()))) for card in cards)
        )

    def close(self) -> None:
        """Nothing is held."""

    def _printed(self) -> str:
        try:
            return self._command.output(f"--query-gpu={','.join(self._columns)}", _FORMAT)
        except SourceError as error:
            if self._columns == _COLUMNS or _UNKNOWN_COLUMN not in str(error):
                raise
            self._columns = _COLUMNS  # a release of the driver that has other names for the rest
            return self._command.output(f"--query-gpu={','.join(self._columns)}", _FORMAT)


def cards_of(text: str, columns: tuple[str, ...] = _MORE) -> tuple[Card, ...]:
    """The cards that a CSV without header and units lists; ``columns`` begin with the index."""
    cards = []
    for line in text.splitlines():
        index, *cells = (cell.strip() for cell in line.split(","))
        if index.isdecimal() and len(cells) == len(columns) - 1:
            cards.append(Card(str(int(index)), reading(columns[1:], cells)))
    return tuple(cards)


def apps_of(text: str) -> dict[str, list[Process]]:
    """The processes on each card, by its uuid; of a process in a container the driver may not tell the memory."""
    apps: defaultdict[str, list[Process]] = defaultdict(list)
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 3 and cells[1].isdecimal():  # noqa: PLR2004 - as many as are asked for
            apps[cells[0]].append(Process(int(cells[1]), float(cells[2]) / 1024 if cells[2].isdecimal() else None))
    return dict(apps)
