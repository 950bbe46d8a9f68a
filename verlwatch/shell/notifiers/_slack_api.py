"""Slack's Web API, as much of it as a bot that tells of incidents needs.

Over aiohttp and not by slack_sdk: its client raises where Retry-After is a date, and its log shows what it sends.
An answer of status 200 may be a no: ``ok`` is false and ``error`` a word (docs.slack.dev: each method's page).
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import orjson

from verlwatch.fields import Secret, SecretError, read_secret
from verlwatch.shell.notifiers import _http
from verlwatch.shell.notifiers._base import PermanentError, TransientError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

URL = "https://slack.com/api"
_JSON = "application/json; charset=utf-8"
_TOKEN = re.compile(r"xox[!-~]{5,}")
_WORD = re.compile(r"[a-z0-9_]{1,80}")

_AGAIN = frozenset(
    {
        "fatal_error",
        "internal_error",
        "message_limit_exceeded",
        "rate_limited",
        "ratelimited",
        "request_timeout",
        "service_unavailable",
        "team_added_to_org",
    }
)
"""Words for a no that passes."""
_TOKEN_BAD = "the bot token is wrong or was revoked; copy the app's Bot User OAuth Token into the file"  # noqa: S105 - no token
_FORBIDDEN = "the workspace forbids the app to post there; ask its administrators"
_PLEASE_REPORT = "Slack did not understand the message; please report this"
_REASONS = {
    "account_inactive": _TOKEN_BAD,
    "channel_not_found": "there is no such channel, or it is private and the app is not in it; write the channel's ID "
    "(Slack shows it at the end of the channel's details) and invite the app to it",
    "ekm_access_denied": _FORBIDDEN,
    "invalid_arguments": _PLEASE_REPORT,
    "invalid_auth": _TOKEN_BAD,
    "invalid_blocks": _PLEASE_REPORT,
    "invalid_blocks_format": _PLEASE_REPORT,
    "is_archived": "the channel is archived; choose another channel",
    "missing_scope": "the app lacks a scope: chat:write to tell, files:write for images; add it and reinstall the app",
    "msg_blocks_too_long": _PLEASE_REPORT,
    "msg_too_long": _PLEASE_REPORT,
    "no_permission": _FORBIDDEN,
    "not_allowed_token_type": "the token is not a bot's; copy the app's Bot User OAuth Token (xoxb-…) into the file",
    "not_authed": _TOKEN_BAD,
    "not_in_channel": "the app is not in the channel; invite it there (/invite @the-app)",
    "restricted_action": _FORBIDDEN,
    "team_access_not_granted": _FORBIDDEN,
    "token_expired": _TOKEN_BAD,
    "token_revoked": _TOKEN_BAD,
}
"""Why a no is final: the same request can only be refused again until a person changes something."""


class RefusedError(PermanentError):
    """A no that is final; ``word`` is Slack's own for it."""

    def __init__(self, method: str, word: str) -> None:
        reason = _REASONS.get(word, "change what it names, or see docs.slack.dev for what it means")
        super().__init__(f"Slack answered {method} with {word}: {reason}")
        self.word = word


class SlackApi:
    """The API on behalf of one bot.  Every method raises TransientError, RefusedError or PermanentError."""

    def __init__(self, token_file: str, proxy: str | None, session: aiohttp.ClientSession, url: str = URL) -> None:
        self._token = _bot_token(token_file)
        self._proxy = proxy
        self._session = session
        self._url = url

    async def call(self, method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of a method that takes JSON."""
        return await self._ask(method, orjson.dumps(arguments), _JSON)

    async def upload(self, data: bytes, name: str, about: str) -> str:
        """Puts a file where it can be shared from by `files.completeUploadExternal`; its id.

        ``about`` is what a screen reader says instead of it.
        """
        method = "files.getUploadURLExternal"
        form = urlencode({"filename": name, "length": len(data), "alt_txt": about}).encode()
        answer = await self._ask(method, form, "application/x-www-form-urlencoded")
        url, file_id = answer.get("upload_url"), answer.get("file_id")
        if not isinstance(file_id, str) or not isinstance(url, str) or not self._is_slack_s(url):
            raise PermanentError(f"Slack answered {method} without an address of its own to upload to")
        status, _, _ = await self._post(url, data, {"Content-Type": "application/octet-stream"})
        if status != 200:  # noqa: PLR2004 - HTTP's yes
            raise TransientError(f"Slack answered the upload of an image with {status}")
        return file_id

    def _is_slack_s(self, url: str) -> bool:
        """Whether a URL that Slack gave is Slack's: what is configured decides where data may go."""
        given, own = urlsplit(url), urlsplit(self._url)
        host = given.hostname or ""
        return given.scheme == own.scheme and (host == own.hostname or host.endswith(".slack.com"))

    async def _ask(self, method: str, body: bytes, kind: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token.reveal()}", "Content-Type": kind}
        status, wait, said = await self._post(f"{self._url}/{method}", body, headers)
        return _judged(method, status, wait, said)

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, float | None, bytes]:
        """Status, Retry-After and body of the answer."""
        proxy = _http.proxy_for(url, self._proxy)
        with _http.network_errors():
            async with self._session.post(
                url, data=body, headers=headers, proxy=proxy, allow_redirects=False
            ) as answer:
                return answer.status, _http.retry_after(answer.headers, time.time()), await answer.read()


def _bot_token(path: str) -> Secret:
    token = read_secret(path)
    if not _TOKEN.fullmatch(token.reveal()):
        raise SecretError(f"{path}: holds no Slack token; put the app's Bot User OAuth Token (xoxb-…) into it, alone")
    return token


def _judged(method: str, status: int, wait: float | None, body: bytes) -> dict[str, Any]:
    """The answer of a yes; raises for a no.  Of the body only Slack's own words are repeated."""
    if status in _http.RETRY_STATUS or status >= 500:  # noqa: PLR2004 - the class of server errors
        raise TransientError(f"Slack answered {method} with {status}", wait)
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        if status < 300:  # noqa: PLR2004 - the class of yes
            raise TransientError(f"the answer to {method} was no JSON of Slack's; is a proxy or another server there?")
        raise PermanentError(f"Slack answered {method} with {status}; is a proxy or another server in its place?")
    if answer["ok"]:
        return answer
    word = answer.get("error")
    word = word if isinstance(word, str) and _WORD.fullmatch(word) else "an unknown error"
    if word in _AGAIN:
        raise TransientError(f"Slack answered {method} with {word}", wait)
    raise RefusedError(method, word)
