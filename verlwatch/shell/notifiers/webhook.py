"""Any HTTP endpoint: a JSON body of a versioned form (webhook.schema.json, docs/WEBHOOK.md), signed.

Any 2xx answer is a yes.  408, 429, 5xx and network trouble are tried again; any other answer is final: a receiver
that does not want this request will not want it tomorrow.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import orjson
from pydantic import Field, model_validator

from verlwatch import __version__
from verlwatch.fields import ReceiverConfig, Secret, SecretPath, Url, read_secret
from verlwatch.shell.notifiers import _http
from verlwatch.shell.notifiers._base import Notifier, PermanentError, TransientError
from verlwatch.shell.notifiers._text import clean

if TYPE_CHECKING:
    import aiohttp

    from verlwatch.core.types import Message

SCHEMA = "verlwatch.notification/1"
NO_RATIO = {"ratio": None, "before": None, "after": None}
"""Of what is no change of a metric."""
_LONG = 1000
_LINK = 2000


class WebhookConfig(ReceiverConfig):
    """A generic JSON webhook."""

    type: Literal["webhook"]
    url: Url | None = Field(default=None, description="Where to POST. Use `url_file` if the URL itself is secret.")
    url_file: SecretPath | None = Field(default=None, description="File with the URL, if the URL itself is secret.")
    secret_file: SecretPath | None = Field(
        default=None, description="File with the key of the HMAC signature; without it requests are not signed."
    )
    proxy: Url | None = Field(default=None, description="HTTP proxy; default: what the environment says.")

    @model_validator(mode="after")
    def _has_one_url(self) -> Self:
        if (self.url is None) == (self.url_file is None):
            raise ValueError("needs either url or url_file")
        return self


class WebhookNotifier(Notifier):
    """One endpoint."""

    TYPE: ClassVar[str] = "webhook"
    MIN_INTERVAL_S: ClassVar[float] = 0.0
    Config: ClassVar[type[ReceiverConfig]] = WebhookConfig

    def __init__(self, config: WebhookConfig, session: aiohttp.ClientSession) -> None:
        self._url = _http.secret_url(config.url_file) if config.url_file else Secret(config.url or "")
        self._key = read_secret(config.secret_file) if config.secret_file else None
        self._proxy = config.proxy
        self._session = session

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """The body; times are RFC 3339 in UTC, a number that is not finite, or means nothing, is null."""
        return {
            "schema": SCHEMA,
            "dedup_key": dedup_key,
            **{name: _plain(value) for name, value in asdict(message).items()},
            **(NO_RATIO if (message.ratio, message.before) == (1.0, 0.0) else {}),
            "summary": clean(message.summary, _LONG),
            "facts": [{"label": clean(label), "value": clean(value)} for label, value in message.facts],
            "scope": [{"label": clean(label), "value": clean(value)} for label, value in message.scope],
            "advice": [clean(line, _LONG) for line in message.advice],
            "opened_at": _rfc3339(message.opened_at),
            "at": _rfc3339(message.at),
            "link": clean(message.link, _LINK),
        }

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
        """POSTs the payload, with the id that stays the same however often this message is sent."""
        body = orjson.dumps(payload)
        url = self._url.reveal()
        with _http.network_errors():
            async with self._session.post(
                url,
                data=body,
                headers=self._headers(body, dedup_key),
                proxy=_http.proxy_for(url, self._proxy),
                allow_redirects=False,
            ) as answer:
                _judge(answer.status, _http.retry_after(answer.headers, time.time()))

    def _headers(self, body: bytes, dedup_key: str) -> dict[str, str]:
        timestamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"verlwatch/{__version__}",
            "X-Verlwatch-Id": dedup_key,
            "X-Verlwatch-Timestamp": timestamp,
        }
        if self._key is not None:
            headers["X-Verlwatch-Signature"] = f"sha256={signature(self._key.reveal(), timestamp, body)}"
        return headers


def signature(key: str, timestamp: str, body: bytes) -> str:
    """Hex HMAC-SHA256 over ``timestamp.body``: without the time a recorded request could be sent again later."""
    return hmac.new(key.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def _judge(status: int, wait: float | None) -> None:
    """Returns for a yes, raises for a no."""
    if 200 <= status < 300:  # noqa: PLR2004 - the class of yes
        return
    if status in _http.RETRY_STATUS or status >= 500:  # noqa: PLR2004 - the class of server errors
        raise TransientError(f"the receiver answered {status}", wait)
    if status < 400:  # noqa: PLR2004 - the class of redirects
        raise PermanentError(f"the receiver answered {status}; redirects are not followed: configure the final URL")
    raise PermanentError(f"the receiver answered {status}; see docs/WEBHOOK.md for what it must accept")


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
