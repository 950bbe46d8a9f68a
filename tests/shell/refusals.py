"""How a channel's no is read, whatever the channel."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest


async def refused(
    sending: Awaitable[None], error: type[Exception], text: str, wait: float | None, *secrets: str
) -> None:
    """Sends, expects ``error`` with ``text`` and the wait that the channel asked for, and none of ``secrets`` in it."""
    with pytest.raises(error, match=text) as caught:
        await sending
    assert getattr(caught.value, "retry_after", None) == wait
    for secret in secrets:
        assert secret not in str(caught.value)
