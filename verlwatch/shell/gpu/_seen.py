"""What was seen of cards at one instant, as events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from verlwatch.core.types import NOBODY, Event, Origin, Scope
from verlwatch.shell.gpu._card import Card, Fault, Process, Sample
from verlwatch.shell.gpu._choice import Choice
from verlwatch.shell.gpu._processes import CardProcesses, Who

ORIGIN = Origin("gpu", 0, 0, NOBODY, "gpu")
_PROCESSES = 16
_TEXT = 300


class Seen(NamedTuple):
    """A sample, the name of its source, and who the processes in it are."""

    source: str
    sample: Sample
    who: Mapping[int, Who]


def asked(choice: Choice, processes: CardProcesses) -> Seen:
    """The cards now.

    Raises:
        SourceError: no source gives any.
    """
    source, sample = choice()
    pids = {process.pid for card in sample.cards for process in card.processes}
    return Seen(source, sample, {pid: processes.who(pid) for pid in pids})


def sample_event(card: Card, who: Mapping[int, Who], at: float, host: str) -> Event:
    """``gpu_sample``: the card's values, and what is known of its largest processes.

    ``pids`` is ``123:40.21,456`` (pid, and GiB where known), ``actors`` ``123:WorkerDict`` and ``ranks`` ``123:5``;
    each is absent where nothing tells.
    """
    processes = sorted(card.processes, key=lambda one: -(one.used_gb or 0.0))[:_PROCESSES]
    about = {
        "pids": ",".join(map(_with_memory, processes)),
        "actors": _named(processes, lambda pid: who[pid].actor if pid in who else ""),
        "ranks": _named(processes, lambda pid: who[pid].rank if pid in who else ""),
    }
    attributes = {**card.values, **{name: text for name, text in about.items() if text}}
    return Event(ORIGIN, "gpu_sample", attributes, scope=_scope(card.host or host, card.gpu), at=at)


def fault_event(fault: Fault, at: float, host: str) -> Event:
    """``gpu_fault``: ``kind`` and ``detail``; its scope has no gpu where it concerns all of the host."""
    attributes = {"kind": fault.kind, "detail": fault.detail[:_TEXT]}
    return Event(ORIGIN, "gpu_fault", attributes, "warning", scope=_scope(fault.host or host, fault.gpu), at=at)


def source_event(source: str, cards: int, at: float, host: str) -> Event:
    """``gpu_source``: which ``source`` gives the numbers from now on, and of how many ``cards``."""
    return Event(ORIGIN, "gpu_source", {"source": source, "cards": cards}, scope=(("host", host),), at=at)


def _scope(host: str, index: str) -> Scope:
    return (("host", host), ("gpu", index)) if index else (("host", host),)


def _with_memory(process: Process) -> str:
    return f"{process.pid}:{process.used_gb:.2f}" if process.used_gb is not None else str(process.pid)


def _named(processes: list[Process], name_of: Callable[[int], str]) -> str:
    return ",".join(f"{one.pid}:{name}" for one in processes if (name := name_of(one.pid)))
