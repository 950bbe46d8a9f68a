"""Slack incoming webhooks.

A channel gets one message for each thing worth telling: an incoming webhook can neither edit nor thread.  Answers are
those of docs.slack.dev: ``ok`` for yes and a word for each no; about one message a second.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from verlwatch.fields import ReceiverConfig, SecretPath, Url
from verlwatch.shell.notifiers import _blocks, _http
from verlwatch.shell.notifiers._base import Notifier, PermanentError, TransientError

if TYPE_CHECKING:
    import aiohttp

    from verlwatch.core.types import Message

_OK = "ok"
_BAD_URL = "the webhook URL is wrong or was revoked; create a new one in Slack and put it into the file"
_CHANNEL = "create a webhook for another channel and put its URL into the file"
_REASONS = {
    "action_prohibited": "the workspace forbids this webhook to post; ask its administrators",
    "channel_is_archived": f"the channel is archived; {_CHANNEL}",
    "channel_not_found": f"the channel does not exist any more; {_CHANNEL}",
    "invalid_blocks": "Slack did not understand the message; please report this",
    "invalid_payload": "Slack did not understand the message; please report this",
    "invalid_token": _BAD_URL,
    "no_active_hooks": _BAD_URL,
    "no_service": _BAD_URL,
    "no_service_id": _BAD_URL,
    "no_team": _BAD_URL,
    "no_text": "Slack did not understand the message; please report this",
    "posting_to_general_channel_denied": f"the workspace allows no webhooks in this channel; {_CHANNEL}",
    "team_disabled": "the workspace is no longer active",
    "too_many_attachments": "Slack did not understand the message; please report this",
    "user_not_found": _BAD_URL,
}
"""Why a no is final: the same request can only be refused again until a person changes something."""


class SlackConfig(ReceiverConfig):
    """A Slack incoming webhook."""

    type: Literal["slack"]
    webhook_url_file: SecretPath = Field(description="File with the URL of the incoming webhook.")
    proxy: Url | None = Field(default=None, description="HTTP proxy; default: what the environment says.")


class SlackNotifier(Notifier):
    """One incoming webhook, that is one channel."""

    TYPE: ClassVar[str] = "slack"
    MIN_INTERVAL_S: ClassVar[float] = 1.0
    RATE: ClassVar[tuple[int, float] | None] = (30, 60.0)  # Slack would take 60; more than this nobody reads
    Config: ClassVar[type[ReceiverConfig]] = SlackConfig

    def __init__(self, config: SlackConfig, session: aiohttp.ClientSession) -> None:
        self._url = _http.secret_url(config.webhook_url_file)
        self._proxy = config.proxy
        self._session = session

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """See `_blocks.shown`."""
        return _blocks.shown(message, dedup_key)

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:  # noqa: ARG002 - it is in the payload
        """Posts the payload."""
        # slack_sdk is heavy, and only who has a Slack receiver should carry it.
        from slack_sdk.webhook.async_client import AsyncWebhookClient  # noqa: PLC0415

        url = self._url.reveal()
        client = AsyncWebhookClient(url, session=self._session, logger=_silent_logger(), retry_handlers=[])
        with _http.network_errors():
            client.proxy = _http.proxy_for(url, self._proxy)  # left to itself it takes HTTPS_PROXY and ignores NO_PROXY
            answer = await client.send_dict(payload)
        _judge(answer.status_code, answer.body.strip(), _http.retry_after(answer.headers, time.time()))


def _silent_logger() -> logging.Logger:
    """A logger that drops everything: at DEBUG slack_sdk writes the URL, which is the secret."""
    logger = logging.getLogger("verlwatch.silenced.slack_sdk")
    if not logger.filters:
        logger.addFilter(lambda _: False)
    return logger


def _judge(status: int, body: str, wait: float | None) -> None:
    """Returns for a yes, raises for a no.  Of the body only Slack's own words are repeated."""
    if status == 200 and body == _OK:  # noqa: PLR2004 - HTTP's yes
        return
    if status in _http.RETRY_STATUS or status >= 500:  # noqa: PLR2004 - the class of server errors
        raise TransientError(f"Slack answered {status}", wait)
    if status < 300:  # noqa: PLR2004 - the class of yes
        raise TransientError(f"the answer was {status} but not Slack's ok; is a proxy or another server in its place?")
    if body in _REASONS:
        raise PermanentError(f"Slack answered {status} {body}: {_REASONS[body]}")
    raise PermanentError(f"Slack answered {status}; check that the file holds the URL of an incoming webhook")
