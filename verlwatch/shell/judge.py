"""The one place that touches the engine: take what the inbox holds, judge it, commit it, tell delivery.

Nothing is judged further while a commit fails (disk full, read-only): the same outcome is tried again until the store
takes it, and back-pressure through the inbox makes the readers wait.  Nothing is lost, and status says what is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

import structlog

from verlwatch.core.engine import Engine, merged
from verlwatch.core.gather import Gatherer
from verlwatch.core.life import Sight
from verlwatch.core.types import Chunk, Extract, Outcome
from verlwatch.shell._source_view import SourceView
from verlwatch.shell.clock import Clock
from verlwatch.shell.inbox import Inbox, Item, Request
from verlwatch.shell.store import Store, StoreUnavailable

TURN_S = 1.0
"""The loop turns at least this often, work or none: health and the service manager's watchdog look at it."""

RETRY_S = 1.0

BATCH = 4
"""Items judged for one commit: more saves little time, and the numbers of all their steps are held in memory."""

PAUSE_S = 10.0
"""A longer time between two turns is a pause: of the host, of the disk, of the process."""
AWAKE_S = 5.0
"""So long after a pause nothing is told as late."""

log = structlog.get_logger(__name__)


class Judge:
    """The single writer.  ``committed`` is called after each commit with what it held."""

    def __init__(
        self, engine: Engine | Gatherer, store: Store, inbox: Inbox, clock: Clock, committed: Callable[[Outcome], None]
    ) -> None:
        self.engine = engine
        self.turned_at = clock.now()
        self.store_error: str | None = None
        self.positions: dict[str, tuple[int, int]] = {}
        """Source -> (generation, offset) up to which everything is judged and committed."""
        self._store = store
        self._inbox = inbox
        self._clock = clock
        self._committed = committed
        self._set_back = 0.0
        self._expected: Collection[str] | None = None
        self.sources: Callable[[], Sequence[SourceView]] = tuple
        """How the sources stand that are read here."""
        self._looked_at = 0.0
        self._awake_at = self.turned_at
        """Since when it turns without a pause."""
        self._slept_s = 0.0
        self.positions.update((c.source, (c.generation, c.applied_to)) for c in engine.cursors)

    async def run(self) -> None:
        """Judges until the inbox is closed and empty."""
        while True:
            items = await self._inbox.get(BATCH, timeout_s=self._patience())
            self._turn()
            if items is None:
                return
            done: list[Request] = []
            await self._commit(self._judge(items, done))
            self._answer(items, done)

    def _turn(self) -> None:
        """Notes the time.  Where the clock was set back, the engine's goes on while something is open."""
        before, self.turned_at = self.turned_at, self._clock.now()
        passed = self.turned_at - before
        if not 0.0 <= passed < PAUSE_S:
            self._awake_at = self.turned_at
            self._slept_s += max(0.0, passed)
        if self.engine.deadline() is None:
            self._set_back = 0.0
        elif self.turned_at < before:
            self._set_back += before - self.turned_at

    def _patience(self) -> float:
        wanted = [at for at in (self.engine.deadline(), self.engine.due()) if at is not None]
        left = min(wanted) - self._clock.now() - self._set_back if wanted else TURN_S
        return max(0.0, min(TURN_S, left))

    def expect(self, agents: Collection[str]) -> None:
        """From the next turn on these agents are expected to be heard, and no others."""
        self._expected = agents

    @staticmethod
    def _answer(items: Sequence[Item], done: Sequence[Request]) -> None:
        """Tells people that what they asked for is committed; who has not waited so long is not told."""
        for item in items:
            if isinstance(item, Request) and not item.answer.done():
                item.answer.set_result(item in done)

    def _judge(self, items: Sequence[Item], done: list[Request]) -> Outcome:
        now = self.turned_at + self._set_back
        outcomes = []
        if self._slept_s and isinstance(self.engine, Engine):
            self.engine.slept(self._slept_s)
        self._slept_s = 0.0
        if self._expected is not None and isinstance(self.engine, Engine):
            outcomes.append(self.engine.expect(self._expected, now))
            self._expected = None
        outcomes += [self._one(item, now, done) for item in items]
        if isinstance(self.engine, Engine) and abs(self.turned_at - self._looked_at) >= TURN_S:
            self._looked_at = self.turned_at
            self.engine.see(map(self._sight, self.sources()), now)
        return merged([*outcomes, self.engine.tick(now)])

    def _sight(self, view: SourceView) -> Sight:
        """How a source stands.  After a pause the readers are given time to look before anything is called late."""
        generation, at = self.positions.get(view.source, (view.generation, 0))
        size = view.size or 0
        behind = generation != view.generation or at < size or self.turned_at - self._awake_at < AWAKE_S
        # a file that is not there is unreadable only once there was one
        readable = view.readable or (view.state == "waiting" and not view.generation)
        return Sight(view.source, view.run, readable, view.error or view.state, behind, view.changed_at)

    def _one(self, item: Item, now: float, done: list[Request]) -> Outcome:
        if isinstance(item, Chunk):
            return self.engine.feed(item, now)
        if isinstance(item, Extract):
            return self.engine.accept((item,), now)
        assert isinstance(self.engine, Engine)  # noqa: S101 - only who judges gets parcels and requests
        if isinstance(item, Request):
            outcome = item.work(self.engine, now)
            if outcome is not None:
                done.append(item)
            return outcome or Outcome()
        cursors = () if item.cursor is None else (item.cursor,)
        return merged((self.engine.hear(item.report, now), self.engine.accept(item.extracts, now, cursors)))

    async def _commit(self, outcome: Outcome) -> None:
        if not outcome:
            return
        while True:
            try:
                await self._store.commit(outcome, self._clock.now())
            except StoreUnavailable as error:
                if self.store_error is None:
                    log.warning("state cannot be written; reading waits", error=str(error))
                self.store_error = str(error)
                await asyncio.sleep(RETRY_S)
                self._turn()
                continue
            if self.store_error is not None:
                log.info("state can be written again; reading goes on")
            self.store_error = None
            self._announce(outcome)
            return

    def _announce(self, outcome: Outcome) -> None:
        for cursor in outcome.cursors:
            self.positions[cursor.source] = (cursor.generation, cursor.applied_to)
        for transition in outcome.transitions:
            log.info(
                "incident",
                change=transition.event,
                run=transition.run,
                incident=transition.incident,
                rule=transition.rule,
                phase=transition.phase,
                step=transition.step,
                since_step=transition.onset_step,
                ratio=transition.ratio,
                severity=transition.severity,
                closed_as=transition.closed_as,
            )
        self._committed(outcome)
