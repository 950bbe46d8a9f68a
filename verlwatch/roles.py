"""What a watcher is made of in each role: standalone it judges and tells, an agent ships, a hub takes as well."""

from __future__ import annotations

import socket
import ssl
from collections import Counter
from collections.abc import Iterable, Mapping

import aiohttp
import structlog

from verlwatch import config as configuration
from verlwatch.config import Config
from verlwatch.core.engine import Engine
from verlwatch.core.gather import Gatherer
from verlwatch.core.types import Incident
from verlwatch.fields import Secret, SecretError, read_secret
from verlwatch.shell._line import Lines
from verlwatch.shell.clock import Clock
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.fleet import hub as fleet_hub
from verlwatch.shell.fleet import tls
from verlwatch.shell.fleet.hub import AGENT, Hub
from verlwatch.shell.fleet.link import Link, Way
from verlwatch.shell.heartbeat import Heartbeat, Pulse, blind
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.notifiers import build
from verlwatch.shell.notifiers._http import secret_url
from verlwatch.shell.overview import Overview
from verlwatch.shell.state_dir import Served
from verlwatch.shell.store import Store
from verlwatch.shell.tail import Following
from verlwatch.status import Role

log = structlog.get_logger(__name__)


def engine(config: Config) -> Engine | Gatherer:
    """What reads chunks: an agent's does nothing else."""
    settings = configuration.settings(config)
    engine = Gatherer(settings) if config.agent.hub else Engine(settings)
    engine.read_also(configuration.own_lines(config))
    return engine


def hub(config: Config, inbox: Inbox, clock: Clock, engine: Engine | Gatherer) -> Hub | None:
    """Who takes deliveries, if there are agents.  Raises SecretError."""
    return Hub(inbox, clock, tokens(config), engine.cursors) if config.hub.agents else None


def tokens(config: Config) -> Mapping[str, tuple[Secret, ...]]:
    """The tokens of each agent of a hub, as their files hold them now.  Raises SecretError."""
    found: dict[str, tuple[Secret, ...]] = {}
    owners: dict[str, str] = {}
    for agent in config.hub.agents:
        texts = read_secret(agent.token_file).reveal().split()
        for text in texts:
            if owners.setdefault(text, agent.name) != agent.name:
                raise SecretError(
                    f"{agent.token_file}: agents {owners[text]} and {agent.name} have the same token; give each its own"
                )
        found[agent.name] = tuple(map(Secret, texts))
    return found


def delivery(
    config: Config,
    store: Store,
    session: aiohttp.ClientSession,
    clock: Clock,
    overview: Overview,
    delivered: Mapping[str, int] | None = None,
) -> Lines:
    """Who sends: to receivers, or to the hub.  Raises SecretError and TlsError."""
    agent = config.agent
    if agent.hub and agent.token_file:
        read_secret(agent.token_file)
        context: ssl.SSLContext | None = None
        if agent.hub.startswith("https:"):
            context = tls.client(agent.ca, agent.certificate, agent.key)
        url = agent.hub.rstrip("/") + fleet_hub.PATH
        way = Way(url, agent.name or socket.gethostname(), agent.token_file, context)
        return Link(store, session, way, clock, overview.reports)
    notifiers = {receiver.name: build(receiver, session) for receiver in config.receivers}
    return Deliver(
        store,
        notifiers,
        clock,
        max_backoff_s=config.delivery.max_backoff,
        collapse_after_s=config.delivery.collapse_after,
        delivered=delivered,
        open_incidents=lambda: {incident.id for incident in overview.open_incidents()},
    )


def following(config: Config) -> Following:
    """What is read, and how."""
    reading = config.reading
    return Following(
        {run.name: run.logs for run in config.runs},
        {run.name: run.start for run in config.runs},
        reading.poll_interval,
        reading.max_files,
        reading.watch == "auto",
        reading.hydra == "auto",
    )


def shown(config: Config) -> frozenset[str] | None:
    """The runs whose state is shown; those of agents are known by what comes."""
    return None if config.hub.agents else frozenset(run.name for run in config.runs)


def tell_of_removed(receivers: Iterable[str], incidents: Iterable[Incident]) -> None:
    """Warns of receivers that were told of incidents which are open, and will not hear how those end."""
    told = Counter(name for one in incidents for name in {name for notice in one.told for name in notice.receivers})
    for name in receivers:
        if told[name]:
            log.warning(
                "a receiver was removed that was told of open incidents; one of another name does not know them",
                receiver=name,
                incidents=told[name],
            )


def pulse(config: Config) -> Pulse | None:
    """Where heartbeats go, if anywhere.  Raises SecretError."""
    wanted = config.heartbeat
    if wanted.url_file:
        return Pulse(secret_url(wanted.url_file), wanted.every, wanted.proxy)
    return Pulse(Secret(wanted.url), wanted.every, wanted.proxy) if wanted.url else None


def heartbeat(config: Config, session: aiohttp.ClientSession, clock: Clock, overview: Overview) -> Heartbeat:
    """Who pings while ``overview`` says that the watcher sees.  Raises SecretError."""
    heartbeat = Heartbeat(session, clock, lambda: blind(overview.status(), overview.stalled()), pulse(config))
    overview.heartbeat = heartbeat.status
    return heartbeat


def role(config: Config) -> Role:
    """Which role a configuration gives."""
    return "agent" if config.agent.hub else "hub" if config.hub.agents else "standalone"


def served(config: Config, url: str) -> Served:
    """What `verlwatch status` on this host needs to know to ask at ``url``.  Raises TlsError."""
    certificate = config.http.tls_certificate
    return Served(url, tls.leaf(certificate) if certificate else "")


def certificates(config: Config) -> ssl.SSLContext | None:
    """What the HTTP server shows; None for plain HTTP.  Raises TlsError."""
    http = config.http
    if not (http.tls_certificate and http.tls_key):
        return None
    return tls.server(http.tls_certificate, http.tls_key, http.client_ca)


def room(config: Config) -> int:
    """How large the database may be: an agent's outbox has room of its own."""
    return config.storage.max_size + (config.agent.outbox_size if config.agent.hub else 0)


def expected(config: Config) -> frozenset[str]:
    """The agents that are expected to be heard."""
    return frozenset(agent.name for agent in config.hub.agents)


def remembered(config: Config) -> list[str]:
    """The cursors that are kept though no file stands behind them."""
    return [f"{AGENT}{agent.name}" for agent in config.hub.agents]


def secrets(config: Config) -> list[Secret]:
    """Every secret that must not appear in the log."""
    secrets = []
    for key, path in configuration.secret_paths(config):
        secret = read_secret(path)
        secrets.append(secret)
        if key[-1] == "token_file":  # while tokens change it holds two, and each is sent by itself
            secrets += map(Secret, secret.reveal().split())
    return secrets
