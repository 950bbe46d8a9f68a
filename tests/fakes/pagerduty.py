"""PagerDuty's Events API v2, as strict as its documentation (developer.pagerduty.com: events-API-v2)."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.fakes._limits import Limit
from tests.fakes._server import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

ROUTING_KEY = "canary00000000000000000000000000"
BODY = 512 * 1024
_EVENT = {"routing_key", "event_action", "dedup_key", "payload", "images", "links", "client", "client_url"}
_PAYLOAD = {"summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"}


class FakePagerDuty(ScriptedServer):
    """``events`` holds all that was taken, ``alerts`` how the alert of each key stands."""

    path = "/v2/enqueue"

    def __init__(self, *script: Answer, now: Callable[[], float] = time.time, **kwargs: Any) -> None:
        super().__init__(*script, **kwargs)
        self.events: list[dict[str, Any]] = []
        self.alerts: dict[str, str] = {}
        self.opened = 0
        self.limited = 0
        self._limit = Limit(120, 60.0, now)

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        """202 for what is well formed; a closed alert that is triggered again is a new one."""
        if request.path != self.path or request.method != "POST":
            return Answer(404)
        if self._limit.exceeded():
            self.limited += 1
            return Answer(429, json.dumps({"status": "throttle exceeded", "message": "Requests for this service ..."}))
        event = json.loads(body)
        found = problems(event)
        if found or len(body) > BODY:
            answer = {"status": "invalid event", "message": "Event object is invalid", "errors": found}
            return Answer(400, json.dumps(answer))
        self.events.append(event)
        key = event["dedup_key"]
        if event["event_action"] == "trigger":
            self.opened += self.alerts.get(key) != "triggered"
            self.alerts[key] = "triggered"
        elif key in self.alerts:
            self.alerts[key] = "resolved"
        return Answer(202, json.dumps({"status": "success", "message": "Event processed", "dedup_key": key}))


def problems(event: dict[str, Any]) -> list[str]:
    """What PagerDuty would refuse."""
    found = [f"unknown {key}" for key in event.keys() - _EVENT]
    found += [] if event.get("routing_key") == ROUTING_KEY else ["'routing_key' is invalid"]
    found += [] if event.get("event_action") in {"trigger", "resolve"} else ["event_action"]
    found += [] if 0 < len(event.get("dedup_key", "")) <= 255 else ["dedup_key"]
    payload = event.get("payload", {})
    found += [f"unknown payload.{key}" for key in payload.keys() - _PAYLOAD]
    found += [] if 0 < len(payload.get("summary", "")) <= 1024 else ["payload.summary"]
    found += [] if payload.get("source") else ["payload.source"]
    found += [] if payload.get("severity") in {"critical", "error", "warning", "info"} else ["payload.severity"]
    found += [] if datetime.fromisoformat(payload["timestamp"]).utcoffset() is not None else ["payload.timestamp"]
    found += [] if isinstance(payload.get("custom_details"), dict) else ["payload.custom_details"]
    links = [link["href"] for link in event.get("links", [])]
    return found + ["links" for link in links if not link.startswith(("http://", "https://"))]
