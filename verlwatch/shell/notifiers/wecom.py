"""WeCom (企业微信) group robots.

Limits and answers are those of developer.work.weixin.qq.com (群机器人配置说明): Markdown of 4,096 bytes, 20 messages a
minute, images of 2 MB; ``errcode`` 0 for yes in an answer of status 200.  A robot can neither edit nor thread, and an
image is a message of its own.
"""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from verlwatch.fields import ReceiverConfig, SecretPath, Url
from verlwatch.shell.notifiers import _chat, _http
from verlwatch.shell.notifiers._base import DeliveryError, Notifier, PermanentError
from verlwatch.shell.notifiers._chart import as_json, chart_of, chart_png
from verlwatch.shell.notifiers._text import emoji

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from verlwatch.core.types import Message

_MARKDOWN = 4096
_TITLE = 200
_IMAGE = 2 * 1024 * 1024
_ILLUSTRATED = frozenset({"opened", "escalated"})
_BAD_URL = "the webhook URL is wrong or the robot was removed; copy its URL into the file again"
_REFUSALS: Mapping[int, _chat.Refusal] = {
    -1: _chat.Refusal(),
    40008: _chat.Refusal("WeCom did not understand the message; please report this"),
    40058: _chat.Refusal("WeCom did not understand the message; please report this"),
    44004: _chat.Refusal("WeCom did not understand the message; please report this"),
    45009: _chat.Refusal(wait_s=60.0),
    45033: _chat.Refusal(wait_s=60.0),
    93000: _chat.Refusal(_BAD_URL),
    93004: _chat.Refusal("the robot was disabled; enable it, or put the URL of another into the file"),
    93008: _chat.Refusal("the robot is not in the group any more; put the URL of another into the file"),
}
_COLOURS = {"critical": "warning", "warning": "warning", "info": "comment"}


class WeComConfig(ReceiverConfig):
    """A WeCom group robot."""

    type: Literal["wecom"]
    webhook_url_file: SecretPath = Field(description="File with the URL of the group robot.")
    proxy: Url | None = Field(default=None, description="HTTP proxy; default: what the environment says.")


class WeComNotifier(Notifier):
    """One robot, that is one group."""

    TYPE: ClassVar[str] = "wecom"
    RATE: ClassVar[tuple[int, float] | None] = (10, 60.0)  # of 20: each may bring an image
    Config: ClassVar[type[ReceiverConfig]] = WeComConfig

    def __init__(self, config: WeComConfig, session: aiohttp.ClientSession) -> None:
        self._url = _http.secret_url(config.webhook_url_file)
        self._proxy = config.proxy
        self._session = session

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """Markdown, and what to draw; the coloured title is what a locked phone shows first."""
        chart = chart_of(message) if message.reason in _ILLUSTRATED else None
        colour = "info" if message.closed_as else _COLOURS[message.severity]
        head = f'{emoji(message)} **<font color="{colour}">{_chat.neutral(message.title, _TITLE)}</font>**'
        return {
            "msgtype": "markdown",
            "markdown": {"content": _chat.markdown(message, dedup_key, head, _MARKDOWN, "\n")},
            "chart": as_json(chart) if chart else None,
        }

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:  # noqa: ARG002 - it is in the payload
        """Posts the message, then its image: where that fails the message has been delivered all the same."""
        chart = payload.get("chart")
        await self._post({key: value for key, value in payload.items() if key != "chart"})
        if png := chart_png(**chart) if chart else None:
            with suppress(DeliveryError):
                await self._post(image(png))

    async def _post(self, body: dict[str, Any]) -> None:
        said = await _chat.post(self._session, self._url.reveal(), body, self._proxy, "WeCom")
        _chat.judge("WeCom", said.get("errcode"), _REFUSALS)


def image(png: bytes) -> dict[str, Any]:
    """The body of a message that shows the image.  Raises PermanentError over 2 MB."""
    if len(png) > _IMAGE:
        raise PermanentError("the image is over WeCom's 2 MB")
    digest = hashlib.md5(png, usedforsecurity=False).hexdigest()
    return {"msgtype": "image", "image": {"base64": base64.b64encode(png).decode(), "md5": digest}}
