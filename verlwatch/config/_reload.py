"""What changes between two configurations, and what of it a running daemon can take up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verlwatch.config.models import Config, Run
from verlwatch.fields import ReceiverConfig

_RESTART = ("state_dir", "http", "logging", "agent")
"""The database is open, the socket bound, the log set up, and who it is that ships or judges."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Names that were added, removed, or have other settings under the same name."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True)
class Reload:
    """The difference between two configurations.

    ``live`` and ``restart`` name settings by their path (``reading.poll_interval``); those in ``restart`` keep their
    old value until the daemon restarts.  The content of secret files is not looked at: read them again on any reload.
    """

    runs: Delta = Delta()
    receivers: Delta = Delta()
    live: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.runs or self.receivers or self.live or self.restart)


def changes(old: Config, new: Config) -> Reload:
    """What is different in ``new``."""
    paths = list(_differing(old, new))
    kept = _kept(old, new)
    restart = tuple(path for path in paths if path.split(".")[0] in kept)
    return Reload(
        runs=_delta(old.runs, new.runs),
        receivers=_delta(old.receivers, new.receivers),
        live=tuple(path for path in paths if path not in restart),
        restart=restart,
    )


def in_force(old: Config, new: Config) -> Config:
    """``new`` as far as a running daemon takes it up: what needs a restart stays as in ``old``."""
    return new.model_copy(update={name: getattr(old, name) for name in _kept(old, new)})


def _kept(old: Config, new: Config) -> tuple[str, ...]:
    """The sections that keep their values until a restart: agents come and go, being a hub does not."""
    return (*_RESTART, "hub") if bool(old.hub.agents) != bool(new.hub.agents) else _RESTART


def _delta(old: Sequence[Run] | Sequence[ReceiverConfig], new: Sequence[Run] | Sequence[ReceiverConfig]) -> Delta:
    before, after = ({item.name: item for item in items} for items in (old, new))
    return Delta(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name, item in after.items() if name in before and item != before[name]),
    )


def _differing(old: Config, new: Config) -> Iterator[str]:
    before, after = _flat(old.model_dump()), _flat(new.model_dump())
    return (path for path, value in after.items() if value != before[path])


def _flat(dump: dict[str, Any]) -> dict[str, Any]:
    """Every setting but the two lists under its path."""
    flat: dict[str, Any] = {}
    for name, value in dump.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        elif name not in {"runs", "receivers"}:
            flat[name] = value
    return flat
