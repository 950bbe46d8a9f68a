"""Prometheus' Alertmanager, API v2: an open incident is an alert that fires.

Alertmanager takes an alert for resolved when it has not heard of it for its ``resolve_timeout`` (5 minutes unless
configured), and knows none after a restart of its own.  So what was posted last is noted, and posted again each
RESEND_S for as long as the incident is open.  An open alert is posted without an end: that leaves it to Alertmanager's
own clock, whatever ours says.

That a run has finished is no alert: it is not sent, and counts as delivered.

Labels are what an alert is known by, and routed by.  Where they change (an incident that became critical, or that
another phase leads now) the alert of before is ended in the same request.  Source: Alertmanager, api/v2/openapi.yaml.
"""

from __future__ import annotations

import time
import unicodedata
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson
from pydantic import Field

from verlwatch.core.words import listed
from verlwatch.fields import ReceiverConfig, Secret, SecretError, SecretPath, Url, read_secret
from verlwatch.shell.notifiers import _http
from verlwatch.shell.notifiers._base import PermanentError, Repeater, TransientError
from verlwatch.shell.notifiers._chat import neutral
from verlwatch.shell.notifiers._text import clean
from verlwatch.shell.notifiers._words import reason_word, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import aiohttp

    from verlwatch.core.types import Message, Scope
    from verlwatch.shell.notifiers._base import Place

_PATH = "/api/v2/alerts"
_LONG = 1000
_STEERING = frozenset({"Cc", "Cf", "Cs"})
"""Unicode's controls, signs of format, and lone surrogates."""
_LINK = 2000
_PLACES = frozenset({"host", "gpu", "rank"})
_PLACES_SHOWN = 32
_AT_ONCE = 64
"""Alerts in one request."""


class AlertmanagerConfig(ReceiverConfig):
    """An Alertmanager; of a cluster each member is a receiver of its own, as for Prometheus."""

    type: Literal["alertmanager"]
    url: Url = Field(description="Where Alertmanager answers, for example http://alertmanager:9093.")
    token_file: SecretPath | None = Field(
        default=None, description="File with a bearer token, where something in front of it asks for one."
    )
    proxy: Url | None = Field(default=None, description="HTTP proxy; default: what the environment says.")


class AlertmanagerNotifier(Repeater):
    """One Alertmanager."""

    TYPE: ClassVar[str] = "alertmanager"
    DIGEST: ClassVar[bool] = False
    RESEND_S: ClassVar[float] = 60.0
    Config: ClassVar[type[ReceiverConfig]] = AlertmanagerConfig

    def __init__(self, config: AlertmanagerConfig, session: aiohttp.ClientSession) -> None:
        self._url = config.url.rstrip("/").removesuffix(_PATH) + _PATH
        self._token = _token(config.token_file) if config.token_file else None
        self._proxy = config.proxy
        self._session = session

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """The alert; it has an end once the incident is closed.  Empty where there is nothing to send."""
        if message.reason == "finished":
            return {}
        labels = {
            "alertname": message.rule or "verlwatch",
            "run": message.run,
            "phase": message.phase,
            "severity": message.severity,
            "incident": message.incident,
            **_places(message.scope),
        }
        alert: dict[str, Any] = {
            "labels": {name: _label(value) for name, value in labels.items()},
            "annotations": {
                "summary": neutral(message.title),
                "description": "\n".join(filter(None, _description(message))),
                "message_id": clean(dedup_key),
            },
            "startsAt": _rfc3339(message.opened_at),
        }
        if message.closed_as:
            alert["endsAt"] = _rfc3339(max(message.at, message.opened_at))
        link = clean(message.link, _LINK)
        if link.startswith(("http://", "https://")):
            alert["generatorURL"] = link
        return alert

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:  # noqa: ARG002 - it is in the payload
        """Posts the alert."""
        if not payload:
            return
        await self._post([payload])

    async def send_at(self, payload: dict[str, Any], dedup_key: str, place: Place) -> None:  # noqa: ARG002 - it is in the payload
        """Posts the alert, and the end of the one before if that had other labels."""
        if not payload:
            return
        before = _alert(await place.read())
        replaced = before is not None and before["labels"] != payload["labels"]
        ended = [{**before, "endsAt": _rfc3339(time.time())}] if before and replaced else []
        await self._post([*ended, payload])
        await place.note("" if "endsAt" in payload else orjson.dumps(payload).decode())

    async def resend(self, places: Sequence[str]) -> None:
        """Posts all alerts that are open again."""
        alerts = [alert for alert in map(_alert, places) if alert is not None]
        for first in range(0, len(alerts), _AT_ONCE):
            await self._post(alerts[first : first + _AT_ONCE])

    async def _post(self, alerts: list[dict[str, Any]]) -> None:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.reveal()}"
        with _http.network_errors():
            async with self._session.post(
                self._url,
                data=orjson.dumps(alerts),
                headers=headers,
                proxy=_http.proxy_for(self._url, self._proxy),
                allow_redirects=False,
            ) as answer:
                _judge(answer.status, _http.retry_after(answer.headers, time.time()))


def _token(path: str) -> Secret:
    token = read_secret(path)
    if not (token.reveal().isascii() and token.reveal().isprintable()):
        raise SecretError(f"{path}: holds what can be no bearer token; put the token into it, alone and on one line")
    return token


def _alert(text: str) -> dict[str, Any] | None:
    """What was noted; None if it cannot be read."""
    try:
        alert = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return alert if isinstance(alert, dict) and isinstance(alert.get("labels"), dict) else None


def _judge(status: int, wait: float | None) -> None:
    """Returns for a yes, raises for a no."""
    if status == 200:  # noqa: PLR2004 - Alertmanager's yes
        return
    if status in _http.RETRY_STATUS or status >= 500:  # noqa: PLR2004 - the class of server errors
        raise TransientError(f"Alertmanager answered {status}", wait)
    if status < 300:  # noqa: PLR2004 - the class of yes
        raise TransientError(f"the answer was {status} but Alertmanager's yes is 200; is another server in its place?")
    if status < 400:  # noqa: PLR2004 - the class of redirects
        raise PermanentError(f"Alertmanager answered {status}; redirects are not followed: configure the final URL")
    if status in {401, 403}:
        raise PermanentError(f"Alertmanager answered {status}; set token_file to a file with a token that it takes")
    if status == 404:  # noqa: PLR2004 - not found
        raise PermanentError(
            "Alertmanager answered 404; is url its address, with the prefix of its paths if it has one?"
        )
    raise PermanentError(f"Alertmanager answered {status}: it did not understand the alert; please report this")


# ---------------------------------------------------------------------------------------------------- rendering
def _label(text: str) -> str:
    """As it is, so that routes and silences match it; JSON carries any sign but halves of one.  Nothing that steers."""
    return "".join(sign for sign in text if unicodedata.category(sign) not in _STEERING)[:_LONG]


def _places(scope: Scope) -> dict[str, str]:
    """Hosts, cards and ranks, several of a kind in one label: ``rank="0-3, 7"``."""
    kinds = dict.fromkeys(kind for kind, _ in scope if kind in _PLACES)
    return {kind: listed((value for label, value in scope if label == kind), _PLACES_SHOWN) for kind in kinds}


def _description(message: Message) -> list[str]:
    """Plain lines: whatever Alertmanager passes them on to finds no mention, link or tag in them."""
    say = words(message)
    bars = neutral(message.sparkline)
    return [
        neutral(message.summary, _LONG),
        *(f"{neutral(label)}{say.colon}{neutral(value)}" for label, value in message.facts),
        f"{bars} {neutral(message.phase)}{say.comma}{say.recent}" if bars else "",
        *(f"| {neutral(line)}" for line in message.evidence),
        *(f"→ {neutral(line, _LONG)}" for line in message.advice),
        f"{say.incident} {neutral(message.incident)}{say.comma}{neutral(reason_word(message))}",
        neutral(message.link, _LINK),
    ]


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
