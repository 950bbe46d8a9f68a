"""Beyond the syntax: can what the configuration names be used, by this user, on this host, now?"""

from __future__ import annotations

import glob
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from verlwatch.config._load import parse
from verlwatch.config._overrides import OVERRIDES, apply, variable
from verlwatch.config._problems import ConfigError, KeyPath, Place, Problem, Severity, meant, problem
from verlwatch.config._settings import NOTHING_TO_WATCH, secret_paths, state_dir
from verlwatch.config._yaml import read
from verlwatch.fields import CREDENTIAL, SecretError, open_to_others, parse_url, read_secret
from verlwatch.shell._ray import Sessions
from verlwatch.shell.state_dir import network_file_system

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verlwatch.config.models import Config

    Finding = tuple[KeyPath, str, Severity]


def check(path: Path, env: Mapping[str, str] = os.environ) -> list[Problem]:
    """All problems of the file and of what it names, in the file's order; nothing is created, nobody is told.

    Errors keep the daemon from starting or a receiver from being told; warnings do not.
    """
    try:
        document = read(path)
        config = apply(parse(document), env, {})
    except ConfigError as error:
        return list(error.problems)
    found = [
        problem(document.locate(at), at, text, severity)
        for at, text, severity in (*_secrets(config, env), *_logs(config), *_absent(config), *_state(config, env))
    ]
    found.sort(key=lambda item: (item.line, item.column))
    return [*found, *_variables(env)]


def _secrets(config: Config, env: Mapping[str, str]) -> Iterator[Finding]:
    for at, path in secret_paths(config):
        yield from ((at, text, severity) for text, severity in _secret(str(at[-1]), path, env))


def _secret(key: str, path: str, env: Mapping[str, str]) -> Iterator[tuple[str, Severity]]:
    if path.startswith(CREDENTIAL) and not env.get("CREDENTIALS_DIRECTORY"):
        yield f"{path} can only be read when systemd starts the service", "warning"
        return
    try:
        secret = read_secret(path, env)
    except SecretError as error:
        yield str(error), "error"
        return
    if key.endswith("url_file"):
        try:
            parse_url(secret.reveal())
        except ValueError as error:
            yield f"the content of {path} {error}", "error"
    if (text := open_to_others(path)) is not None:
        yield text, "warning"


def _logs(config: Config) -> Iterator[Finding]:
    for index, run in enumerate(config.runs):
        for place, log in enumerate(run.logs):
            if text := _log(log):
                yield ("runs", index, "logs", place), text, "warning"


def _log(log: str) -> str | None:
    """Never an error: one log that cannot be read keeps nobody from watching the others."""
    if glob.has_magic(log) and not os.path.lexists(log):
        matches = next(glob.iglob(log, recursive=True), None)  # noqa: PTH207  # pathlib cannot match absolute patterns
        return None if matches else f"{log} matches no file yet; verlwatch will wait for one"
    sessions = Sessions()
    if session := sessions.find(log):
        nothing = f"{log} names no training of a Ray session yet; verlwatch will wait for one"
        return None if sessions.files(session) else nothing
    try:
        mode = Path(log).stat().st_mode
    except FileNotFoundError:
        return f"{log} does not exist yet; verlwatch will wait for it"
    except OSError as error:
        return f"{log} cannot be looked at ({(error.strerror or 'error').lower()}); check the path and its permissions"
    if stat.S_ISDIR(mode):
        return f"{log} is a folder and no Ray session; name its files, for example {log}/*.log"
    if not stat.S_ISREG(mode):
        return f"{log} is no regular file and will not be read; name a file"
    return (
        None
        if os.access(log, os.R_OK, effective_ids=True)
        else f"{log} is not readable by this user; give it read permission"
    )


def _absent(config: Config) -> Iterator[Finding]:
    if not config.runs and not config.hub.agents:
        yield ("runs",), NOTHING_TO_WATCH, "error"
    if not config.receivers and not config.agent.hub:
        yield ("receivers",), "is empty: nobody is told; add a receiver", "warning"


def _state(config: Config, env: Mapping[str, str]) -> Iterator[Finding]:
    try:
        folder = existing = state_dir(config, env)
    except ConfigError as error:
        yield ("state_dir",), error.problems[0].text, "error"
        return
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        yield ("state_dir",), f"{existing} is no folder; name one, or remove what is there", "error"
    elif not os.access(existing, os.W_OK | os.X_OK, effective_ids=True):
        remedy = "give it write permission, or set another state_dir"
        yield ("state_dir",), f"{folder} cannot be written by this user ({existing}); {remedy}", "error"
    elif network := network_file_system(folder):
        remedy = f"set a local one, for example /var/tmp/verlwatch-{os.getuid()}"
        yield (
            ("state_dir",),
            f"{folder} is on a network file system ({network}), where SQLite is not safe; {remedy}",
            "error",
        )


def _variables(env: Mapping[str, str]) -> Iterator[Problem]:
    """Close misspellings only: Kubernetes sets VERLWATCH_* variables of its own for a service of that name."""
    known = {variable(name) for name in OVERRIDES} | {"VERLWATCH_CONFIG"}
    for name in sorted(env):
        if name.startswith("VERLWATCH_") and name not in known and (close := meant(name, known, 0.9)):
            yield problem(Place("environment"), (name,), f"is no setting; did you mean {close}?", "warning")
