"""Ascend cards by ``npu-smi info``, whose table gives each chip two rows and each process one.

    | NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
    | Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
    | 0     Ascend910           | OK            | 178.7       37                0    / 0             |
    | 0     0                   | 0000:9D:00.0  | 12          0    / 0          43419/ 65536         |
    | NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
    | 0       0                 | 124528        | ray::WorkerDict          | 40012                   |

Source: Huawei's npu-smi reference, and the tables of its releases 22 to 26.  ``Phy-ID``, which is how CANN counts, is
there where a card has two chips; without it the card's number is.  MB are 2**20 bytes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

from verlwatch.shell.gpu._card import Card, Process, Sample, SourceError
from verlwatch.shell.gpu._command import LIMIT_S, Command

_FIRST = re.compile(r"([0-9]{1,4}) +(\S.{0,40}?)")
_SENSORS = re.compile(r"([0-9.]{1,10}|-|NA) +([0-9.]{1,10}|-|NA) +.*")
_CHIP = re.compile(r"([0-9]{1,3})(?: +([0-9]{1,4}))?")
_USAGE = re.compile(r"([0-9]{1,3}|-|NA) +([0-9]{1,9}) */ *([0-9]{1,9})(?: +([0-9]{1,9}) */ *([0-9]{1,9}))?")
_OWNER = re.compile(r"([0-9]{1,4}) +([0-9]{1,3})")


class NpuSmi:
    """See the module."""

    NAME: ClassVar[str] = "npu-smi"

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._command = Command(self.NAME, limit_s)
        self.asking = ""

    def open(self, avoid: frozenset[str]) -> None:
        """Looks whether the program is there.  It asks all cards or none: with one to avoid it is of no use."""
        self._command.path()
        if avoid:
            raise SourceError(f"{self.NAME} asks cards that do not answer")

    def sample(self) -> Sample:
        """All chips, and the processes on them."""
        cards = npu_smi_cards(self._command.output("info"))
        if not cards:
            raise SourceError(f"{self.NAME} lists no card")
        return Sample(cards)

    def close(self) -> None:
        """Nothing is held."""


def npu_smi_cards(text: str) -> tuple[Card, ...]:
    """The chips in what ``npu-smi info`` prints."""
    rows = list(_rows(text))
    processes: defaultdict[tuple[str, str], list[Process]] = defaultdict(list)
    for cells in rows:
        owner = _OWNER.fullmatch(cells[0])
        if owner and len(cells) >= 4 and cells[1].isdecimal() and cells[3].isdecimal():  # noqa: PLR2004 - of the table
            processes[owner[1], owner[2]].append(Process(int(cells[1]), int(cells[3]) / 1024))
    return tuple(card for upper, lower in pairwise(rows) if (card := _card(upper, lower, processes)))


def _rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            yield [cell.strip() for cell in line.strip().strip("|").split("|")]


def _card(upper: list[str], lower: list[str], processes: dict[tuple[str, str], list[Process]]) -> Card | None:
    if len(upper) != 3 or len(lower) != 3:  # noqa: PLR2004 - of the table
        return None
    first, sensors = _FIRST.fullmatch(upper[0]), _SENSORS.fullmatch(upper[2])
    chip, usage = _CHIP.fullmatch(lower[0]), _USAGE.fullmatch(lower[2])
    if not (first and sensors and chip and usage):
        return None
    core, *memory = usage.groups()
    used, total = memory[2:] if int(memory[3] or 0) else memory[:2]  # cards without HBM use the other
    values: dict[str, str | int | float] = {"name": first[2]}
    if int(total):
        values |= {"used_gb": int(used) / 1024, "total_gb": int(total) / 1024}
    known = {"utilization": core, "power_w": sensors[1], "temperature_c": sensors[2]}
    values |= {name: float(cell) for name, cell in known.items() if cell not in {"-", "NA"}}
    index = chip[2] or (first[1] if chip[1] == "0" else f"{first[1]}:{chip[1]}")
    return Card(index, values, tuple(processes.get((first[1], chip[1]), ())))
