"""What a person may have done through HTTP: requests with a JSON body that change something, and what goes with them.

Such a request comes from nobody's browser by accident: it needs the bearer token where one is configured (a password
that a browser remembers will not do) and ``Content-Type: application/json``, which no form of another page can send.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from aiohttp import hdrs, web

from verlwatch.shell.http._guard import BODY_LIMIT, Guard, failure
from verlwatch.shell.store import StoreUnavailable

if TYPE_CHECKING:
    from verlwatch.core.types import Json

Action = Callable[["Json"], Awaitable[Any]]
"""Takes the object of the request's body, of a GET that of its query; what it returns is answered as JSON.

Raises ValueError, which is the asker's fault, LookupError for what is not there, or StoreUnavailable.
"""
Actions = Mapping[tuple[str, str], Action]
"""Method and path -> action."""

_PATIENCE_S = 10.0
_PLACES = {"{id}": re.compile(r"[0-9A-Za-z_-]{1,64}"), "{run}": re.compile(r".{1,200}")}
"""What may stand in a path; the name of a run may have slashes."""


def action_of(actions: Actions, request: web.BaseRequest) -> Action | None:
    """The action behind a request; what stands at ``{id}`` or ``{run}`` in its path is added to what is asked."""
    exact = actions.get((request.method, request.path))
    if exact is not None:
        return exact
    for (method, path), action in actions.items():
        for place, form in _PLACES.items():
            begin, braces, end = path.partition(place)
            key = request.path.removeprefix(begin).removesuffix(end)
            if braces and method == request.method and request.path == f"{begin}{key}{end}" and form.fullmatch(key):
                return _about(action, place.strip("{}"), key)
    return None


def _about(action: Action, name: str, key: str) -> Action:
    return lambda asked: action({**asked, name: key})


async def perform(guard: Guard, request: web.BaseRequest, action: Action) -> web.Response:
    """Guards, does and answers."""
    changes = request.method in {hdrs.METH_POST, hdrs.METH_DELETE}
    if (refused := guard.refusal_to_change(request) if changes else guard.refusal(request)) is not None:
        return refused
    try:
        asked = await _asked(request) if changes else dict(request.query)
        return web.Response(body=orjson.dumps(await action(asked)), content_type="application/json")
    except LookupError as error:
        return failure(404, str(error.args[0]) if error.args else "there is no such thing")
    except ValueError as error:
        return failure(400, str(error))
    except StoreUnavailable as error:
        return failure(503, str(error))
    except (aiohttp.ClientPayloadError, TimeoutError):
        return failure(413, f"the body must come within {_PATIENCE_S:g} s and have {BODY_LIMIT} bytes at most")


async def _asked(request: web.BaseRequest) -> Json:
    """The object in the body.  Raises ValueError, ClientPayloadError or TimeoutError."""
    data = bytearray()
    async with asyncio.timeout(_PATIENCE_S):
        async for piece in request.content.iter_any():
            data += piece
            if len(data) > BODY_LIMIT:
                raise aiohttp.ClientPayloadError("too long")
    asked = orjson.loads(bytes(data) or b"{}")
    if not isinstance(asked, dict):
        raise ValueError("the body must be a JSON object")  # noqa: TRY004 - the asker's fault, as a wrong value is
    return asked
