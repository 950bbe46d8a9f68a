"""Feishu's custom bot, as strict as its documentation (open.feishu.cn: 自定义机器人使用指南, 卡片 JSON 1.0)."""

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
    from collections.abc import Callable, Iterator

    from aiohttp import web

TOKEN = "canary-0000-feishu-hook"
SECRET = "canary-feishu-secret"
BODY = 20_000
COLOURS = {
    "blue",
    "wathet",
    "turquoise",
    "green",
    "yellow",
    "orange",
    "red",
    "carmine",
    "violet",
    "purple",
    "indigo",
    "grey",
}
PAGES = {"status page", "状态页"}


def refusal(code: int, text: str) -> Answer:
    return Answer(200, json.dumps({"code": code, "msg": text, "data": {}}))


class FakeFeishu(ScriptedServer):
    """``received`` holds the cards that a group would show."""

    path = f"/open-apis/bot/v2/hook/{TOKEN}"

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
        self._limits = (Limit(100, 60.0, now), Limit(5, 1.0, now))

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        """Feishu's own order: the hook, the limits, the form, who sends, the keyword."""
        if request.path != self.path:
            return refusal(19001, "param invalid: incoming webhook access token invalid")
        if self._limits[0].exceeded() or self._limits[1].exceeded():
            self.limited += 1
            return refusal(11232, "frequency limited psm[lark.oapi.app_platform_runtime]appID[1500]")
        if request.method != "POST" or request.content_type != "application/json" or len(body) > BODY:
            return refusal(9499, "Bad Request")
        payload = json.loads(body)
        if payload.keys() - {"timestamp", "sign", "msg_type", "card"}:
            return refusal(9499, "Bad Request")
        if payload.get("msg_type") != "interactive" or problems(payload["card"]):
            return refusal(19002, "params error, card is invalid")
        if self._secret and not self._is_signed(payload):
            return refusal(19021, "sign match fail or timestamp is not within one hour from current time")
        if self._keyword and not any(self._keyword in text for _, text in texts(payload["card"])):
            return refusal(19024, "Key Words Not Found")
        self.received.append(payload)
        yes = {"StatusCode": 0, "StatusMessage": "success", "code": 0, "data": {}, "msg": "success"}
        return Answer(200, json.dumps(yes))

    def _is_signed(self, payload: dict[str, Any]) -> bool:
        at = payload.get("timestamp", "0")
        key = f"{at}\n{self._secret}".encode()
        expected = base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
        return isinstance(at, str) and abs(time.time() - int(at)) < 3600 and expected == payload.get("sign")


def texts(card: Any) -> Iterator[tuple[str, str]]:
    """Every text that a card shows, with its tag."""
    if isinstance(card, dict):
        if "content" in card:
            yield card["tag"], card["content"]
        card = list(card.values())
    if isinstance(card, list):
        for each in card:
            yield from texts(each)


def problems(card: dict[str, Any]) -> list[str]:
    """What Feishu would refuse or, worse, take for markup."""
    header = card.get("header", {})
    found = [] if header.get("template") in COLOURS else ["template"]
    if header.get("title", {}).get("tag") != "plain_text" or not header["title"].get("content"):
        found.append("title")
    for element in card.get("elements", []) or [{}]:
        found += [f"{element.get('tag')}: {what}" for what in _element(element)]
    for tag, text in texts(card):
        if tag not in {"plain_text", "lark_md"} or not text:
            found.append(f"text of {tag}")
        found += [f"{what} in {text!r}" for what in foreign_markup(text, PAGES)] if tag == "lark_md" else []
    return found


def _element(element: dict[str, Any]) -> list[str]:
    match element:
        case {"tag": "hr", **rest}:
            return [f"unknown {key}" for key in rest]
        case {"tag": "div", "text": {}, **rest}:
            return [f"unknown {key}" for key in rest]
        case {"tag": "div", "fields": [*fields], **rest}:
            bad = ["field" for field in fields if field.keys() != {"is_short", "text"}]
            return bad + [f"unknown {key}" for key in rest] + ([] if fields else ["no fields"])
        case {"tag": "note", "elements": [_, *_]}:
            return []
        case {"tag": "action", "actions": [*buttons]}:
            return ["url" for button in buttons if not button["url"].startswith(("http://", "https://"))]
    return ["unknown"]
