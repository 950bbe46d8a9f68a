"""PagerDuty, Events API v2: an incident is one alert there, which is triggered, triggered again and resolved.

A run that is done calls nobody: that it has finished is not sent, and counts as delivered.

Limits and answers are those of developer.pagerduty.com (events-API-v2): 512 KB, a summary of 1,024 characters, a
``dedup_key`` of 255; about 120 calls a minute; 202 for yes, 400 for what is malformed, and after a 429 a few minutes
of rest.  The body of a 202 says ``"status": "success"``.  Only the routing key that triggered an alert resolves it.
"""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson
from pydantic import Field

from verlwatch.fields import ReceiverConfig, SecretPath, Url, read_secret
from verlwatch.shell.notifiers import _http
from verlwatch.shell.notifiers._base import Notifier, PermanentError, TransientError
from verlwatch.shell.notifiers._text import clean
from verlwatch.shell.notifiers._words import words

if TYPE_CHECKING:
    import aiohttp

    from verlwatch.core.types import Message

_SUMMARY = 1024
_KEY = 255
_LINES = 100
_LINK = 2000
_REST_S = 120.0


class PagerDutyConfig(ReceiverConfig):
    """A PagerDuty service with an integration of type Events API v2."""

    type: Literal["pagerduty"]
    routing_key_file: SecretPath = Field(description="File with the integration key of the service.")
    url: Url = Field(
        default="https://events.pagerduty.com/v2/enqueue",
        description="Where events go; in the EU https://events.eu.pagerduty.com/v2/enqueue.",
    )
    proxy: Url | None = Field(default=None, description="HTTP proxy; default: what the environment says.")


class PagerDutyNotifier(Notifier):
    """One service."""

    TYPE: ClassVar[str] = "pagerduty"
    RATE: ClassVar[tuple[int, float] | None] = (100, 60.0)
    DIGEST: ClassVar[bool] = False
    PAGES: ClassVar[bool] = True
    Config: ClassVar[type[ReceiverConfig]] = PagerDutyConfig

    def __init__(self, config: PagerDutyConfig, session: aiohttp.ClientSession) -> None:
        self._key = read_secret(config.routing_key_file)
        self._url = config.url
        self._proxy = config.proxy
        self._session = session

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """An event: `resolve` once the incident is closed, however it was, and `trigger` for all that is before.

        Empty where there is nothing to send.
        """
        if message.reason == "finished":
            return {}
        event: dict[str, Any] = {
            "event_action": "resolve" if message.closed_as else "trigger",
            "dedup_key": alert_key(message.incident),
            "payload": {
                "summary": clean(message.title, _SUMMARY) or "verlwatch",
                "source": clean(message.run) or "verlwatch",
                "severity": message.severity,
                "timestamp": datetime.fromtimestamp(message.at, UTC).isoformat(timespec="milliseconds"),
                "component": clean(message.phase),
                "group": clean(message.run),
                "class": clean(message.rule),
                "custom_details": _details(message, dedup_key),
            },
            "client": "verlwatch",
        }
        link = clean(message.link, _LINK)
        if link.startswith(("http://", "https://")):
            event["client_url"] = link
            event["links"] = [{"href": link, "text": words(message).page}]
        return event

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:  # noqa: ARG002 - it is in the payload
        """POSTs the event with the routing key."""
        if not payload:
            return
        with _http.network_errors():
            async with self._session.post(
                self._url,
                data=orjson.dumps({"routing_key": self._key.reveal(), **payload}),
                headers={"Content-Type": "application/json"},
                proxy=_http.proxy_for(self._url, self._proxy),
                allow_redirects=False,
            ) as answer:
                _judge(answer.status, await answer.read(), _http.retry_after(answer.headers, time.time()))


def alert_key(incident: str) -> str:
    """The incident's id as PagerDuty gets it; a hash of it if it is too long, or nothing is left of it."""
    key = clean(incident, 2 * _KEY)
    return key if 0 < len(key) <= _KEY else hashlib.sha256(incident.encode("utf-8", "replace")).hexdigest()


def _details(message: Message, dedup_key: str) -> dict[str, Any]:
    details: dict[str, Any] = {"summary": clean(message.summary, _SUMMARY)}
    details |= {clean(label, 100): clean(value) for label, value in message.facts[:_LINES]}
    if message.evidence:
        details["evidence"] = [clean(line) for line in message.evidence[:_LINES]]
    if message.advice:
        details["advice"] = [clean(line, 1000) for line in message.advice[:_LINES]]
    if message.sparkline:
        details["recent"] = clean(message.sparkline)
    details |= {"incident": clean(message.incident), "reason": message.reason}
    if message.link:
        details["status_page"] = clean(message.link, _LINK)
    return {**details, "message_id": dedup_key}


def _judge(status: int, body: bytes, wait: float | None) -> None:
    """Returns for a yes, raises for a no."""
    if status == 202 and _is_success(body):  # noqa: PLR2004 - PagerDuty's yes
        return
    if status == 429:  # noqa: PLR2004 - too many events
        raise TransientError("PagerDuty answered 429, too many events", _REST_S if wait is None else wait)
    if status in _http.RETRY_STATUS or status >= 500:  # noqa: PLR2004 - the class of server errors
        raise TransientError(f"PagerDuty answered {status}", wait)
    if status < 300:  # noqa: PLR2004 - the class of yes
        raise TransientError(
            f"the answer was {status} but PagerDuty's yes is 202 with the status success; "
            "is a proxy or another server in its place?"
        )
    if status < 400:  # noqa: PLR2004 - the class of redirects
        raise PermanentError(f"PagerDuty answered {status}; redirects are not followed: configure the final URL")
    raise PermanentError(
        f"PagerDuty answered {status}; check that routing_key_file holds the 32 characters of an Events API v2 "
        "integration key, and that url is the region's"
    )


def _is_success(body: bytes) -> bool:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(said, dict) and said.get("status") == "success"
