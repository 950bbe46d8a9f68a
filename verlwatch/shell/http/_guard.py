"""Who may ask, and what every answer carries.

A page the user visits must not be able to read this server through the user's browser: requests whose ``Host`` is not
one of ours are refused (DNS rebinding), and nothing but GET and HEAD is served, but for a hub's deliveries, which have
tokens of their own, and for what people may change.  Where a token is configured everything needs it but
the two health questions, which are answered in short without.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable

import orjson
from aiohttp import hdrs, web

from verlwatch.fields import Secret, host_of

OPEN_PATHS = frozenset({"/healthz", "/-/healthy", "/readyz", "/-/ready"})
"""Answered without the token: probes have none."""

BODY_LIMIT = 64 * 1024
"""Bytes a request may announce.  Only those of changes, and of a hub's deliveries, are read."""

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Guard:
    """Says which requests are refused, and why."""

    def __init__(self, hosts: Iterable[str], token: Secret | None) -> None:
        """``hosts`` are names (without port) besides the loopback ones and the address the client connected to."""
        self._hosts = _LOOPBACK_NAMES | {name for host in hosts if (name := host_of(host))}
        self._token = token

    def refusal(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to a request that may not be served; None to one that may."""
        if not self._is_ours(request):
            return failure(
                421, "this Host is not served here; to allow it add the name to http.allowed_hosts in the configuration"
            )
        if request.method not in {hdrs.METH_GET, hdrs.METH_HEAD}:
            response = failure(405, "only GET and HEAD are served")
            response.headers[hdrs.ALLOW] = "GET, HEAD"
            return response
        if (request.content_length or 0) > BODY_LIMIT:
            return failure(413, f"a request body may have {BODY_LIMIT} bytes at most")
        if request.path in OPEN_PATHS or self.knows(request):
            return None
        response = failure(401, "the token is missing or wrong; send it as Authorization: Bearer <token>")
        # A browser cannot send a bearer token by itself: it may give the token as the password, with any user name.
        response.headers[hdrs.WWW_AUTHENTICATE] = 'Basic realm="verlwatch", charset="UTF-8"'
        return response

    def refusal_to_change(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to a request that would change something and may not; None to one that may.

        Only a bearer token counts: a browser sends a password by itself, also for a page of another site.  Such a page
        cannot send ``application/json``, or a DELETE, without asking first, and is not allowed it.
        """
        if not self._is_ours(request):
            return self.refusal(request)
        if (request.content_length or 0) > BODY_LIMIT:
            return failure(413, f"a request body may have {BODY_LIMIT} bytes at most")
        if self._token is not None and not hmac.compare_digest(bearer(request), self._token.reveal().encode()):
            response = failure(401, "the token is missing or wrong; send it as Authorization: Bearer <token>")
            response.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
            return response
        if request.method == hdrs.METH_POST and request.content_type != "application/json":
            return failure(415, "send the body as Content-Type: application/json")
        return None

    def knows(self, request: web.BaseRequest) -> bool:
        """Whether the request carries the token, where one is needed."""
        return self._token is None or _knows(request, self._token)

    def _is_ours(self, request: web.BaseRequest) -> bool:
        values = request.headers.getall(hdrs.HOST, [])
        if len(values) != 1:
            return False
        name = host_of(values[0])
        return name in self._hosts or (name != "" and name == _own_address(request))


def failure(status: int, text: str) -> web.Response:
    """An error as JSON: ``{"error": text}``."""
    return web.Response(status=status, body=orjson.dumps({"error": text}), content_type="application/json")


def protect(response: web.StreamResponse) -> None:
    """Put on an answer what protects it, and take off what tells which software this is."""
    response.headers.update(_HEADERS)
    response.headers.popall(hdrs.SERVER, None)


def _own_address(request: web.BaseRequest) -> str | None:
    """The address the client connected to: to name it in ``Host`` needs no DNS, so it cannot be rebound."""
    address = request.get_extra_info("sockname")
    return address[0].removeprefix("::ffff:") if address else None


def bearer(request: web.BaseRequest) -> bytes:
    """The bearer token that a request carries; empty where it carries none."""
    scheme, credentials = _authorization(request)
    return credentials.strip().encode("utf-8", "surrogateescape") if scheme == "bearer" else b""


def _authorization(request: web.BaseRequest) -> tuple[str, str]:
    scheme, _, credentials = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    return scheme.lower(), credentials


def _knows(request: web.BaseRequest, token: Secret) -> bool:
    scheme, credentials = _authorization(request)
    given = bearer(request)
    if scheme == "basic":
        try:
            given = base64.b64decode(credentials, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return False
    return hmac.compare_digest(given, token.reveal().encode())
