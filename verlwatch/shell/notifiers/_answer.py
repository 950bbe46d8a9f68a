"""The body of an HTTP answer, of which no more is kept than is asked for, however much the other side sends."""

from __future__ import annotations

import aiohttp

BODY_LIMIT = 64 * 1024
"""Bytes of a receiver's answer; Slack's are a few words."""


async def body(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole body, ``limit`` bytes at most.

    Raises:
        aiohttp.ClientPayloadError: it is longer, or ends too early.
    """
    data = bytearray()
    async for piece in answer.content.iter_any():
        data += piece
        if len(data) > limit:
            answer.close()
            raise aiohttp.ClientPayloadError("too long")
    return bytes(data)


class Answer(aiohttp.ClientResponse):
    """As aiohttp's; `read`, and with it `text` and `json`, is bounded, also where another library calls it."""

    async def read(self) -> bytes:
        """The body, BODY_LIMIT bytes at most."""
        if self._body is None:
            self._body = await body(self, BODY_LIMIT)
        return self._body
