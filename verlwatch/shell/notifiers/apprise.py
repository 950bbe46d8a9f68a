"""Any of the services that apprise knows, best effort: for those for which there is no notifier of our own.

Text only.  Apprise says no more than yes or no, so that every no is tried again; and for some services (DingTalk,
WeCom) it takes an error code for a yes.  Its requests block and therefore run in a thread.  Extra ``apprise``.
"""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from verlwatch.fields import ReceiverConfig, SecretError, SecretPath, read_secret
from verlwatch.shell.notifiers._base import Notifier, TransientError
from verlwatch.shell.notifiers._chat import footer, neutral, page
from verlwatch.shell.notifiers._words import words

if TYPE_CHECKING:
    import aiohttp

    from verlwatch.core.types import Message

_LONG = 1000
_LINES = 40
_TAIL = _LINES // 2 - 3
_TALKATIVE = ("apprise", "urllib3.connectionpool", "urllib3.util.retry")
"""Loggers that write URLs, which are the secret."""


class AppriseConfig(ReceiverConfig):
    """A service that apprise knows (best effort; pip install 'verlwatch[apprise]')."""

    type: Literal["apprise"]
    service_file: SecretPath = Field(
        description="File with the service's Apprise URL, for example `tgram://TOKEN/CHAT`: see appriseit.com."
    )

    @model_validator(mode="after")
    def _is_installed(self) -> Self:
        if find_spec("apprise") is None:
            raise ValueError("needs apprise, which is not installed; pip install 'verlwatch[apprise]'")
        return self


class AppriseNotifier(Notifier):
    """One service."""

    TYPE: ClassVar[str] = "apprise"
    MIN_INTERVAL_S: ClassVar[float] = 1.0
    RATE: ClassVar[tuple[int, float] | None] = (20, 60.0)
    """What the strictest of the usual services take; apprise knows no limits."""
    Config: ClassVar[type[ReceiverConfig]] = AppriseConfig

    def __init__(self, config: AppriseConfig, session: aiohttp.ClientSession) -> None:  # noqa: ARG002 - apprise has its own
        url = read_secret(config.service_file)
        _silence()
        apprise = import_module("apprise")
        asset = apprise.AppriseAsset(app_id="verlwatch", app_desc="verlwatch", http_redirects=False)
        self._service = apprise.Apprise(asset=asset)
        if not self._service.add(url.reveal()):
            raise SecretError(f"{config.service_file}: holds no URL of a service that apprise knows; see appriseit.com")

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """Title and plain lines, in which no service finds a mention, link or tag."""
        return {
            "title": neutral(message.title),
            "body": "\n".join(filter(None, _lines(message, dedup_key)[:_LINES])),
            "notify_type": "success" if message.closed_as else _TYPES[message.severity],
        }

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:  # noqa: ARG002 - it is in the payload
        """Hands the payload to apprise."""
        import asyncio  # noqa: PLC0415 - reading a configuration is faster without

        try:
            taken = await asyncio.to_thread(self._service.notify, body_format="text", **payload)
        except Exception as error:  # noqa: BLE001 - a hundred plugins of others; their texts may hold the URL
            raise TransientError(f"apprise failed: {type(error).__name__}") from None
        if not taken:
            raise TransientError("the service did not take the message; apprise does not say why")


_TYPES = {"info": "info", "warning": "warning", "critical": "failure"}


def _silence() -> None:
    """Has these loggers drop everything, also what they log before they are configured."""
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        if not logger.filters:
            logger.addFilter(lambda _: False)


def _lines(message: Message, dedup_key: str) -> list[str]:
    say = words(message)
    bars = neutral(message.sparkline)
    head = [neutral(message.summary, _LONG)]
    head += [f"{neutral(label)}{say.colon}{neutral(value)}" for label, value in message.facts]
    head.append(f"{bars} {neutral(message.phase)}{say.comma}{say.recent}" if bars else "")
    tail = [f"| {neutral(line)}" for line in message.evidence]
    tail += [f"→ {neutral(line, _LONG)}" for line in message.advice]
    if (left_out := len(tail) - _TAIL) > 0:
        tail[_TAIL:] = [say.more.format(left_out)]
    return [*head[: _LINES // 2], *tail, page(message), footer(message, dedup_key)]
