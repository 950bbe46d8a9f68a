"""Slack incoming webhooks.

A channel gets one message for each thing worth telling: an incoming webhook can neither edit nor thread.  Limits and
answers are those of docs.slack.dev: 50 blocks, 3000 characters a section, 150 a header, 10 fields; about one message
a second; ``ok`` for yes and a word for each no.
"""

from __future__ import annotations

import logging
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from verlwatch.fields import ReceiverConfig, SecretPath, Url
from verlwatch.shell.notifiers import _http
from verlwatch.shell.notifiers._base import Notifier, PermanentError, TransientError
from verlwatch.shell.notifiers._text import clean, emoji

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import aiohttp

    from verlwatch.core.types import Message

_HEADER = 140  # of 150, with room for the emoji
_SECTION = 2900  # of 3000, with room for signs around the text
_FIELD = 500
_FIELDS = 10
_ADVICE = 600
_LINK = 1000
_BLOCK_ID = 255

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
    Config: ClassVar[type[ReceiverConfig]] = SlackConfig

    def __init__(self, config: SlackConfig, session: aiohttp.ClientSession) -> None:
        self._url = _http.secret_url(config.webhook_url_file)
        self._proxy = config.proxy
        self._session = session

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """Top-level ``text`` for the lock screen, blocks for the channel; the id is that of the last block."""
        return {
            "text": f"{emoji(message)} {mrkdwn(message.title)}",
            "unfurl_links": False,
            "unfurl_media": False,
            "blocks": list(_blocks(message, dedup_key)),
        }

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


# ---------------------------------------------------------------------------------------------------- rendering
def escaped(text: str, limit: int) -> str:
    """Cleaned text in which Slack finds no mention, link or entity, at most ``limit`` units as Slack gets it."""
    text = clean(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"@(?=(?:here|channel|everyone)\b)", "＠", text, flags=re.IGNORECASE)  # noqa: RUF001 - a look-alike
    if _units(text) <= limit:
        return text
    start = text.encode("utf-16-le")[: 2 * (limit - 1)].decode("utf-16-le", "ignore")
    return re.sub(r"&[a-z]*$", "", start) + "…"


def _units(text: str) -> int:
    """Length of the text where characters outside the basic plane count double: no counting of Slack's is stricter."""
    return len(text.encode("utf-16-le")) // 2


def mrkdwn(text: str, limit: int = 300) -> str:
    """`escaped`, and without the signs that would format or end a code block."""
    return escaped(text, limit).translate({ord("`"): "'", ord("*"): "∗", ord("~"): "∼"})  # noqa: RUF001 - look-alikes


def _blocks(message: Message, dedup_key: str) -> Iterator[dict[str, Any]]:
    yield {"type": "header", "text": _plain(f"{emoji(message)} {escaped(message.title, _HEADER)}")}
    if summary := escaped(message.summary, _SECTION):
        yield {"type": "section", "text": _plain(summary)}
    if message.facts:
        facts = message.facts[:_FIELDS]
        fields = [_mrkdwn(f"*{mrkdwn(label)}*\n{mrkdwn(value, _FIELD)}") for label, value in facts]
        yield {"type": "section", "fields": fields}
    if bars := mrkdwn(message.sparkline):
        yield {"type": "section", "text": _mrkdwn(f"`{bars}`  {mrkdwn(message.phase)}, the last steps")}
    if lines := _fitting(mrkdwn(line) for line in message.evidence):
        yield {"type": "section", "text": _mrkdwn("```" + "\n".join(lines) + "```")}
    if lines := _fitting(mrkdwn(line, _ADVICE) for line in message.advice):
        yield {"type": "section", "text": _mrkdwn("\n• ".join(["*What to try*", *lines]))}
    yield {"type": "context", "block_id": dedup_key[-_BLOCK_ID:], "elements": [_mrkdwn(" · ".join(_footer(message)))]}


def _footer(message: Message) -> Iterator[str]:
    """Incident id, run, rule and time (which Slack shows in the reader's own zone)."""
    at = datetime.fromtimestamp(message.at, UTC)
    yield f"incident `{mrkdwn(message.incident)}`"
    yield mrkdwn(message.run)
    yield mrkdwn(message.rule)
    yield f"<!date^{int(message.at)}^{{date_short_pretty}} {{time_secs}}|{at:%Y-%m-%d %H:%M:%S} UTC>"
    link = escaped(message.link, _LINK)
    if re.fullmatch(r"https?://[!-~]+", link) and "|" not in link:
        yield f"<{link}|status page>"
    elif link:
        yield f"`{mrkdwn(message.link, _FIELD)}`"


def _fitting(lines: Iterable[str]) -> list[str]:
    """The first lines that fit into one section, and a word on how many do not.  Empty lines say nothing."""
    kept: list[str] = []
    left = 0
    room = _SECTION - len("What to try… and 999 more")
    for line in filter(None, lines):
        room -= len("\n• ") + _units(line)
        if room >= 0 and not left:
            kept.append(line)
        else:
            left += 1
    return [*kept, f"… and {left} more"] if left else kept


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": True}


def _mrkdwn(text: str) -> dict[str, Any]:
    """Verbatim: Slack makes no links or mentions of what merely looks like one."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}
