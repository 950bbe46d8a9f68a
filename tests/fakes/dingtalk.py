"""DingTalk's group robot, as strict as its documentation (open.dingtalk.com: 自定义机器人接入)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING, Any

from tests.fakes._limits import Limit, foreign_markup
from tests.fakes._server import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

TOKEN = "canary0000dingtalktoken"
SECRET = "SECcanarydingtalk"
BODY = 20_000
PAGES = {"status page", "状态页"}


def refusal(code: int, text: str, **more: Any) -> Answer:
    return Answer(200, json.dumps({"errcode": code, "errmsg": text, **more}))


class FakeDingTalk(ScriptedServer):
    """``received`` holds the messages that a group would show."""

    path = f"/robot/send?access_token={TOKEN}"

    def __init__(
        self,
        *script: Answer,
        secret: str | None = None,
        keyword: str | None = None,
        now: Callable[[], float] = time.time,
        **kwargs: Any,
    ) -> None:
        super().__init__(*script, **kwargs)
        self.received: list[dict[str, Any]] = []
        self.limited = 0
        self._secret, self._keyword = secret, keyword
        self._limit = Limit(20, 60.0, now, penalty=600.0)

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        """The robot, the limit, the form, the safety settings."""
        if request.path != "/robot/send" or request.query.get("access_token") != TOKEN:
            return refusal(300001, "token is not exist")
        if self._limit.exceeded():
            self.limited += 1
            punished = {"status": 1111, "wait": 5, "source": "x5", "punish": "deny"}
            return refusal(130101, "send too fast, exceed 20 times per minute", **punished)
        if request.method != "POST" or request.content_type != "application/json" or request.charset != "utf-8":
            return refusal(43004, "无效的HTTP HEADER Content-Type")
        if len(body) > BODY:
            return refusal(460101, "description: body 大小不合法;solution:请保持大小在 20000bytes 以内;")
        payload = json.loads(body)
        if problems(payload):
            return refusal(40035, "缺少参数 json")
        if refused := self._unsafe(request, payload):
            return refusal(310000, refused)
        self.received.append(payload)
        return Answer(200, json.dumps({"errcode": 0, "errmsg": "ok"}))

    def _unsafe(self, request: web.Request, payload: dict[str, Any]) -> str:
        if self._keyword and self._keyword not in payload["markdown"]["text"]:
            return "keywords not in content, more: [https://ding-doc.dingtalk.com/doc#/serverapi2/qf2nxq]"
        if not self._secret:
            return ""
        at = request.query.get("timestamp", "0")
        if abs(time.time() * 1000 - int(at)) > 3_600_000:
            return "invalid timestamp, more: [https://ding-doc.dingtalk.com/doc#/serverapi2/qf2nxq]"
        expected = hmac.new(self._secret.encode(), f"{at}\n{self._secret}".encode(), hashlib.sha256).digest()
        if base64.b64encode(expected).decode() == request.query.get("sign"):
            return ""
        return "description:机器人发送签名不匹配;solution:请确认签名和生成签名的时间戳必须都放在调用的网址中;"


def problems(payload: dict[str, Any]) -> list[str]:
    """What DingTalk would refuse or, worse, take for markup."""
    found = [f"unknown {key}" for key in payload.keys() - {"msgtype", "markdown", "at"}]
    markdown = payload.get("markdown", {})
    if payload.get("msgtype") != "markdown" or markdown.keys() != {"title", "text"}:
        return [*found, "no Markdown"]
    at = payload.get("at", {})
    if at.get("isAtAll") or at.get("atMobiles") or at.get("atUserIds"):
        found.append("mentions somebody")
    found += [] if markdown["title"] and markdown["text"] else ["empty"]
    return found + [f"{what} in {markdown['text']!r}" for what in foreign_markup(markdown["text"], PAGES)]
