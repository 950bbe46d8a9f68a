"""What a source of GPU numbers gives, and how it says that it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple, Protocol

Values = Mapping[str, str | int | float]
FaultKind = Literal["missing", "xid", "ecc", "driver_reload", "unreadable"]

GIB = float(1 << 30)


class SourceError(Exception):
    """A source cannot give numbers now; the text says why, and what to do about it."""


class Process(NamedTuple):
    """A process that computes on a card, and how much of its memory it holds (None where nothing tells)."""

    pid: int
    used_gb: float | None = None


class Card(NamedTuple):
    """One card, or MIG instance, at one instant.

    ``gpu`` is its index as nvidia-smi counts, ``3:0`` for the first instance of card 3.  ``values`` are those that are
    known, under the names of the event `gpu_sample`: uuid, name, used_gb and total_gb (GiB), utilization (percent),
    power_w, temperature_c, throttle (reasons), ecc_uncorrected, pcie_replay, nvlink_errors (counts), mig (profile).
    ``host`` is empty for this host.
    """

    gpu: str
    values: Values
    processes: tuple[Process, ...] = ()
    host: str = ""


class Fault(NamedTuple):
    """Something that happened to a card (empty ``gpu``: to all of the host)."""

    kind: FaultKind
    detail: str
    gpu: str = ""
    host: str = ""


class Sample(NamedTuple):
    """All cards at one instant, what happened to them since the one before, and what could not be read."""

    cards: tuple[Card, ...]
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


class GpuSource(Protocol):
    """Where numbers of GPUs come from.  All calls in one thread, which they may block."""

    NAME: ClassVar[str]

    @property
    def asking(self) -> str:
        """The card that is being asked just now, for whoever sees that it does not answer; read in any thread."""

    def open(self, avoid: frozenset[str]) -> None:
        """Gets ready; cards of ``avoid`` (indices) must not be asked: they do not answer.

        Raises:
            SourceError: it is not there, or of no use here.
        """

    def sample(self) -> Sample:
        """All cards now.

        Raises:
            SourceError: it is of no use any more; `open` may make it so again.
        """

    def close(self) -> None:
        """Lets go of what it holds; never raises."""
