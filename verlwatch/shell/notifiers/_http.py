"""Outgoing HTTP, the same for all: no redirects, TLS verified, bounded time and size, errors without secrets.

aiohttp is imported where it is used: commands that only read a configuration start three times faster without it.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from verlwatch.fields import Secret, SecretError, parse_url, read_secret
from verlwatch.shell.notifiers._base import PermanentError, TransientError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

    import aiohttp

TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 10.0
RETRY_STATUS = frozenset({408, 429})
"""Answers below 500 after which the same request may succeed later."""


def open_session() -> aiohttp.ClientSession:
    """The one session that all notifiers share; to be closed (``async with``) by whoever opens it."""
    import aiohttp  # noqa: PLC0415 - see the module's docstring

    from verlwatch.shell.notifiers._answer import Answer  # noqa: PLC0415 - the same

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse_redirect)
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S, sock_connect=CONNECT_TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        trace_configs=[trace],
        response_class=Answer,
    )


async def _refuse_redirect(_session: Any, _context: Any, redirect: aiohttp.TraceRequestRedirectParams) -> None:
    """A redirect would carry the message, and a secret in the path, to a place nobody has configured."""
    redirect.response.close()
    raise PermanentError(
        f"the receiver answered {redirect.response.status} with a redirect, which is not followed; "
        "configure the URL it redirects to"
    )


@contextmanager
def network_errors() -> Iterator[None]:
    """Makes a TransientError, in words without the URL, of whatever goes wrong on the way there and back."""
    import aiohttp  # noqa: PLC0415 - see the module's docstring

    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError, UnicodeError a ValueError
        raise TransientError(_describe(error)) from None


async def fetch(
    session: aiohttp.ClientSession,
    url: str,
    headers: Mapping[str, str],
    limit: int,
    tls: ssl.SSLContext | None = None,
    asked: bytes | None = None,
    method: str | None = None,
) -> tuple[int, bytes]:
    """Status and body, ``limit`` bytes at most, by no proxy; raises TransientError.

    A GET, or with ``asked`` a POST of that JSON, unless ``method`` says otherwise.
    """
    from verlwatch.shell.notifiers._answer import body  # noqa: PLC0415 - see the module's docstring

    with network_errors():
        usual, more = ("GET", {}) if asked is None else ("POST", {"Content-Type": "application/json"})
        async with session.request(
            method or usual, url, headers={**headers, **more}, data=asked, allow_redirects=False, ssl=tls or True
        ) as answer:
            return answer.status, await body(answer, limit)


def _describe(error: Exception) -> str:
    """What happened; the error's own text may hold the URL and is not used."""
    import aiohttp  # noqa: PLC0415 - see the module's docstring

    match error:
        case aiohttp.ClientConnectorCertificateError():
            return (
                f"the certificate of {error.host} is not trusted; the clock, the CA certificates or a proxy are wrong"
            )
        case aiohttp.ClientHttpProxyError():
            return f"the proxy refused with status {error.status}"
        case aiohttp.ClientConnectorError():
            reason = error.os_error.strerror or type(error.os_error).__name__
            return f"cannot connect to {error.host}:{error.port}: {reason}"
        case TimeoutError():
            return f"no answer within {TIMEOUT_S:g} s"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed without an answer"
        case aiohttp.ClientPayloadError():
            return "the answer ended too early or is too long"
        case UnicodeDecodeError():
            return "the answer is no text"
        case aiohttp.InvalidURL() | UnicodeError():
            return "the URL, or that of the proxy, has a host that can be neither a name nor an address; correct it"
        case aiohttp.ClientOSError():
            return f"the connection broke: {error.strerror or type(error).__name__}"
        case aiohttp.ClientResponseError():
            return "the answer is no HTTP; is this the right port, and https where it must be?"
    return f"the request failed: {type(error).__name__}"


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a Retry-After header asks for, rounded up; None if there is none that can be read.

    Both forms of RFC 9110, 10.2.3: seconds, or an HTTP date.  A date is by the receiver's clock, which its ``Date``
    header tells; ``now`` is ours, for those that send none.
    """
    text = headers.get("Retry-After", "").strip()
    try:
        seconds = float(text) if text[:1].isdigit() else _epoch(text) - _sent_at(headers, now)
        return max(0.0, float(math.ceil(seconds)))
    except (ValueError, OverflowError):
        return None


def _sent_at(headers: Mapping[str, str], now: float) -> float:
    try:
        return _epoch(headers.get("Date", ""))
    except (ValueError, OverflowError):
        return now


def _epoch(http_date: str) -> float:
    """Raises ValueError or OverflowError."""
    date = parsedate_to_datetime(http_date)
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def secret_url(path: str) -> Secret:
    """The URL in a secret file; raises SecretError if it is none."""
    secret = read_secret(path)
    try:
        parse_url(secret.reveal())
    except ValueError as error:
        raise SecretError(f"{path}: what it holds {error}") from None
    return secret


def proxy_for(url: str, configured: str | None) -> str | None:
    """The configured proxy, else the HTTP proxy that the environment names for this host (HTTPS_PROXY, NO_PROXY …)."""
    parts = urlsplit(url)
    if configured or proxy_bypass(parts.netloc):
        return configured
    environment = getproxies()
    proxy = environment.get(parts.scheme) or environment.get("all") or ""
    if proxy and "://" not in proxy:
        return f"http://{proxy}"
    return proxy if proxy.startswith(("http://", "https://")) else None
