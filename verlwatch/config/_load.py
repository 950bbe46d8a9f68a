"""From a file to a Config; whatever is wrong is told all at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from verlwatch.config._fleet import HubAgent
from verlwatch.config._own import OwnLine
from verlwatch.config._problems import ConfigError, KeyPath, Locate, Problem, from_validation, problem
from verlwatch.config._telling import Maintenance, Route, is_weekly, parse_span, parse_zone
from verlwatch.config._yaml import Document, read
from verlwatch.config.models import Config, Run, run_name
from verlwatch.shell.notifiers import NOTIFIERS
from verlwatch.shell.printable import shortened

_FILE = "verlwatch.yaml"


def find(env: Mapping[str, str] = os.environ) -> Path | None:
    """The configuration to use where none is named, or None.

    ``$VERLWATCH_CONFIG`` even if it does not exist; else the first that does of ``./verlwatch.yaml``,
    ``$XDG_CONFIG_HOME/verlwatch/verlwatch.yaml`` (``~/.config``) and ``/etc/verlwatch/verlwatch.yaml``.
    """
    if named := env.get("VERLWATCH_CONFIG"):
        return Path(named)
    home = xdg(env, "XDG_CONFIG_HOME", ".config")
    folders = [Path(), *([home / "verlwatch"] if home else []), Path("/etc/verlwatch")]
    return next((folder / _FILE for folder in folders if os.path.lexists(folder / _FILE)), None)


def xdg(env: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """A base directory of the XDG specification, which ignores relative ones; None without a home directory."""
    named, home = Path(env.get(variable, "")), Path(env.get("HOME", ""))
    if named.is_absolute():
        return named
    return home / below_home if home.is_absolute() else None


def load(path: Path) -> Config:
    """The configuration in a file.  Raises ConfigError with all problems at once."""
    return parse(read(path))


def parse(document: Document) -> Config:
    """The configuration in a YAML file that was read; an empty file is the default configuration."""
    value = {} if document.value is None else document.value
    folder = Path(document.file).absolute().parent
    return validate(value, folder, document.locate, document.problems)


def validate(value: Any, folder: Path | None, locate: Locate, problems: Iterable[Problem] = ()) -> Config:
    """``value`` as a Config, relative paths starting at ``folder``.  ``problems`` are those already known of it."""
    found = [
        *problems,
        *(problem(locate(path), path, text) for path, text in (*_repeated(value), *_unknown(value), *_untimely(value))),
    ]
    try:
        config = Config.model_validate(value, context={"folder": folder})
    except ValidationError as error:
        raise ConfigError([*found, *from_validation(error, locate, lambda path: _keys_at(path, value))]) from None
    if found:
        raise ConfigError(found)
    return config


def _keys_at(path: KeyPath, value: Any) -> Iterable[str]:
    """What keys the mapping at ``path`` may have."""
    model: Any = None
    match path:
        case ():
            model = Config
        case ("runs", int()):
            model = Run
        case ("lines", int()):
            model = OwnLine
        case ("receivers", int(index)):
            kinds = {notifier.TYPE: notifier.Config for notifier in NOTIFIERS}
            model = kinds.get(value["receivers"][index]["type"])
        case ("routes", int()):
            model = Route
        case ("maintenance", int()):
            model = Maintenance
        case ("hub", "agents", int()):
            model = HubAgent
        case (str(section),):
            model = Config.model_fields[section].annotation
    return model.by_key() if model else ()


def _repeated(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Names and logs that occur twice, found in the raw value so that they are told beside all other problems."""
    for section in (("runs",), ("lines",), ("receivers",), ("hub", "agents")):
        seen: dict[str, int] = {}
        for index, entry in _entries(value, *section):
            name = entry.get("name") or next((run_name(log) for _, log in _logs(entry)), "")
            if not isinstance(name, str):
                continue
            first = seen.setdefault(name, index)
            if name and first != index:
                where = f"{'.'.join(section)}[{first}]"
                yield (*section, index, "name"), f"{shortened(name)} is already the name of {where}; give each its own"
    logs: dict[str, int] = {}
    for index, entry in _entries(value, "runs"):
        for place, log in _logs(entry):
            if log in logs:
                yield ("runs", index, "logs", place), f"is already a log of runs[{logs[log]}]; name it once"
            logs.setdefault(log, index)


def _unknown(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Receivers that a route names and nobody is."""
    known = [str(receiver.get("name")) for _, receiver in _entries(value, "receivers")]
    for index, route in _entries(value, "routes"):
        named = route.get("receivers")
        for place, name in enumerate(named if isinstance(named, list | tuple) else ()):
            if str(name) not in known:
                among = f"; the receivers are {', '.join(known)}" if known else "; there are none"
                yield ("routes", index, "receivers", place), f"{shortened(str(name))} is the name of no receiver{among}"


def _untimely(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Maintenances at times that the zone in force does not have; what is wrong in every zone is told elsewhere."""
    for index, entry in _entries(value, "maintenance"):
        when, zone = entry.get("when"), value.get("timezone")
        if not isinstance(when, str) or is_weekly(when):
            continue
        with suppress(ValueError):
            tz = ZoneInfo(parse_zone(zone)) if isinstance(zone, str) else None
            parse_span(when)
            try:
                parse_span(when, tz)
            except ValueError as error:
                yield ("maintenance", index, "when"), str(error)


def _entries(value: Any, *path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, list | tuple):
        yield from ((index, entry) for index, entry in enumerate(value) if isinstance(entry, dict))


def _logs(run: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    logs = run.get("logs")
    if isinstance(logs, list | tuple):
        yield from ((index, log) for index, log in enumerate(logs) if log and isinstance(log, str))
