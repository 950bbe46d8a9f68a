"""When several rows of the outbox go out as one message, so that a receiver gets no more than it takes.

Two reasons: more wait than the channel's rate leaves room for, and become one digest (or, all of one incident, its
newest state); or what an incident had to tell waited too long, and is told as its newest state.  Either is committed
before it is sent: whoever is killed in between sends the same again, under the same id.

A digest tells only of rows that the receiver cannot have yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import structlog

from verlwatch.core.types import Message, Notification
from verlwatch.shell._outbox import Outbox
from verlwatch.shell._rows import OutboxRow
from verlwatch.shell.notifiers import Notifier, in_language
from verlwatch.shell.notifiers._digest import digest, newest_state

COLLAPSE_AFTER_S = 3600.0

_log = structlog.get_logger(__name__)


class Merging:
    """What is merged for one receiver."""

    def __init__(self, outbox: Outbox, name: str, notifier: Notifier, collapse_after_s: float) -> None:
        self._outbox = outbox
        self._name = name
        self._notifier = notifier
        self._collapse_after_s = collapse_after_s

    async def gather(self, room: float, now: float) -> int:
        """Makes one message of what waits where that is more than ``room``; by how many the rows became fewer."""
        if not self._notifier.DIGEST:
            return 0
        rows = await self._outbox.untried(self._name)
        if len(rows) < 2 or len(rows) <= room:  # noqa: PLR2004 - one is no digest
            return 0
        if len({row.incident for row in rows}) == 1:
            await self._as_newest_state(rows, now)
        else:
            key = f"digest-{sha256(' '.join(row.dedup_key for row in rows).encode()).hexdigest()[:16]}"
            await self._merge(rows, key, key, digest(self._messages(rows), key), now)
        return len(rows) - 1

    async def newest(self, row: OutboxRow, now: float, *, at_once: bool) -> tuple[OutboxRow, int]:
        """``row``, or where it waited too long (``at_once``: in any case) one that stands for its whole incident.

        And by how many the rows became fewer.
        """
        if not at_once and now - row.created_at < self._collapse_after_s:
            return row, 0
        rows = await self._outbox.of_incident(row)
        if len(rows) < 2:  # noqa: PLR2004 - one is the newest itself
            return row, 0
        return await self._as_newest_state(rows, now), len(rows) - 1

    async def _as_newest_state(self, rows: Sequence[OutboxRow], now: float) -> OutboxRow:
        key = f"{rows[-1].dedup_key}+{len(rows) - 1}"
        return await self._merge(rows, key, rows[-1].incident, newest_state(self._messages(rows)), now)

    def _messages(self, rows: Sequence[OutboxRow]) -> list[Message]:
        return [in_language(row.message, self._notifier.language) for row in rows]

    async def _merge(
        self, rows: Sequence[OutboxRow], key: str, incident: str, message: Message, now: float
    ) -> OutboxRow:
        notification = Notification(key, incident, self._name, message.reason, message)
        _log.info("messages are sent as one", receiver=self._name, id=key, messages=len(rows))
        return await self._outbox.merge(rows, notification, now)
