"""WeCom's group robot, as strict as its documentation (developer.work.weixin.qq.com: 群机器人配置说明)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from typing import TYPE_CHECKING, Any

from tests.fakes._limits import Limit, foreign_markup
from tests.fakes._server import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

KEY = "canary00-wecom-0000-key"
MARKDOWN = 4096
IMAGE = 2 * 1024 * 1024
PAGES = {"status page", "状态页"}
_FONT = re.compile(r'<font color="(?:info|comment|warning)">([^<>]*)</font>')


def refusal(code: int, text: str) -> Answer:
    return Answer(200, json.dumps({"errcode": code, "errmsg": f"{text}, hint: [1], more info at https://open.work"}))


class FakeWeCom(ScriptedServer):
    """``received`` holds what a group would show, images among it."""

    path = f"/cgi-bin/webhook/send?key={KEY}"

    def __init__(self, *script: Answer, now: Callable[[], float] = time.time, **kwargs: Any) -> None:
        super().__init__(*script, **kwargs)
        self.received: list[dict[str, Any]] = []
        self.limited = 0
        self._limit = Limit(20, 60.0, now)

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        """The robot, the limit, the form."""
        if request.path != "/cgi-bin/webhook/send" or request.query.get("key") != KEY:
            return refusal(93000, "invalid webhook url")
        if self._limit.exceeded():
            self.limited += 1
            return refusal(45009, "api freq out of limit")
        payload = json.loads(body) if request.method == "POST" else {}
        if found := problems(payload):
            return refusal(40058, f"{found[0][:40]} exceed max length or is invalid Request Parameter")
        self.received.append(payload)
        return Answer(200, json.dumps({"errcode": 0, "errmsg": "ok"}))


def problems(payload: dict[str, Any]) -> list[str]:
    """What WeCom would refuse or, worse, take for markup."""
    match payload:
        case {"msgtype": "markdown", "markdown": {"content": str(text), **rest}, **others} if not rest and not others:
            found = [] if 0 < len(text.encode()) <= MARKDOWN else ["markdown.content"]
            return found + [f"{what} in {text!r}" for what in foreign_markup(_FONT.sub(r"\1", text), PAGES)]
        case {"msgtype": "image", "image": {"base64": str(data), "md5": str(digest), **rest}} if not rest:
            image = base64.b64decode(data, validate=True)
            known = image.startswith((b"\x89PNG", b"\xff\xd8"))
            fine = known and len(image) <= IMAGE and hashlib.md5(image, usedforsecurity=False).hexdigest() == digest
            return [] if fine else ["image"]
    return ["msgtype"]
