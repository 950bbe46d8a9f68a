"""What each path answers.  Every answer is made at once from the status: nothing here waits."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from verlwatch.shell.http import metrics, page
from verlwatch.shell.http._source import StatusSource
from verlwatch.shell.printable import encodable
from verlwatch.status import AgentStatus, IncidentStatus, SilenceStatus, Status

Parts = tuple[AgentStatus, ...] | tuple[IncidentStatus, ...] | tuple[SilenceStatus, ...]

_STYLE = Path(__file__).with_name("static") / "style.css"


def probes(source: StatusSource) -> Mapping[str, Callable[[], web.Response]]:
    """The answers to who has no token where one is needed: whether all is well, and what is not, in short."""

    def alive() -> web.Response:
        stalled = source.stalled()
        return _json({"alive": stalled is None, "stalled": stalled}, 200 if stalled is None else 503)

    def ready() -> web.Response:
        status = source.status()
        return _json({"ready": status.ready, "not_ready": _in_short(status)}, 200 if status.ready else 503)

    return {"/healthz": alive, "/-/healthy": alive, "/readyz": ready, "/-/ready": ready}


def _in_short(status: Status) -> list[str]:
    """What is not ready without paths, hosts and texts of errors: logs by run and number, of the rest its name."""
    blind = Counter(one.run for one in status.sources if not one.readable)
    watched = Counter(one.run for one in status.sources)
    logs = [f"run {run}: {count} of {watched[run]} logs cannot be read" for run, count in blind.items()]
    rest = (reason.partition(": ")[0] for reason in status.not_ready if not reason.startswith("source "))
    return [*logs, *dict.fromkeys(rest)]


def routes(source: StatusSource, zone: tzinfo | None) -> Mapping[str, Callable[[], web.Response]]:
    """The answer to each path, in full; times on the page are shown in ``zone`` (None: the host's)."""
    registry = metrics.registry(source)
    style = _STYLE.read_bytes()

    def ready() -> web.Response:
        status = source.status()
        return _json({"ready": status.ready, "not_ready": status.not_ready}, 200 if status.ready else 503)

    def exposition() -> web.Response:
        return web.Response(body=metrics.render(registry), headers={"Content-Type": metrics.CONTENT_TYPE})

    def shown() -> web.Response:
        return web.Response(text=page.render(source.status(), zone, source.stalled()), content_type="text/html")

    return {
        **probes(source),
        "/readyz": ready,
        "/-/ready": ready,
        "/api/v1/status": lambda: _json(source.status()),
        "/api/v1/agents": lambda: _json(source.status().agents),
        "/api/v1/incidents": lambda: _json(source.status().incidents),
        "/api/v1/silences": lambda: _json(source.status().silences),
        "/metrics": exposition,
        "/": shown,
        "/static/style.css": lambda: web.Response(body=style, content_type="text/css", charset="utf-8"),
    }


def _json(value: Status | Parts | dict[str, Any], status: int = 200) -> web.Response:
    try:
        body = orjson.dumps(value)
    except TypeError:  # a file name that is no UTF-8
        body = orjson.dumps(_encodable(value))
    return web.Response(status=status, body=body, content_type="application/json")


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encodable(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {key: _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(each) for each in value]
    return value
