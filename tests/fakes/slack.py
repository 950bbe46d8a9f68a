"""Slack's incoming webhook, as strict as its documentation (docs.slack.dev: incoming webhooks, Block Kit reference)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.fakes._server import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiohttp import web

TOKEN = "T00000000/B00000000/CanaryCanaryCanary42"
BLOCKS = 50
TEXT = 40_000
SECTION = 3000
HEADER = 150
FIELD = 2000
FIELDS = 10
CONTEXT_ELEMENTS = 10
BLOCK_ID = 255
_KEYS = {"text", "blocks", "attachments", "unfurl_links", "unfurl_media", "response_type", "thread_ts", "mrkdwn"}
_LEGAL_MARKUP = re.compile(r"<!date\^\d+\^[^|<>]+\|[^<>]+>|<https?://[^|<>\s]+\|[^<>]+>")
_BARE_AMPERSAND = re.compile(r"&(?!amp;|lt;|gt;)")


class FakeSlack(ScriptedServer):
    """``received`` holds the payloads that a channel would show."""

    path = f"/services/{TOKEN}"

    def __init__(self, *script: Answer, **kwargs: Any) -> None:
        super().__init__(*script, **kwargs)
        self.received: list[dict[str, Any]] = []

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        """Slack's own order: the hook, the method, the form, the content."""
        if request.path != self.path:
            return Answer(404, "no_service")
        if request.method != "POST" or request.content_type != "application/json":
            return Answer(400, "invalid_payload")
        try:
            payload = json.loads(body)
        except ValueError:
            return Answer(400, "invalid_payload")
        if not isinstance(payload, dict) or payload.keys() - _KEYS:
            return Answer(400, "invalid_payload")
        if not payload.get("text"):
            return Answer(400, "no_text")
        if problems(payload):
            return Answer(400, "invalid_blocks")
        self.received.append(payload)
        return Answer(200, "ok")


def length(text: str) -> int:
    """Characters as a JavaScript program counts them: what is outside the basic plane counts double."""
    return len(text.encode("utf-16-le")) // 2


def problems(payload: dict[str, Any]) -> list[str]:
    """What Slack would refuse or, worse, take for markup."""
    found = [] if 0 < length(payload.get("text", "")) <= TEXT else ["text"]
    blocks = payload.get("blocks", [])
    if not 0 < len(blocks) <= BLOCKS:
        found.append("number of blocks")
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    if len(set(ids)) != len(ids) or any(not 0 < length(each) <= BLOCK_ID for each in ids):
        found.append("block_id")
    for block in blocks:
        check = _CHECKS.get(block.get("type"))
        found += [f"{block.get('type')}: {what}" for what in check(block)] if check else [f"type {block.get('type')}"]
    found += [f"markup in {text!r}" for text in texts(payload) if not _is_escaped(text)]
    return found


def texts(payload: dict[str, Any]) -> Iterator[str]:
    """Every text that Slack shows."""
    yield payload.get("text", "")
    for block in payload.get("blocks", []):
        for element in (block.get("text"), *block.get("fields", ()), *block.get("elements", ())):
            if element:
                yield element["text"]


def _is_escaped(text: str) -> bool:
    """``&``, ``<`` and ``>`` must be written as entities, except in a date or a link that the sender made itself."""
    rest = _LEGAL_MARKUP.sub("", text)
    return "<" not in rest and ">" not in rest and not _BARE_AMPERSAND.search(rest)


def _object(element: Any, limit: int, kinds: set[str]) -> list[str]:
    if not isinstance(element, dict) or element.get("type") not in kinds or not isinstance(element.get("text"), str):
        return ["no text object"]
    allowed = {"type", "text", "emoji"} if element["type"] == "plain_text" else {"type", "text", "verbatim"}
    unknown = [f"unknown {key}" for key in element.keys() - allowed]
    return unknown + ([] if 0 < length(element["text"]) <= limit else [f"length {length(element['text'])}"])


def _header(block: dict[str, Any]) -> list[str]:
    return _unknown(block, "text") + _object(block.get("text"), HEADER, {"plain_text"})


def _section(block: dict[str, Any]) -> list[str]:
    found = _unknown(block, "text", "fields")
    fields = block.get("fields", [])
    if "text" in block:
        found += _object(block["text"], SECTION, {"plain_text", "mrkdwn"})
    elif not fields:
        found.append("neither text nor fields")
    if len(fields) > FIELDS:
        found.append("number of fields")
    return found + [what for field in fields for what in _object(field, FIELD, {"plain_text", "mrkdwn"})]


def _context(block: dict[str, Any]) -> list[str]:
    elements = block.get("elements", [])
    found = _unknown(block, "elements")
    if not 0 < len(elements) <= CONTEXT_ELEMENTS:
        found.append("number of elements")
    return found + [what for each in elements for what in _object(each, SECTION, {"plain_text", "mrkdwn"})]


def _unknown(block: dict[str, Any], *known: str) -> list[str]:
    return [f"unknown {key}" for key in block.keys() - {"type", "block_id", *known}]


_CHECKS: dict[Any, Callable[[dict[str, Any]], list[str]]] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "divider": _unknown,
}
