"""DingTalk (钉钉) group robots.

Limits and answers are those of open.dingtalk.com (自定义机器人接入): a body of 20,000 bytes, 20 messages a minute, and
who sends more is refused for ten minutes; ``errcode`` 0 for yes in an answer of status 200.  The signature stands in
the URL, with the time in milliseconds.  A robot can neither edit nor thread.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import quote

from pydantic import Field

from verlwatch.fields import ReceiverConfig, SecretPath, Url, read_secret
from verlwatch.shell.notifiers import _chat, _http
from verlwatch.shell.notifiers._base import Notifier
from verlwatch.shell.notifiers._text import emoji

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from verlwatch.core.types import Message

_MARKDOWN = 12_000  # a quote or a backslash takes two bytes in JSON, and the whole body must stay below 20,000
_TITLE = 200
_THROTTLED_S = 600.0
_BAD_URL = "the webhook URL is wrong or the robot was removed; copy its URL into the file again"
_REPORT = "DingTalk did not understand the message; please report this"
_CONTENT = "its filter refused the content; `verlwatch test-notify` shows whether it takes any message"
_CHECKS = (
    "the robot's safety settings refused it: set secret_file for 加签, keyword for 自定义关键词, allow this host's IP"
)
_REFUSALS: Mapping[int, _chat.Refusal] = {
    -1: _chat.Refusal(),
    40035: _chat.Refusal(_BAD_URL),
    43004: _chat.Refusal(_REPORT),
    90018: _chat.Refusal(wait_s=60.0),
    90030: _chat.Refusal(wait_s=_THROTTLED_S),
    130101: _chat.Refusal(wait_s=_THROTTLED_S),
    300001: _chat.Refusal(_BAD_URL),
    310000: _chat.Refusal(_CHECKS),
    400013: _chat.Refusal("the group was dissolved; put the URL of another robot into the file"),
    400101: _chat.Refusal(_BAD_URL),
    400102: _chat.Refusal("the robot was disabled; enable it, or put the URL of another into the file"),
    400105: _chat.Refusal(_REPORT),
    400106: _chat.Refusal(_BAD_URL),
    410100: _chat.Refusal(wait_s=_THROTTLED_S),
    430101: _chat.Refusal(_CONTENT),
    430102: _chat.Refusal(_CONTENT),
    430104: _chat.Refusal(_CONTENT),
    460101: _chat.Refusal(_REPORT),
}
_SAFETY = 310000
_SAFETY_SETTINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sign not match", "签名不匹配"), "the signature does not match; put the robot's 加签 secret into secret_file"),
    (("timestamp", "时间戳"), "the time in the signature is over an hour away; set this host's clock"),
    (("keyword", "关键词"), "the message lacks the robot's keyword; set keyword to one of its 自定义关键词"),
    (("ip ", "白名单"), "this host's IP address is not on the robot's allow-list; add it, or set a proxy that is"),
)
"""One code for all its safety settings: words of the answer that tell them apart, and the remedy."""


class DingTalkConfig(ReceiverConfig):
    """A DingTalk group robot."""

    type: Literal["dingtalk"]
    webhook_url_file: SecretPath = Field(description="File with the URL of the group robot.")
    secret_file: SecretPath | None = Field(
        default=None, description="File with the robot's signing secret (加签); without it requests are not signed."
    )
    keyword: str | None = Field(
        default=None, max_length=64, description="One of the robot's keywords; it ends each message that lacks it."
    )
    proxy: Url | None = Field(default=None, description="HTTP proxy; default: what the environment says.")


class DingTalkNotifier(Notifier):
    """One robot, that is one group."""

    TYPE: ClassVar[str] = "dingtalk"
    RATE: ClassVar[tuple[int, float] | None] = (20, 60.0)
    Config: ClassVar[type[ReceiverConfig]] = DingTalkConfig

    def __init__(self, config: DingTalkConfig, session: aiohttp.ClientSession) -> None:
        self._url = _http.secret_url(config.webhook_url_file)
        self._secret = read_secret(config.secret_file) if config.secret_file else None
        self._keyword = config.keyword
        self._proxy = config.proxy
        self._session = session

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """Markdown; ``title`` is what a locked phone shows.  Nobody is mentioned."""
        head = f"#### {emoji(message)} {_chat.neutral(message.title, _TITLE)}"
        return {
            "msgtype": "markdown",
            "markdown": {
                "title": f"{emoji(message)} {_chat.neutral(message.title, _TITLE)}",
                "text": _chat.markdown(message, dedup_key, head, _MARKDOWN, "\n\n"),
            },
            "at": {"isAtAll": False},
        }

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:  # noqa: ARG002 - it is in the payload
        """Posts the payload, signed and with the keyword in it where there are any."""
        url = self._url.reveal()
        if self._secret is not None:
            url = signed(url, self._secret.reveal(), int(time.time() * 1000))
        said = await _chat.post(self._session, url, with_keyword(payload, self._keyword), self._proxy, "DingTalk")
        refusals = {**_REFUSALS, _SAFETY: _chat.Refusal(_unsafe(str(said.get("errmsg", ""))))}
        _chat.judge("DingTalk", said.get("errcode"), refusals)


def signed(url: str, secret: str, at_ms: int) -> str:
    r"""The URL with its signature: HMAC-SHA256 over ``{at_ms}\n{secret}`` with the secret as the key."""
    sign = quote(_chat.signature(secret, f"{at_ms}\n{secret}"), safe="")
    return f"{url}{'&' if '?' in url else '?'}timestamp={at_ms}&sign={sign}"


def with_keyword(payload: dict[str, Any], keyword: str | None) -> dict[str, Any]:
    """The payload with the keyword at the end of its text, unless it is there already."""
    text = payload["markdown"]["text"]
    if not keyword or keyword in text:
        return payload
    return {**payload, "markdown": {**payload["markdown"], "text": f"{text}\n\n{keyword}"}}


def _unsafe(text: str) -> str:
    text = text.lower()
    return next((remedy for signs, remedy in _SAFETY_SETTINGS if any(sign in text for sign in signs)), _CHECKS)
