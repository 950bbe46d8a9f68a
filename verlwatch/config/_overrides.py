"""Flags and environment variables over the file: flag > ``VERLWATCH_*`` > file > default.

Every setting that is a single value has both, by one rule: ``http.listen`` is ``--http-listen`` and
``VERLWATCH_HTTP_LISTEN``; the section ``logging`` is called ``log`` there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from verlwatch.config._load import validate
from verlwatch.config._problems import KeyPath, Place
from verlwatch.config.models import Config
from verlwatch.fields import Model

_LISTS = frozenset({
    *("runs", "lines", "receivers", "routes", "quiet_hours", "maintenance", "allowed_hosts", "agents"),
    *("limits", "metrics", "health", "urls", "groups"),
})  # fmt: skip

_OF_THE_RUN = {"name": "run_name", "from": "start", "pid": "pid", "slurm_job": "slurm_job", "wall_limit": "wall_limit"}
"""Keys of a run -> the flags that give them."""


def _single_values() -> Iterator[tuple[str, ...]]:
    for name, field in Config.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Model):
            yield from ((name, key) for key in section.model_fields if key not in _LISTS)
        elif name not in _LISTS:
            yield (name,)


OVERRIDES: Mapping[str, tuple[str, ...]] = {
    "_".join(path).replace("logging_", "log_"): path for path in _single_values()
}
"""Name of the override (``http_listen``) -> where it belongs (``("http", "listen")``)."""


def variable(name: str) -> str:
    """The environment variable of an override."""
    return f"VERLWATCH_{name.upper()}"


def flag(name: str) -> str:
    """The command line flag of an override."""
    return f"--{name.replace('_', '-')}"


def apply(config: Config, env: Mapping[str, str], flags: Mapping[str, Any]) -> Config:
    """``config`` with what the environment and the command line say instead; raises ConfigError.

    ``flags`` holds texts under the names in OVERRIDES (None or absent: not given; others are ignored), and:
    ``log`` a list of paths, which together are the only run, called ``run_name`` and read from ``start``, with ``pid``,
    ``slurm_job`` and ``wall_limit``;
    ``slack_webhook_file`` and ``webhook_url``, which replace all receivers and routes.  An empty variable is unset.
    """
    value = config.model_dump(exclude_unset=True, by_alias=True)
    sources: dict[KeyPath, str] = {}
    for name, path in OVERRIDES.items():
        for source, given in ((variable(name), env.get(variable(name)) or None), (flag(name), flags.get(name))):
            if given is not None:
                _put(value, path, given)
                sources[path] = source
    if logs := flags.get("log"):
        given = {key: flags.get(name) for key, name in _OF_THE_RUN.items()}
        value["runs"] = [{"logs": list(logs)} | given]
        sources[("runs",)] = "--log"
        sources |= {("runs", 0, key): "--run-name" if key == "name" else flag(key) for key in given}
    if receivers := list(_receivers(flags)):
        value["receivers"] = [receiver for _, receiver in receivers]
        value.pop("routes", None)
        sources |= {("receivers", index): source for index, (source, _) in enumerate(receivers)}

    def locate(path: KeyPath, *, key: bool = False) -> Place:  # noqa: ARG001  # a flag has no place of its key
        while path and path not in sources:
            path = path[:-1]
        return Place(sources.get(path, "configuration"))

    return validate(value, None, locate)


def _put(value: dict[str, Any], path: tuple[str, ...], given: Any) -> None:
    *sections, key = path
    for section in sections:
        value = value.setdefault(section, {})
    value[key] = given


def _receivers(flags: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if file := flags.get("slack_webhook_file"):
        yield "--slack-webhook-file", {"name": "slack", "type": "slack", "webhook_url_file": file}
    if url := flags.get("webhook_url"):
        yield "--webhook-url", {"name": "webhook", "type": "webhook", "url": url}
