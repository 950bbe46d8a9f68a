"""Messages and rows as tests need them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verlwatch.core.types import Notification, Outcome
from verlwatch.shell.notifiers import sample_message

if TYPE_CHECKING:
    from verlwatch.core.types import Message, Reason


def notification(
    key: str,
    incident: str = "i1",
    *,
    receiver: str = "slack",
    reason: Reason = "opened",
    message: Message | None = None,
) -> Notification:
    """One message for one receiver."""
    body = message or replace(sample_message(), incident=incident, reason=reason, title=f"title of {key}")
    return Notification(key, incident, receiver, reason, body)


def outcome(*notifications: Notification) -> Outcome:
    """What the core says when all it has is messages."""
    return Outcome(notifications=notifications)
