"""What each path answers.  Every answer is made at once from the status: nothing here waits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from verlwatch.shell.http import metrics, page
from verlwatch.shell.http._source import StatusSource
from verlwatch.shell.printable import encodable
from verlwatch.status import Status

_STYLE = Path(__file__).with_name("static") / "style.css"


def routes(source: StatusSource, zone: tzinfo | None) -> Mapping[str, Callable[[], web.Response]]:
    """The answer to each path; times on the page are shown in ``zone`` (None: the host's)."""
    registry = metrics.registry(source)
    style = _STYLE.read_bytes()

    def alive() -> web.Response:
        stalled = source.stalled()
        return _json({"alive": stalled is None, "stalled": stalled}, 200 if stalled is None else 503)

    def ready() -> web.Response:
        status = source.status()
        return _json({"ready": status.ready, "not_ready": status.not_ready}, 200 if status.ready else 503)

    def exposition() -> web.Response:
        return web.Response(body=metrics.render(registry), headers={"Content-Type": metrics.CONTENT_TYPE})

    def shown() -> web.Response:
        return web.Response(text=page.render(source.status(), zone, source.stalled()), content_type="text/html")

    return {
        "/healthz": alive,
        "/-/healthy": alive,
        "/readyz": ready,
        "/-/ready": ready,
        "/api/v1/status": lambda: _json(source.status()),
        "/metrics": exposition,
        "/": shown,
        "/static/style.css": lambda: web.Response(body=style, content_type="text/css", charset="utf-8"),
    }


def _json(value: Status | dict[str, Any], status: int = 200) -> web.Response:
    try:
        body = orjson.dumps(value)
    except TypeError:  # a file name that is no UTF-8
        body = orjson.dumps(_encodable(value if isinstance(value, dict) else dataclasses.asdict(value)))
    return web.Response(status=status, body=body, content_type="application/json")


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {key: _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(each) for each in value]
    return value
