"""A receiver of the generic webhook that verifies what docs/WEBHOOK.md tells receivers to verify."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tests.fakes._server import Answer, ScriptedServer
from tests.fakes.json_schema import violations

if TYPE_CHECKING:
    from aiohttp import web

KEY = "canary-hmac-key-9d2f"
SCHEMA: dict[str, Any] = json.loads(
    files("verlwatch.shell.notifiers").joinpath("webhook.schema.json").read_text(encoding="utf-8")
)


class FakeWebhook(ScriptedServer):
    """``received`` holds (id, body) of every request it took, repeated ones too."""

    path = "/hook/canary-path-5c1e"

    def __init__(self, *script: Answer, key: str | None = KEY, **kwargs: Any) -> None:
        super().__init__(*script, **kwargs)
        self.received: list[tuple[str, dict[str, Any]]] = []
        self._key = key

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        """204 for a genuine, fresh and valid request."""
        if request.method != "POST" or request.content_type != "application/json":
            return Answer(415)
        if not self._is_genuine(request, body):
            return Answer(401)
        payload = json.loads(body)
        if violations(payload, SCHEMA) or request.headers["X-Verlwatch-Id"] != payload["dedup_key"]:
            return Answer(422)
        self.received.append((request.headers["X-Verlwatch-Id"], payload))
        return Answer(204)

    def _is_genuine(self, request: web.Request, body: bytes) -> bool:
        timestamp = request.headers["X-Verlwatch-Timestamp"]
        given = request.headers.get("X-Verlwatch-Signature")
        if self._key is None:
            return given is None
        expected = hmac.new(self._key.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
        fresh = abs(time.time() - int(timestamp)) < 300
        return fresh and hmac.compare_digest(f"sha256={expected}", given or "")
