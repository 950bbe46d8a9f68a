"""What other parts take from a Config: the core's settings and the state directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from verlwatch.config import _stalls, _telling
from verlwatch.config._load import xdg
from verlwatch.config._problems import ConfigError, KeyPath, Place, problem
from verlwatch.config.models import Config
from verlwatch.core import settings as core
from verlwatch.core.settings import Settings
from verlwatch.fields import Model
from verlwatch.shell.own_lines import OwnLine, own_line
from verlwatch.shell.run_names import run_pattern

_GB = 1 << 30
NOTHING_TO_WATCH = "there is nothing to watch: name a run here, or give --log LOG"


def watched(config: Config) -> Config:
    """``config`` if it has a run to watch or agents that do; raises ConfigError if not, as an emptied file has not."""
    if not config.runs and not config.hub.agents:
        raise ConfigError([problem(Place("configuration"), ("runs",), NOTHING_TO_WATCH)])
    return config


def settings(config: Config) -> Settings:
    """What the core needs."""
    return Settings(
        receivers=tuple(receiver.name for receiver in config.receivers),
        false_alarms_per_month=config.detection.false_alarms,
        min_step_share=config.detection.min_step_share,
        accept_after_steps=config.detection.accept_after_steps,
        limits=config.detection.limits,
        metrics=config.detection.metrics,
        health=config.detection.health,
        card_groups=config.gpu.groups,
        patience=_stalls.patience(config.stalls),
        tells_finish=config.stalls.finished == "told",
        line_limit=config.reading.line_limit,
        link=(config.external_url or "").rstrip("/"),
        policy=_telling.policy(config.incidents),
        routes=tuple(core.Route(one.receivers, one.severity, one.rule, one.run) for one in config.routes),
        quiet_hours=tuple(map(_telling.parse_window, config.quiet_hours)),
        maintenance=tuple(_telling.maintenance(config.maintenance, timezone(config))),
        zone=_telling.offsets(timezone(config)) if config.quiet_hours or config.maintenance else (),
        runs=tuple(
            core.RunLimits(run_pattern(run.name), run.host_memory and run.host_memory / _GB, run.wall_limit)
            for run in config.runs
            if run.host_memory or run.wall_limit
        ),
    )


def timezone(config: Config) -> tzinfo | None:
    """In which times are written and shown; None for the host's."""
    return ZoneInfo(config.timezone) if config.timezone else None


def own_lines(config: Config) -> tuple[OwnLine, ...]:
    """The kinds of line that the user describes."""
    return tuple(own_line(line.name, line.contains, line.pattern, line.unit) for line in config.lines)


def secret_paths(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Where each secret is named, and by which SecretPath."""
    holders: list[tuple[KeyPath, Model]] = [(("http",), config.http), (("agent",), config.agent)]
    holders.append((("heartbeat",), config.heartbeat))
    holders += [(("hub", "agents", index), agent) for index, agent in enumerate(config.hub.agents)]
    holders += [(("receivers", index), receiver) for index, receiver in enumerate(config.receivers)]
    for path, holder in holders:
        yield from (((*path, key), value) for key, value in holder if key.endswith("_file") and value)


def state_dir(config: Config, env: Mapping[str, str] = os.environ) -> Path:
    """Where the database is: as configured, else systemd's directory, else XDG's.  Raises ConfigError without any."""
    if config.state_dir:
        return Path(config.state_dir)
    # systemd separates several StateDirectory= by colons.
    if systemd := env.get("STATE_DIRECTORY", "").split(":")[0]:
        return Path(systemd)
    if home := xdg(env, "XDG_STATE_HOME", ".local/state"):
        return home / "verlwatch"
    text = "there is no home directory ($HOME) to keep state in; set state_dir or give --state-dir"
    raise ConfigError([problem(Place("configuration"), ("state_dir",), text)])
