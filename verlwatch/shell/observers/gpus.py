"""Memory, load and health of the GPUs, at the same instants on every host.

Instants are the multiples of ``gpu.every`` since the epoch, so that cards of different hosts are compared as they were
at one moment: colocated engines give and take tens of GB within seconds.  The sources of this host (`shell/gpu`) are
asked in one thread, each URL in one of its own.  A sample that comes too late is dropped, as is one that the inbox has
no room for.  A call into a driver that does not come back is left alone: its card, then its source, is asked no more
until it does.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from verlwatch.config import Config
from verlwatch.core.types import Event, Extract
from verlwatch.shell.clock import Clock
from verlwatch.shell.gpu import (
    SOURCES,
    Answer,
    Card,
    CardProcesses,
    Choice,
    Fault,
    Feed,
    GpuSource,
    Seen,
    asked,
    fault_event,
    sample_event,
    source_event,
)
from verlwatch.shell.gpu.prometheus import Gauges
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.printable import shortened

LATE_S = 5.0
"""A sample that comes so long after its instant is dropped."""
LIMIT_S = 30.0
"""A call that takes so long hangs."""
_SHOWN_S = 600.0  # how long the status tells of dropped samples
_AT_ONCE = 64  # records that are offered together
_DEVICES = ("/dev/nvidia0", "/dev/kfd", "/dev/davinci0")
_LOCAL = ""
_WORKER = re.compile(r"(?:^|/)worker-[0-9a-f]{56}-[0-9a-f]{8}-([0-9]{1,10})\.(?:out|err)$")


class _Hung(NamedTuple):
    """A call that does not come back, and what it asks."""

    feed: Feed[Seen]
    source: str
    card: str


class Gpus:
    """See the module."""

    def __init__(
        self,
        inbox: Inbox,
        clock: Clock,
        config: Config,
        files: Callable[[], Iterable[tuple[str, str]]] = tuple,
        pids_of: Callable[[], Mapping[str, Collection[int]]] = dict,
        *,
        sources: Sequence[type[GpuSource]] = SOURCES,
        limit_s: float = LIMIT_S,
        host: str = "",
        proc: str = "/proc",
    ) -> None:
        """``files`` gives the run and the path of each log that is read now, ``pids_of`` further processes of runs."""
        self._inbox, self._clock, self._config = inbox, clock, config
        self._files, self._pids_of = files, pids_of
        self._kinds = tuple(sources)
        self._limit_s = limit_s
        self._host = host or socket.gethostname()
        self._processes = CardProcesses(clock.now, proc)
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked_at = 0.0
        self._feeds: dict[str, Feed[Seen]] = {}  # this host's under no name, the others by URL
        self._choice: Choice | None = None
        self._hung: list[_Hung] = []
        self._avoiding: dict[str, frozenset[str]] = {}
        self._errors: dict[str, str] = {}
        self._notes: tuple[str, ...] = ()
        self._own: frozenset[object] = frozenset()  # uuids of the cards that this host's source shows
        self._sources: dict[tuple[str, str], tuple[str, int]] = {}  # what each run was told, by feed
        self.late = self.missed = self.refused = 0
        """Samples dropped because they came too late, instants at which none was asked for, and events refused."""
        self._dropped_at = float("-inf")

    # ------------------------------------------------------------------------------------------------ Observer
    async def run(self) -> None:
        """Samples for ever."""
        self._loop = asyncio.get_running_loop()
        self._asked_at = self._instant()
        try:
            while True:
                self._woken.clear()
                self._ask_if_due()
                for name, feed in list(self._feeds.items()):
                    if (answer := feed.take()) is not None:
                        await self._answered(name, answer)
                self._leave_alone()
                await self._clock.wait(self._woken, self._instant() + self._config.gpu.every)
        finally:
            for feed in self._feeds.values():
                feed.end()

    def reconfigure(self, config: Config) -> None:
        """Takes up another configuration; what is under way ends by itself."""
        if config.gpu != self._config.gpu:
            for feed in self._feeds.values():
                feed.end()
            self._feeds, self._choice, self._errors, self._notes = {}, None, {}, ()
        self._config = config
        self._asked_at = self._instant()
        self._woken.set()

    def notices(self) -> Iterable[str]:
        """What is not read, or dropped."""
        wanted = self._config.gpu.source
        for name, error in self._errors.items():
            if name != _LOCAL:
                yield f"GPU gauges of {shortened(name)}: {shortened(error)}"
            elif wanted != "auto" or any(map(_exists, _DEVICES)):
                yield f"the memory of this host's GPUs is not seen: {shortened(error)}"
        for hung in self._hung:
            card = f"GPU {hung.card}" if hung.card else "GPUs"
            yield f"{card}: a call to {hung.source} does not come back; the others are still sampled where that works"
        yield from map(shortened, self._notes)
        if self._clock.now() - self._dropped_at < _SHOWN_S:
            yield (
                f"GPU samples were left out: {self.late} came too late, {self.refused} found no room, "
                f"{self.missed} instants were missed"
            )

    # ------------------------------------------------------------------------------------------------ asking
    def _instant(self) -> float:
        every = self._config.gpu.every
        return self._clock.now() // every * every

    def _ask_if_due(self) -> None:
        at, now, every = self._instant(), self._clock.now(), self._config.gpu.every
        if at == self._asked_at:
            return
        instants = (at - self._asked_at) / every
        self._asked_at = at
        if now - at > min(LATE_S, every / 2):
            self._drop(missed=1)
            return
        if instants > 1:
            self._drop(missed=round(instants) - 1)
        self._set_up()
        for feed in self._feeds.values():
            if not feed.ask(at):
                self._drop(missed=1)

    def _set_up(self) -> None:
        """Makes the feeds that are missing."""
        gpu = self._config.gpu
        if gpu.source != "off" and _LOCAL not in self._feeds:
            kinds = [kind for kind in self._kinds if gpu.source in {"auto", kind.NAME}]
            self._avoiding = self._avoided()
            self._choice = Choice(kinds, self._clock.now, self._avoiding)
            work = partial(asked, self._choice, self._processes)
            self._feeds[_LOCAL] = Feed("gpus", work, self._choice.close, self._clock.now, self._wake)
        for url in gpu.urls:
            if url not in self._feeds:
                gauges = Gauges(url, self._host)
                self._feeds[url] = Feed("gauges", partial(_shown, gauges), _nothing, self._clock.now, self._wake)

    def _wake(self) -> None:
        """Ends the wait of the loop; called in the threads."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._woken.set)

    # ------------------------------------------------------------------------------------------------ calls that hang
    def _avoided(self) -> dict[str, frozenset[str]]:
        """What must not be asked, by source: a card or, if asking the others hangs as well, everything."""
        avoided: dict[str, frozenset[str]] = {}
        for hung in self._hung:
            avoided[hung.source] = frozenset({"" if hung.source in avoided else hung.card})
        return avoided

    def _leave_alone(self) -> None:
        """Goes on without what hangs, and with what has come back."""
        feed, choice = self._feeds.get(_LOCAL), self._choice
        for hung in [hung for hung in self._hung if hung.feed.take() is not None]:
            hung.feed.end()
            self._hung.remove(hung)
        if feed is not None and not feed.is_asked and self._avoided() != self._avoiding:
            feed.end()
            del self._feeds[_LOCAL]
        elif feed is not None and choice is not None and feed.hangs(self._limit_s):
            source, card = choice.asking
            self._hung.append(_Hung(feed, source or "a source", card))
            del self._feeds[_LOCAL]
            what = f"a call to {source} has not come back for {self._limit_s:g} s"
            self._offer_faults([Fault("unreadable", what, card)])

    # ------------------------------------------------------------------------------------------------ answers
    async def _answered(self, name: str, answer: Answer[Seen]) -> None:
        seen = answer.value
        if seen is None:
            self._errors[name] = answer.error
            return
        self._errors.pop(name, None)
        self._offer_faults(seen.sample.faults, answer.at)
        if answer.answered_at - answer.at > LATE_S:
            self._drop(late=1)
            return
        cards = seen.sample.cards
        if name == _LOCAL:
            self._notes = seen.sample.notes
            self._own = frozenset(card.values.get("uuid") for card in cards) - {None}
        else:
            cards = tuple(card for card in cards if card.values.get("uuid") not in self._own)
        for run, owned in self._by_run(cards).items():
            told = (seen.source, len(owned))
            if self._sources.get((run, name)) != told:
                self._sources[run, name] = told
                self._offer(run, [source_event(*told, answer.at, self._host)])
            events = [sample_event(card, seen.who, answer.at, self._host) for card in owned]
            for piece in _pieces(events):
                if not self._offer(run, piece):
                    break
                await asyncio.sleep(0)  # whoever judges makes room for the next

    def _offer_faults(self, faults: Iterable[Fault], at: float | None = None) -> None:
        events = [fault_event(fault, self._clock.now() if at is None else at, self._host) for fault in faults]
        for run in self._processes_of() if events else ():
            self._offer(run, events)

    def _offer(self, run: str, events: list[Event]) -> bool:
        taken = self._inbox.offer(Extract("gpu", run, tuple(events)))
        if not taken:
            self._drop(refused=len(events))
        return taken

    def _drop(self, *, late: int = 0, missed: int = 0, refused: int = 0) -> None:
        self.late += late
        self.missed += missed
        self.refused += refused
        self._dropped_at = self._clock.now()

    # ------------------------------------------------------------------------------------------------ whose cards
    def _processes_of(self) -> dict[str, set[int]]:
        """The processes of each run that is known by name.

        A run that is named after its files is known as soon as one is read; those of a worker name its process.
        """
        found: dict[str, set[int]] = {run.name: set() for run in self._config.runs if "{" not in run.name}
        for run, path in self._files():
            worker = _WORKER.search(path)
            found.setdefault(run, set()).update({int(worker[1])} if worker else ())
        for run, pids in self._pids_of().items():
            found.setdefault(run, set()).update(pids)
        return found

    def _by_run(self, cards: Iterable[Card]) -> dict[str, list[Card]]:
        """The cards of each run: those that its processes use, and those of which nothing tells whose they are."""
        known = self._processes_of()
        owner = {pid: run for run, pids in known.items() for pid in pids} if len(known) > 1 else {}
        owned: dict[str, list[Card]] = {run: [] for run in known}
        for card in cards:
            owners = {owner[process.pid] for process in card.processes if process.pid in owner}
            for run in owners or known:
                owned[run].append(card)
        return {run: some for run, some in owned.items() if some}


def _shown(gauges: Gauges) -> Seen:
    return Seen(Gauges.NAME, gauges(), {})


def _pieces(events: list[Event]) -> Iterator[list[Event]]:
    for first in range(0, len(events), _AT_ONCE):
        yield events[first : first + _AT_ONCE]


def _exists(path: str) -> bool:
    return Path(path).exists()


def _nothing() -> None:
    """Nothing is held."""
