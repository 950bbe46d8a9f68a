"""The words that channels put around a message, and the message itself, in the language of its receiver."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import NamedTuple

from verlwatch.core.types import Language, Message


class Words(NamedTuple):
    """What channels say besides what a message says."""

    advice: str
    recent: str
    """Behind the name of the metric."""
    incident: str
    message: str
    page: str
    more: str
    """``{}`` stands for how many lines were left out."""
    colon: str
    comma: str
    reasons: Mapping[str, str]


_EN = Words(
    advice="What to try",
    recent="the last steps",
    incident="incident",
    message="message",
    page="status page",
    more="… and {} more",
    colon=": ",
    comma=", ",
    reasons={},
)


@cache
def _zh() -> ModuleType:
    """Loaded when somebody reads Chinese: its patterns take more than a megabyte."""
    from verlwatch.shell.notifiers import _zh as module  # noqa: PLC0415

    return module


@cache
def _chinese() -> Words:
    return Words(
        advice="建议",
        recent="最近各步",
        incident="事件",
        message="消息",
        page="状态页",
        more="……另有 {} 行",
        colon="：",  # noqa: RUF001 - as Chinese writes it
        comma="，",  # noqa: RUF001 - the same
        reasons=_zh().REASONS,
    )


DIGEST = "digest"
"""In the place of a rule's name: the message tells of several incidents, each with its id in a line."""


def words(message: Message) -> Words:
    """In the language of the message."""
    return _chinese() if message.language == "zh" else _EN


def incident_named(message: Message, name: str) -> str:
    """The incident as a footer names it; empty for what is none, and whose id nobody can silence or accept."""
    return "" if message.rule == DIGEST or message.reason == "finished" else f"{words(message).incident} {name}"


def reason_word(message: Message) -> str:
    """Why the message was sent."""
    return words(message).reasons.get(message.reason, message.reason)


def rule_and_reason(message: Message) -> tuple[str, ...]:
    """Which rule says so, and why the message was sent, unless that is the same word."""
    return (message.rule,) if message.rule == message.reason else (message.rule, reason_word(message))


def in_language(message: Message, language: Language) -> Message:
    """The message, as composed in English, in ``language``; one that is put together from others is in it already."""
    if not language == "zh" != message.language:
        return message
    translated: Message = _zh().chinese(message)
    return translated
