"""A loopback HTTP server that answers from a script."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from types import TracebackType


@dataclass(frozen=True)
class Answer:
    """A scripted answer; ``hang`` never answers, ``drop`` closes the connection instead."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    drop: bool = False


class ScriptedServer:
    """Answers the first requests as ``script`` says and the others as `accept` does."""

    path = "/"

    def __init__(self, *script: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.script = deque(script)
        self.requests = 0
        self.url = ""
        self._tls = tls
        self._released = asyncio.Event()

    async def accept(self, request: web.Request, body: bytes) -> Answer:
        """What to answer when nothing is scripted."""
        raise NotImplementedError

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        body = await request.read()
        answer = self.script.popleft() if self.script else await self.accept(request, body)
        if answer.hang:
            await self._released.wait()
        if answer.drop and request.transport is not None:
            request.transport.close()
        return web.Response(status=answer.status, text=answer.body, headers=answer.headers)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"{'https' if self._tls else 'http'}://{host}:{port}{self.path}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._released.set()
        await self._runner.cleanup()
