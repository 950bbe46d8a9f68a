"""Ways to tell people; NOTIFIERS is the list.  A new one is one file and one line here.

    NAME.py    Config (what a user sets), render (message -> payload, pure), send (payload -> yes, or an error)

`TransientError` means the same message is tried again, `PermanentError` that it becomes a dead letter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verlwatch.shell.notifiers._base import (
    DeliveryError,
    Notifier,
    PermanentError,
    Place,
    Repeater,
    TransientError,
)
from verlwatch.shell.notifiers._http import fetch, open_session
from verlwatch.shell.notifiers._sample import sample_end, sample_message
from verlwatch.shell.notifiers._text import message_text
from verlwatch.shell.notifiers._words import in_language
from verlwatch.shell.notifiers.alertmanager import AlertmanagerNotifier
from verlwatch.shell.notifiers.apprise import AppriseNotifier
from verlwatch.shell.notifiers.dingtalk import DingTalkNotifier
from verlwatch.shell.notifiers.feishu import FeishuNotifier
from verlwatch.shell.notifiers.pagerduty import PagerDutyNotifier
from verlwatch.shell.notifiers.slack import SlackNotifier
from verlwatch.shell.notifiers.slack_bot import SlackBotNotifier
from verlwatch.shell.notifiers.webhook import WebhookNotifier
from verlwatch.shell.notifiers.wecom import WeComNotifier

if TYPE_CHECKING:
    import aiohttp

    from verlwatch.fields import ReceiverConfig

__all__ = [
    "NOTIFIERS",
    "DeliveryError",
    "Notifier",
    "PermanentError",
    "Place",
    "Repeater",
    "TransientError",
    "build",
    "fetch",
    "in_language",
    "message_text",
    "notifier_type",
    "open_session",
    "sample_end",
    "sample_message",
]

NOTIFIERS: tuple[type[Notifier], ...] = (
    SlackNotifier,
    SlackBotNotifier,
    WebhookNotifier,
    AlertmanagerNotifier,
    PagerDutyNotifier,
    FeishuNotifier,
    DingTalkNotifier,
    WeComNotifier,
    AppriseNotifier,
)


def notifier_type(config: ReceiverConfig) -> type[Notifier]:
    """The notifier that a receiver's ``type`` names."""
    return next(notifier for notifier in NOTIFIERS if config.type == notifier.TYPE)


def build(config: ReceiverConfig, session: aiohttp.ClientSession) -> Notifier:
    """The notifier of a configured receiver, its secrets read.  Raises SecretError."""
    notifier = notifier_type(config)(config, session)
    notifier.language = config.language
    return notifier
