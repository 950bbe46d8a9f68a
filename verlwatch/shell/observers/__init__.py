"""What is seen beside the logs: `ls` of this folder is the list.

An observer looks at one thing of this host (processes, memory, GPUs) and offers what it sees to the inbox as events,
each for the run that it concerns.  It changes nothing, waits for nobody and never raises for what the world does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from verlwatch.config import Config
from verlwatch.core.engine import Trainer
from verlwatch.shell.clock import Clock
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.observers._kept_up import KeptUp
from verlwatch.shell.observers.gpus import Gpus
from verlwatch.shell.observers.host import Host
from verlwatch.shell.observers.processes import Processes
from verlwatch.shell.observers.slurm import Slurm

__all__ = ["OBSERVERS", "Around", "Observer", "build"]


class Observer(Protocol):
    """The shape of a class in this folder."""

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""

    def reconfigure(self, config: Config) -> None:
        """Takes up another configuration, from the next look on."""

    def notices(self) -> Iterable[str]:
        """What works worse than it could, for the status."""


class Around(NamedTuple):
    """What observers are told of the logs that are read here.

    ``files`` gives the run and the path of each, ``trainers`` the process that trains, by run, as its logs name it,
    ``places`` the directory of its checkpoints, by run ("" where that is not known).
    """

    files: Callable[[], Iterable[tuple[str, str]]]
    trainers: Callable[[], Mapping[str, Trainer]]
    places: Callable[[], Mapping[str, str]]


OBSERVERS: tuple[Callable[[Inbox, Clock, Config, Around], Observer], ...] = (
    lambda inbox, clock, config, around: Processes(inbox, clock, config, around.files, around.trainers),
    lambda inbox, clock, config, _: Slurm(inbox, clock, config),
    lambda inbox, clock, config, around: Host(inbox, clock, config, places=around.places),
    lambda inbox, clock, config, around: Gpus(inbox, clock, config, around.files),
)
"""Each takes where it offers what it sees, the time, the configuration, and what it has to know of the logs."""


def build(inbox: Inbox, clock: Clock, config: Config, around: Around) -> tuple[Observer, ...]:
    """One of each, kept up whatever happens to it."""

    def kept_up(observer: Callable[[Inbox, Clock, Config, Around], Observer]) -> Observer:
        return KeptUp(lambda now: observer(inbox, clock, now, around), clock, config)

    return tuple(map(kept_up, OBSERVERS))
