"""What is seen beside the logs: `ls` of this folder is the list.

An observer looks at one thing of this host (processes, memory, GPUs) and offers what it sees to the inbox as events,
each for the run that it concerns.  It changes nothing, waits for nobody and never raises for what the world does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from verlwatch.config import Config
from verlwatch.shell.clock import Clock
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.observers.gpus import Gpus
from verlwatch.shell.observers.host import Host
from verlwatch.shell.observers.processes import Processes
from verlwatch.shell.observers.slurm import Slurm

__all__ = ["OBSERVERS", "Observer", "build"]


class Observer(Protocol):
    """The shape of a class in this folder."""

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""

    def reconfigure(self, config: Config) -> None:
        """Takes up another configuration, from the next look on."""

    def notices(self) -> Iterable[str]:
        """What works worse than it could, for the status."""


OBSERVERS: tuple[Callable[[Inbox, Clock, Config], Observer], ...] = (Processes, Slurm, Gpus, Host)
"""Each takes where it offers what it sees, the time, and the configuration."""


def build(inbox: Inbox, clock: Clock, config: Config) -> tuple[Observer, ...]:
    """One of each."""
    return tuple(observer(inbox, clock, config) for observer in OBSERVERS)
