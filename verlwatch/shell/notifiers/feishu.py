r"""Feishu (飞书) and Lark custom bots: the same with another host.

Limits and answers are those of open.feishu.cn (自定义机器人使用指南): a body of 20 KB, 100 messages a minute and 5 a
second, ``code`` 0 for yes in an answer of status 200.  The key of the signature is ``{seconds}\n{secret}`` and what is
signed is empty.  Feishu itself advises against full and half hours, when it refuses with 11232.
A bot can neither edit nor thread, and has images only with an app's credentials.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson
from pydantic import Field

from verlwatch.fields import ReceiverConfig, SecretPath, Url, read_secret
from verlwatch.shell.notifiers import _chat, _http
from verlwatch.shell.notifiers._base import Notifier
from verlwatch.shell.notifiers._text import clean, emoji
from verlwatch.shell.notifiers._words import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import aiohttp

    from verlwatch.core.types import Message

_BODY = 19_000  # of 20 KB, with room for keyword and signature
_FACTS = 10
_SHORT = 40
_LABEL = 60
_FACT = 200
_RUSH_S = 1800.0
_BEFORE_S = 5.0
_AFTER_S = 10.0
_SPREAD_S = 20
_REPORT = "Feishu did not understand the message; please report this"
_REFUSALS: Mapping[int, _chat.Refusal] = {
    9499: _chat.Refusal(wait_s=60.0),
    11232: _chat.Refusal(wait_s=60.0),
    11233: _chat.Refusal(wait_s=60.0),
    99991400: _chat.Refusal(wait_s=60.0),
    19001: _chat.Refusal("the webhook URL is wrong or the bot was removed; copy its URL into the file again"),
    19002: _chat.Refusal(_REPORT),
    19021: _chat.Refusal(
        "the signature was refused; put the bot's signing secret into secret_file, set the host's clock"
    ),
    19022: _chat.Refusal("this host's IP address is not on the bot's allow-list; add it, or set a proxy that is"),
    19024: _chat.Refusal("the message lacks the bot's keyword; set keyword to one of its keywords"),
    19036: _chat.Refusal(_REPORT),
    230099: _chat.Refusal(_REPORT),
}
_BAD_REQUEST = 9499
"""Of a message that is malformed or too long, and with another text of too many messages."""


class FeishuConfig(ReceiverConfig):
    """A Feishu or Lark custom bot."""

    type: Literal["feishu"]
    webhook_url_file: SecretPath = Field(description="File with the URL of the custom bot, of Feishu or Lark.")
    secret_file: SecretPath | None = Field(
        default=None, description="File with the bot's signing secret; without it requests are not signed."
    )
    keyword: str | None = Field(
        default=None, max_length=64, description="One of the bot's keywords; it ends each message that lacks it."
    )
    proxy: Url | None = Field(default=None, description="HTTP proxy; default: what the environment says.")


class FeishuNotifier(Notifier):
    """One bot, that is one group."""

    TYPE: ClassVar[str] = "feishu"
    MIN_INTERVAL_S: ClassVar[float] = 0.25
    RATE: ClassVar[tuple[int, float] | None] = (30, 60.0)  # Feishu would take 100; more than this nobody reads
    Config: ClassVar[type[ReceiverConfig]] = FeishuConfig

    def __init__(self, config: FeishuConfig, session: aiohttp.ClientSession) -> None:
        self._url = _http.secret_url(config.webhook_url_file)
        self._secret = read_secret(config.secret_file) if config.secret_file else None
        self._keyword = config.keyword
        self._proxy = config.proxy
        self._session = session
        self._late_s = _AFTER_S + zlib.crc32(self._url.reveal().encode()) % _SPREAD_S

    def not_before(self, now: float) -> float:
        """A little after a full or half hour, each bot at a moment of its own; else at once."""
        into = (now + _BEFORE_S) % _RUSH_S
        return now if into >= _BEFORE_S + self._late_s else now + _BEFORE_S + self._late_s - into

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """A card; its title, coloured by how things stand, is what a locked phone shows.  Fewer lines if it is big."""
        for lines in (20, 10, 5, 2, 1, 0):
            payload = _card(message, dedup_key, lines)
            if len(orjson.dumps(payload)) <= _BODY:
                break
        return payload

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:  # noqa: ARG002 - it is in the payload
        """Posts the payload, signed and with the keyword in it where there are any."""
        body = with_keyword(payload, self._keyword)
        if self._secret is not None:
            at = int(time.time())
            body = {"timestamp": str(at), "sign": sign(self._secret.reveal(), at), **body}
        said = await _chat.post(self._session, self._url.reveal(), body, self._proxy, "Feishu")
        refusals = dict(_REFUSALS)
        if "bad request" in str(said.get("msg", "")).lower():
            refusals[_BAD_REQUEST] = _chat.Refusal(_REPORT)
        _chat.judge("Feishu", said.get("code"), refusals)


def sign(secret: str, at: int) -> str:
    r"""The signature of an empty text with ``{at}\n{secret}`` as the key; ``at`` in epoch seconds."""
    return _chat.signature(f"{at}\n{secret}", "")


def with_keyword(payload: dict[str, Any], keyword: str | None) -> dict[str, Any]:
    """The payload with the keyword at its end, unless it is there already."""
    card = payload["card"]
    if not keyword or any(keyword in text for text in _contents(card)):
        return payload
    return {**payload, "card": {**card, "elements": [*card["elements"], _note(keyword)]}}


def _contents(node: Any) -> Iterator[str]:
    """Every text that a card shows."""
    if isinstance(node, dict):
        if isinstance(node.get("content"), str):
            yield node["content"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _contents(each)


# ---------------------------------------------------------------------------------------------------- rendering
def _card(message: Message, dedup_key: str, lines: int) -> dict[str, Any]:
    title = f"{emoji(message)} {clean(message.title)}"
    return {
        "msg_type": "interactive",
        "card": {
            "config": {"wide_screen_mode": True},
            "header": {"title": {"tag": "plain_text", "content": title}, "template": _colour(message)},
            "elements": list(_elements(message, dedup_key, lines)),
        },
    }


def _colour(message: Message) -> str:
    if message.reason == "finished" or message.closed_as in {"resolved", "accepted"}:
        return "green"
    if message.closed_as:
        return "grey"
    return {"critical": "red", "warning": "orange", "info": "blue"}[message.severity]


def _elements(message: Message, dedup_key: str, lines: int) -> Iterator[dict[str, Any]]:
    """What a log may have written stands in plain text, where nothing is markup, or is made harmless."""
    say = words(message)
    if summary := clean(message.summary, 500):
        yield _plain(summary)
    if message.facts:
        pairs = [(_chat.neutral(label, _LABEL), _chat.neutral(value, _FACT)) for label, value in message.facts[:_FACTS]]
        fields = [{"is_short": len(value) <= _SHORT, "text": _md(f"**{label}**\n{value}")} for label, value in pairs]
        yield {"tag": "div", "fields": fields}
    if bars := clean(message.sparkline, 100):
        yield _plain(f"{bars}  {clean(message.phase, 100)}{say.comma}{say.recent}")
    if evidence := _first(message.evidence, lines, 300, say.more):
        yield {"tag": "hr"}
        yield _plain("\n".join(evidence))
    if advice := _first(message.advice, lines, 600, say.more):
        yield {"tag": "div", "text": _md(f"**{say.advice}**")}
        yield _plain("\n".join(f"• {line}" for line in advice))
    if link := _chat.page(message):
        button = {"tag": "button", "text": {"tag": "plain_text", "content": say.page}, "url": link, "type": "default"}
        yield {"tag": "action", "actions": [button]}
    yield _note(_chat.footer(message, dedup_key))


def _first(texts: tuple[str, ...], count: int, limit: int, more: str) -> list[str]:
    shown = [line for text in texts if (line := clean(text, limit))]
    return shown if len(shown) <= count else [*shown[:count], more.format(len(shown) - count)]


def _plain(text: str) -> dict[str, Any]:
    return {"tag": "div", "text": {"tag": "plain_text", "content": text}}


def _md(text: str) -> dict[str, Any]:
    return {"tag": "lark_md", "content": text}


def _note(text: str) -> dict[str, Any]:
    return {"tag": "note", "elements": [{"tag": "plain_text", "content": text}]}
