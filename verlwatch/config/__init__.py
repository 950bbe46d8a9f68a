"""The configuration: a YAML file, environment variables and flags become one validated, immutable Config.

Reading: ``find`` → ``load`` → ``apply`` (flag > ``VERLWATCH_*`` > file > default). Everything wrong is told at once,
each with ``file:line:column`` and what to do.  docs/CONFIG.md describes every setting.
"""

from __future__ import annotations

from typing import Any

from verlwatch.config._check import check
from verlwatch.config._load import find, load
from verlwatch.config._overrides import OVERRIDES, apply, flag, variable
from verlwatch.config._own import OwnLine
from verlwatch.config._problems import ConfigError, Problem
from verlwatch.config._reload import Delta, Reload, changes, in_force
from verlwatch.config._settings import own_lines, secret_paths, settings, state_dir, watched
from verlwatch.config.models import Address, Config, Run

__all__ = [
    "OVERRIDES",
    "Address",
    "Config",
    "ConfigError",
    "Delta",
    "OwnLine",
    "Problem",
    "Reload",
    "Run",
    "apply",
    "changes",
    "check",
    "find",
    "flag",
    "in_force",
    "json_schema",
    "load",
    "own_lines",
    "secret_paths",
    "settings",
    "state_dir",
    "variable",
    "watched",
]


def json_schema() -> dict[str, Any]:
    """The JSON schema of the file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}
