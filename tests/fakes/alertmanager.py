"""Alertmanager's POST /api/v2/alerts, as strict as its own validation (api/v2/openapi.yaml, types.Alert.Validate)."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.fakes._server import Answer, ScriptedServer

if TYPE_CHECKING:
    from aiohttp import web

TOKEN = "canary-bearer-token-81fa"
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_KEYS = {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}


class FakeAlertmanager(ScriptedServer):
    """``received`` holds the alerts of each request that it took."""

    path = "/prefix"

    def __init__(self, *script: Answer, token: str | None = None, **kwargs: Any) -> None:
        super().__init__(*script, **kwargs)
        self.received: list[list[dict[str, Any]]] = []
        self._token = token

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        """200 for alerts that are valid."""
        if request.method != "POST" or request.path != f"{self.path}/api/v2/alerts":
            return Answer(404)
        if self._token is not None and request.headers.get("Authorization") != f"Bearer {self._token}":
            return Answer(401)
        if request.content_type != "application/json":
            return Answer(415)
        alerts = json.loads(body)
        if not alerts or any(violations(alert) for alert in alerts):
            return Answer(400, json.dumps("invalid"))
        self.received.append(alerts)
        return Answer(200)


def violations(alert: dict[str, Any]) -> list[str]:
    """Why Alertmanager would refuse an alert; names that it does not know count as well."""
    found = [f"unknown {name}" for name in alert.keys() - _KEYS]
    if not any(alert["labels"].values()):
        found.append("no label")
    for name, value in (*alert["labels"].items(), *alert.get("annotations", {}).items()):
        found += [] if _NAME.fullmatch(name) and isinstance(value, str) else [f"name {name}"]
    times = {key: datetime.fromisoformat(alert[key]) for key in ("startsAt", "endsAt") if key in alert}
    if any(time.utcoffset() is None for time in times.values()):
        found.append("no offset")
    if len(times) == 2 and times["endsAt"] < times["startsAt"]:
        found.append("start time must be before end time")
    return found
