"""The only wiring: a configuration becomes objects, and one TaskGroup runs them until the service is told to stop.

    tail ══ inbox ══ judge ══ outbox ══ deliver
                       │
                     store        http, reload, watchdog beside them

Shutdown is the end of a stream: SIGTERM stops the reading, the judge empties the inbox and commits, delivery sends what
is due.  All of it shares one grace; what is left is read again, or sent, after the next start.
"""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace

import aiohttp
import structlog

from verlwatch import config as configuration
from verlwatch import roles
from verlwatch.config import Config, ConfigError
from verlwatch.core.engine import MAX_ATTEMPTS, RECALL
from verlwatch.core.types import Outcome
from verlwatch.fields import Secret, SecretError, open_to_others, read_secret
from verlwatch.shell import _memory, logs, observers, systemd
from verlwatch.shell._line import Lines
from verlwatch.shell.clock import Clock, Evenness, SystemClock
from verlwatch.shell.fleet import hub as fleet_hub
from verlwatch.shell.fleet.tls import TlsError
from verlwatch.shell.http import gpus
from verlwatch.shell.http import server as http
from verlwatch.shell.http._actions import Actions
from verlwatch.shell.http.changes import Changes
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.judge import Judge
from verlwatch.shell.letters import Letters
from verlwatch.shell.notifiers import open_session
from verlwatch.shell.observers import Around
from verlwatch.shell.overview import Overview
from verlwatch.shell.store import StateDirError, Store, StoreDamaged, StoreUnavailable
from verlwatch.shell.tail import Tail
from verlwatch.shell.upkeep import keep_place, look_around
from verlwatch.status import ConfigStatus

REFRESH_S = 1.0
TIDY_S = 60.0
RECALLED_CHANGES = 200
"""Changes of incidents of which the status tells after a restart."""
EVEN_S = 3600.0
"""Nothing is forgotten for its age before the clock has run evenly for so long."""
HANDOVER_S = 2.0
"""At a reload, how long the old receivers may finish what they are sending."""
LEAST_GRACE_S = 1.0
"""So long a stopping daemon may take to judge and commit what it has read, whatever the grace."""
STOP_MARGIN_S = 10.0
"""What the service manager allows beyond the grace: the HTTP server and the database close after it."""

log = structlog.get_logger(__name__)


class StartError(Exception):
    """The watcher cannot start; the text says why and what to do."""


class StateLost(Exception):  # noqa: N818 - names the situation
    """The watcher cannot go on with its state; the text says why, and that a restart mends it."""


class App:
    """A running watcher.  ``reread`` reads the configuration anew for a reload; it raises ConfigError."""

    def __init__(self, config: Config, path: str | None, reread: Callable[[], Config], *, port_chosen: bool) -> None:
        self.config = config
        self._path = path
        self._reread = reread
        self._port_chosen = port_chosen
        self._clock: Clock = SystemClock()
        self._stop_wanted = asyncio.Event()
        self._reload_wanted = asyncio.Event()
        self._tidy_wanted = asyncio.Event()
        self._secrets: dict[str, Secret] = {}

    async def run(self) -> None:
        """Runs until SIGTERM or SIGINT.

        Raises:
            StartError: it cannot start.
            StateLost: the database is damaged, or no longer its own; the next start knows what to do.
        """
        try:
            _memory.hold_little()
            self._set_up_log(self.config)
            folder = configuration.state_dir(self.config)
            self._store = await Store.open(folder, durable=roles.role(self.config) != "standalone")
        except (ConfigError, SecretError, StateDirError) as error:
            raise StartError(str(error)) from error
        try:
            async with open_session() as session:
                await self._build(session)
                await self._serve(session)
        except (StoreUnavailable, StoreDamaged, SecretError, TlsError) as error:
            raise StartError(str(error)) from error
        except ExceptionGroup as group:
            lost = group.subgroup((StoreDamaged, StateDirError))
            if lost is None:
                raise
            raise StateLost(str(lost.exceptions[0])) from group
        finally:
            try:
                await self._store.close()
            except TimeoutError:
                log.error("the disk of the state directory does not answer", file=str(self._store.path))  # noqa: TRY400
        log.info("stopped")

    async def _build(self, session: aiohttp.ClientSession) -> None:
        config, clock = self.config, self._clock
        engine = self._engine = roles.engine(config)
        engine.restore(await self._store.load(RECALL, attempts=MAX_ATTEMPTS, prefix="timing"))
        for notice in self._store.notices:
            log.warning("database", notice=notice)
        for _, path in configuration.secret_paths(config):
            if (text := open_to_others(path)) is not None:
                log.warning("secret", notice=text)
        inbox = Inbox()
        self._tail = Tail(roles.following(config), inbox, engine.cursors, clock=clock)
        self._hub = roles.hub(config, inbox, clock, engine)
        self._observers = observers.build(inbox, clock, config, self._around())
        self._judge = Judge(engine, self._store, inbox, clock, self._committed)
        self._judge.sources = self._tail.sources
        self._changes = Changes(inbox, clock, engine)
        self._overview = Overview(
            self._judge, self._tail, self._store, ConfigStatus(path=self._path, loaded_at=clock.now()), clock.now
        )
        self._overview.role = roles.role(config)
        self._overview.observers = self._observers
        self._overview.recall(await self._store.transitions(RECALLED_CHANGES))
        self._judge.expect(roles.expected(config))
        if (hub := self._hub) is not None:
            self._overview.agents, self._overview.strangers = hub.agents, lambda: hub.strangers
        self._overview.runs = roles.shown(config)
        self._set_up_delivery(self._delivery(config, session))
        await self._deliver.count()
        self._heartbeat = roles.heartbeat(config, session, clock, self._overview)

    def _around(self) -> Around:
        """What the observers are told of the logs that are read here."""
        return Around(
            lambda: [(view.run, view.source) for view in self._tail.sources()],
            lambda: self._engine.trainers,
            lambda: {view.run: self._engine.checkpoints.get(view.run, "") for view in self._tail.sources()},
        )

    def _set_up_log(self, config: Config) -> None:
        """Hides the secrets of ``config`` too.  Those of before stay hidden: what was in force may still be told of."""
        self._secrets |= {secret.reveal(): secret for secret in roles.secrets(config)}
        logs.configure(self.config.logging.level, self.config.logging.format, self._secrets.values())

    def _delivery(
        self, config: Config, session: aiohttp.ClientSession, delivered: Mapping[str, int] | None = None
    ) -> Lines:
        return roles.delivery(config, self._store, session, self._clock, self._overview, delivered)

    def _set_up_delivery(self, deliver: Lines) -> None:
        self._deliver = self._overview.deliver = deliver

    async def _serve(self, session: aiohttp.ClientSession) -> None:
        server = await self._listen()
        try:
            async with asyncio.TaskGroup() as tasks:
                judging = tasks.create_task(self._judge.run())
                tailing = tasks.create_task(self._tail.run())
                self._start_delivery(tasks)
                reloading = tasks.create_task(self._reloads(tasks, session))
                beside = [tasks.create_task(loop) for loop in self._beside()]
                self._on_signals()
                systemd.notify("READY=1", f"STATUS=watching {len(self.config.runs)} runs")
                if not self.config.receivers and not self.config.agent.hub:
                    log.warning("nobody is told: no receiver is configured; the status page shows what is found")
                log.info("watching", runs=len(self.config.runs), receivers=len(self.config.receivers))
                await self._stop_wanted.wait()
                reloading.cancel()
                await asyncio.wait({reloading})
                await self._drain(tailing, judging)
                for task in beside:
                    task.cancel()
        finally:
            if server is not None:
                await server.stop()

    def _start_delivery(self, tasks: asyncio.TaskGroup) -> None:
        for loop in self._deliver.loops():
            tasks.create_task(loop)

    async def _drain(self, tailing: asyncio.Task[None], judging: asyncio.Task[None]) -> None:
        """Empties the flow from its beginning to its end within the grace."""
        grace = self.config.delivery.grace
        systemd.notify("STOPPING=1", f"EXTEND_TIMEOUT_USEC={round(1e6 * (grace + STOP_MARGIN_S))}")
        log.info("stopping")
        stop_at = self._clock.now() + grace
        self._tail.stop()
        _, late = await asyncio.wait({tailing, judging}, timeout=max(LEAST_GRACE_S, grace))
        if late:
            log.warning("stopped before everything read was judged; it is read again at the next start")
        for task in late:
            task.cancel()
        await self._deliver.drain(min(grace, max(0.0, stop_at - self._clock.now())))

    async def _listen(self) -> http.Server | None:
        settings = self.config.http
        if settings.listen is None:
            return None
        try:
            server = await http.start(
                self._overview,
                (settings.listen.host, settings.listen.port),
                read_secret(settings.token_file) if settings.token_file else None,
                settings.allowed_hosts,
                else_any_port=not self._port_chosen,
                tls=roles.certificates(self.config),
                posts={fleet_hub.PATH: self._hub.answer} if self._hub else {},
                actions=self._actions(),
            )
        except http.ListenError as error:
            raise StartError(str(error)) from error
        log.info("status page", url=server.url)
        self._store.announce(roles.served(self.config, server.url))
        return server

    def _actions(self) -> Actions:
        """What a person may have done through HTTP."""
        letters = Letters(
            self._store.outbox,
            self._clock,
            lambda: [receiver.name for receiver in self.config.receivers],
            lambda: self._deliver.notify(),  # noqa: PLW0108 - of those in force when it is called
        )
        samples = gpus.actions(self._store.gpus, self._clock.now, lambda: self._engine.runs)
        return {**letters.actions(), **self._changes.actions(), **samples}

    def _committed(self, outcome: Outcome) -> None:
        self._overview.committed(outcome)
        if outcome.notifications or outcome.extracts:
            self._deliver.notify(outcome)
        if self._hub:
            self._hub.committed(outcome)
        exceeds = self._store.shipments.exceed(self.config.agent.outbox_size)
        if exceeds or self._store.wants_pruning(roles.room(self.config)):
            self._tidy_wanted.set()

    # ------------------------------------------------------------------------------------------------ beside the flow
    def _beside(self) -> tuple[Coroutine[None, None, None], ...]:
        return (
            look_around(self._overview, REFRESH_S),
            keep_place(self._store, REFRESH_S),
            self._tidy(),
            systemd.feed_watchdog(self._overview.stalled, REFRESH_S),
            self._heartbeat.run(),
            *(observer.run() for observer in self._observers),
        )

    async def _tidy(self) -> None:
        """Gives up messages for receivers that are no longer configured, and forgets what is old."""
        evenness = Evenness(self._clock.now(), pause_s=3 * TIDY_S, needed_s=EVEN_S)
        while True:
            self._tidy_wanted.clear()
            now, storage = self._clock.now(), self.config.storage
            keep_s = storage.keep_steps if evenness.holds(now) else math.inf
            views = self._tail.sources()
            self._engine.let_go({view.source for view in views})
            seen = [view.source for view in views if view.state != "waiting"]
            seen += roles.remembered(self.config)
            try:
                await self._store.outbox.drop_receivers({receiver.name for receiver in self.config.receivers}, now)
                await self._deliver.count_strays()
                await self._store.shipments.thin(self.config.agent.outbox_size)
                await self._store.prune(now, keep_s, roles.room(self.config), seen)
            except StoreUnavailable as error:
                log.warning("old steps and messages were not cleared away; it is tried again", error=str(error))
            await self._clock.wait(self._tidy_wanted, now + TIDY_S)

    def _on_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_wanted.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload_wanted.set)

    # ------------------------------------------------------------------------------------------------ reload
    async def _reloads(self, tasks: asyncio.TaskGroup, session: aiohttp.ClientSession) -> None:
        """Takes up what can change live; keeps the old configuration, and says so, if the new one is bad."""
        while True:
            await self._reload_wanted.wait()
            self._reload_wanted.clear()
            systemd.reloading()
            try:
                await self._reload(self._reread(), tasks, session)
            except Exception as error:  # noqa: BLE001 - a reload ends no daemon, whatever it meets
                log.warning("the configuration was not reloaded; the old one stays in force", error=str(error))
                self._overview.config = replace(self._overview.config, reload_ok=False, error=str(error) or repr(error))
            systemd.notify("READY=1")

    async def _reload(self, new: Config, tasks: asyncio.TaskGroup, session: aiohttp.ClientSession) -> None:
        difference = configuration.changes(self.config, new)
        self._set_up_log(new)
        new = configuration.in_force(self.config, new)
        deliver = self._delivery(new, session, self._deliver.delivered())
        tokens, pulse, following = roles.tokens(new), roles.pulse(new), roles.following(new)
        settings, lines, expected = configuration.settings(new), configuration.own_lines(new), roles.expected(new)
        with suppress(StoreUnavailable):  # then it is counted at the first turn
            await deliver.count()
        await self._deliver.drain(HANDOVER_S)
        # Nothing from here on waits: a stop finds either the old configuration in force or the new one.
        self.config = new
        self._engine.reconfigure(settings)
        self._engine.read_also(lines)
        self._tail.reload(following)
        self._set_up_delivery(deliver)
        self._start_delivery(tasks)
        self._heartbeat.reconfigure(pulse)
        for observer in self._observers:
            observer.reconfigure(new)
        self._judge.expect(expected)
        if self._hub:
            self._hub.reconfigure(tokens)
        self._tidy_wanted.set()
        self._overview.config = ConfigStatus(path=self._path, loaded_at=self._clock.now())
        self._overview.runs = roles.shown(new)
        roles.tell_of_removed(difference.receivers.removed, self._overview.open_incidents())
        log.info(
            "configuration reloaded",
            changed=list(difference.live),
            runs=_words(difference.runs),
            receivers=_words(difference.receivers),
            restart_needed=list(difference.restart),
        )


def _words(delta: configuration.Delta) -> dict[str, list[str]]:
    """What was added, removed and changed, by name."""
    names = {"added": delta.added, "removed": delta.removed, "changed": delta.changed}
    return {word: list(which) for word, which in names.items() if which}
