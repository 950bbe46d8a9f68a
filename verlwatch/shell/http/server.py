"""The HTTP server: binding, and the way of a request through the guard to its answer."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from verlwatch.shell.http._actions import Actions, action_of, perform
from verlwatch.shell.http._guard import Guard, failure, protect
from verlwatch.shell.http.api import probes, routes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo

    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.streams import StreamReader

    from verlwatch.fields import Secret
    from verlwatch.shell.http._source import StatusSource

Post = Callable[[web.BaseRequest], Awaitable[web.Response]]

_STOP_GRACE_S = 2.0
_BACKLOG = 128

log = structlog.get_logger()


class ListenError(Exception):
    """The server cannot start; the text says where it was to listen, what is wrong and what to do."""


class Server:
    """A running server.  ``url`` is where a person on this host opens it; ``port`` the port it really has."""

    def __init__(self, runner: web.ServerRunner, listener: socket.socket, scheme: str) -> None:
        self._runner = runner
        host, self.port = listener.getsockname()[:2]
        address = ipaddress.ip_address(host)
        if address.is_unspecified:
            host = "127.0.0.1" if address.version == 4 else "::1"  # noqa: PLR2004 - the version of IP
        self.url = f"{scheme}://{_bracketed(host)}:{self.port}/"

    async def stop(self) -> None:
        """Stop listening and close the connections; requests being answered have two seconds."""
        await self._runner.cleanup()


async def start(
    source: StatusSource,
    listen: tuple[str, int],
    token: Secret | None = None,
    allowed_hosts: Iterable[str] = (),
    *,
    else_any_port: bool = False,
    tls: ssl.SSLContext | None = None,
    posts: Mapping[str, Post] | None = None,
    actions: Actions | None = None,
    zone: tzinfo | None = None,
) -> Server:
    """Listen on ``listen`` (host, port; port 0 is any free one) and answer from ``source`` until stopped.

    A name is bound by its first address, IPv4 before IPv6.  ``else_any_port`` is for a port the user did not choose:
    where it is taken, e.g. by another user's daemon, a free one is used; say ``Server.url`` then.  ``posts`` answer the
    POST requests to their paths, and see to it themselves who may send them; ``actions`` are guarded.  Raises
    ListenError, also for an address others can reach without a ``token``.
    """
    host, port = listen
    address = await _resolve(host, port)
    if token is None and not ipaddress.ip_address(address[0]).is_loopback:
        raise ListenError(
            f"cannot listen on {_bracketed(host)}:{port}: others can reach that address, so a token is needed; "
            "set http.token_file, or listen on 127.0.0.1"
        )
    listener = _bind(host, address, else_any_port=else_any_port)
    guard = Guard((host, *allowed_hosts), token)
    server = web.Server(
        _answering(guard, source, zone, posts or {}, actions or {}),
        request_factory=_request_factory(asyncio.get_running_loop()),
        access_log=None,
        logger=_silent(),
        keepalive_timeout=75.0,
        lingering_time=0.0,
        auto_decompress=False,  # who reads a body bounds it before and after
    )
    runner = web.ServerRunner(server, shutdown_timeout=_STOP_GRACE_S)
    await runner.setup()
    await web.SockSite(runner, listener, ssl_context=tls).start()
    return Server(runner, listener, "https" if tls else "http")


def _answering(
    guard: Guard, source: StatusSource, zone: tzinfo | None, posts: Mapping[str, Post], actions: Actions
) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    in_full, in_short = routes(source, zone), probes(source)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        try:
            if request.method == "POST" and (post := posts.get(request.path)) is not None:
                return await post(request)
            if (action := action_of(actions, request)) is not None:
                return await perform(guard, request, action)
            if (refused := guard.refusal(request)) is not None:
                return refused
            answers = in_full if guard.knows(request) else in_short
            if (found := answers.get(request.path)) is not None:
                return found()
        except Exception:
            log.exception("answering a request failed", path=request.path)
            return failure(500, "answering failed; the log of verlwatch says why")
        return failure(404, "nothing here; / is for people, /api/v1/status for programs, /metrics for Prometheus")

    return answer


class _Request(web.BaseRequest):
    """A request whose answer is protected, also where aiohttp itself answers because the request is malformed."""

    async def _prepare_hook(self, resp: web.StreamResponse) -> None:
        protect(resp)


def _request_factory(loop: asyncio.AbstractEventLoop) -> Callable[..., web.BaseRequest]:
    def request(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        return _Request(message, payload, protocol, writer, task, loop)

    return request


def _silent() -> logging.Logger:
    """Takes aiohttp's own words: a traceback for each malformed request, with which a port scan could fill a disk."""
    silent = logging.getLogger("verlwatch.http.malformed")
    silent.disabled = True
    return silent


async def _resolve(host: str, port: int) -> tuple[str, int]:
    """The first numeric address of ``host``, IPv4 before IPv6."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ListenError(f"cannot listen on {_bracketed(host)}:{port}: {_reason(error)}") from None
    addresses = sorted(found, key=lambda one: one[0] != socket.AF_INET)
    return str(addresses[0][4][0]), port


def _bind(host: str, address: tuple[str, int], *, else_any_port: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart need not wait for TIME_WAIT
        try:
            listener.bind(address)
        except OSError as error:
            if not (else_any_port and error.errno == errno.EADDRINUSE):
                raise
            listener.bind((address[0], 0))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ListenError(f"cannot listen on {_bracketed(host)}:{address[1]}: {_reason(error)}") from None
    return listener


def _reason(error: OSError) -> str:
    text = (error.strerror or str(error)).lower()
    match error.errno:
        case errno.EADDRINUSE:
            return f"{text}; stop what listens there (ss -ltnp shows it), or set another port in http.listen"
        case errno.EACCES:
            return f"{text}; choose a port above 1023 in http.listen"
        case _:
            return f"{text}; http.listen must name an address of this host"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
