"""Slack's Web API for one bot in one channel, as strict as its documentation (docs.slack.dev: the methods' pages)."""

from __future__ import annotations

import json
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from tests.fakes._server import Answer, ScriptedServer
from tests.fakes.slack import problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

TOKEN = "xoxb-17653672481-CanaryCanaryCanary43"
CHANNEL, NAME = "C024BE91L", "training"
_CONTENT = {"channel", "text", "blocks", "metadata"}
_METADATA = 8 * 1024


@dataclass
class Shown:
    """A message in the channel: what it was posted as and edited to, what stands in its thread."""

    versions: list[dict[str, Any]]
    replies: list[dict[str, Any]] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)


class FakeSlackBot(ScriptedServer):
    """``messages`` is what the channel shows, oldest first; ``faults`` answers the next calls of a method.

    ``broken`` has the faults answer after the call was carried out, as where an answer is lost on its way.
    """

    path = "/api"

    def __init__(self, *, pace_s: float = 0.0, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.messages: dict[str, Shown] = {}
        self.faults: dict[str, deque[Answer]] = defaultdict(deque)
        self.broken: dict[str, deque[Answer]] = defaultdict(deque)
        self.calls: list[str] = []
        self._pace_s = pace_s
        self._now = now
        self._posted_at = float("-inf")
        self._uploads: dict[str, tuple[int, bytes | None]] = {}

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        """Slack's own order: the method, the token, the arguments."""
        if request.method != "POST":
            return Answer(404)
        method = request.path.removeprefix(f"{self.path}/")
        if request.path.startswith("/upload/"):
            return self._upload(request, body)
        self.calls.append(method)
        if self.faults[method]:
            return self.faults[method].popleft()
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return no("invalid_auth" if "Authorization" in request.headers else "not_authed")
        act = {
            "chat.postMessage": self._post_message,
            "chat.update": self._update,
            "files.getUploadURLExternal": self._upload_url,
            "files.completeUploadExternal": self._complete,
        }.get(method)
        if act is None:
            return no("unknown_method")
        form = method == "files.getUploadURLExternal"
        if request.content_type != ("application/x-www-form-urlencoded" if form else "application/json"):
            return no("invalid_form_data" if form else "missing_post_type")
        if not form and request.charset != "utf-8":
            return no("missing_charset")
        arguments = {name: value[0] for name, value in parse_qs(body.decode()).items()} if form else json.loads(body)
        answer = act(arguments)
        return self.broken[method].popleft() if self.broken[method] else answer

    # ------------------------------------------------------------------------------------------------ chat
    def _post_message(self, arguments: dict[str, Any]) -> Answer:
        known = {*_CONTENT, "thread_ts", "reply_broadcast", "unfurl_links", "unfurl_media"}
        if found := self._wrong(arguments, known, {CHANNEL, NAME, f"#{NAME}"}):
            return found
        if self._now() - self._posted_at < self._pace_s:
            return Answer(429, '{"ok":false,"error":"ratelimited"}', {"Retry-After": "1"})
        self._posted_at = self._now()
        thread = arguments.get("thread_ts")
        ts = f"17653672{len(self.calls):02}.{len(self.messages):06}"
        if thread is None:
            if arguments.get("reply_broadcast"):
                return no("invalid_arguments")
            self.messages[ts] = Shown([arguments])
        elif thread in self.messages:
            self.messages[thread].replies.append(arguments)
        else:
            return no("thread_not_found")
        return yes(channel=CHANNEL, ts=ts, message={})

    def _update(self, arguments: dict[str, Any]) -> Answer:
        if found := self._wrong(arguments, {*_CONTENT, "ts"}, {CHANNEL}):
            return found
        if arguments["ts"] not in self.messages:
            return no("message_not_found")
        self.messages[arguments["ts"]].versions.append(arguments)
        return yes(channel=CHANNEL, ts=arguments["ts"], text=arguments["text"])

    def _wrong(self, arguments: dict[str, Any], known: set[str], channels: set[str]) -> Answer | None:
        if arguments.keys() - known:
            return no("invalid_arguments")
        if arguments["channel"] not in channels:
            return no("channel_not_found")
        if problems(arguments):
            return no("invalid_blocks")
        mark = arguments["metadata"]
        is_formed = mark.keys() == {"event_type", "event_payload"} and isinstance(mark["event_payload"], dict)
        if not is_formed or len(json.dumps(mark)) > _METADATA:
            return no("invalid_metadata_format")
        return None

    # ------------------------------------------------------------------------------------------------ files
    def _upload_url(self, arguments: dict[str, Any]) -> Answer:
        if arguments.keys() - {"filename", "length", "alt_txt"} or not arguments.get("filename"):
            return no("invalid_arguments")
        if len(arguments.get("alt_txt", "")) > 1000:
            return no("alt_txt_too_large")
        file_id = f"F{len(self._uploads):08}"
        self._uploads[file_id] = (int(arguments["length"]), None)
        base = self.url.removesuffix(self.path)
        return yes(upload_url=f"{base}/upload/v1/{file_id}", file_id=file_id)

    def _upload(self, request: web.Request, body: bytes) -> Answer:
        file_id = request.path.rpartition("/")[2]
        self.calls.append("upload")
        if self.faults["upload"]:
            return self.faults["upload"].popleft()
        if "Authorization" in request.headers or self._uploads.get(file_id) != (len(body), None):
            return Answer(400, "malformed")
        self._uploads[file_id] = (len(body), body)
        return Answer(200, f"OK - {len(body)}")

    def _complete(self, arguments: dict[str, Any]) -> Answer:
        if arguments.keys() - {"files", "channel_id", "thread_ts"} or arguments["channel_id"] != CHANNEL:
            return no("channel_not_found")
        for file in arguments["files"]:
            _, data = self._uploads.get(file["id"], (0, None))
            if data is None or file.keys() != {"id", "title"}:
                return no("file_not_found")
            if arguments["thread_ts"] not in self.messages:
                return no("invalid_arguments")
            self.messages[arguments["thread_ts"]].files.append(data)
        return yes(files=arguments["files"])


def yes(**answer: Any) -> Answer:
    """Slack's yes."""
    return Answer(200, json.dumps({"ok": True, **answer}))


def no(word: str) -> Answer:
    """Slack's no, which comes with status 200."""
    return Answer(200, json.dumps({"ok": False, "error": word}))


def key_of(arguments: dict[str, Any]) -> str:
    """The id of the notification that a message shows."""
    return str(arguments["metadata"]["event_payload"]["id"])
