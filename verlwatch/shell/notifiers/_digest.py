"""Several messages as one: a digest of many incidents, the newest state of one.

They are in the language of their receiver, and so is what is made of them.
"""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from verlwatch.core.types import ClosedAs, Language, Message, Severity
from verlwatch.shell.notifiers._words import DIGEST, reason_word

_OVER = frozenset(get_args(ClosedAs))
_SEVERITIES = get_args(Severity)
_WHY = {
    "en": "More came at once than this channel takes one by one, so they come as one message.",
    "zh": "同时发生的事件多于此渠道可逐条接收的数量，故合并为一条。",
}


def digest(messages: Sequence[Message], key: str) -> Message:
    """One message that tells how each incident stands of which ``messages``, oldest first, tell.

    ``key`` stands for the incidents together.  The numbers are those of the incident with the largest ratio.  Each
    incident has a line, with its id, and so has each run that is done: a channel that has no room for all says how
    many it leaves out.
    """
    newest = {message.incident: message for message in messages}
    told = sorted(newest.values(), key=lambda message: (_place(message), -_rank(message)))
    worst = max(told, key=lambda message: message.ratio)
    runs = sorted({message.run for message in told})
    return replace(
        worst,
        incident=key,
        reason=told[0].reason,
        closed_as=told[0].closed_as,
        run=", ".join(runs),
        rule=DIGEST,
        phase="",
        severity=max((message.severity for message in told), key=_SEVERITIES.index),
        title=_title(told, worst.language),
        summary=_WHY[worst.language],
        facts=(),
        evidence=tuple(map(_line, told)),
        advice=(),
        sparkline="",
        recent=(),
        opened_at=min(message.opened_at for message in told),
        at=max(message.at for message in told),
    )


def _line(message: Message) -> str:
    return message.title if message.reason == "finished" else f"{message.incident} {message.title}"


def _place(message: Message) -> int:
    """What is open comes first, then what is over, then runs that are done, which is no incident."""
    return 2 if message.reason == "finished" else int(message.reason in _OVER)


def _rank(message: Message) -> int:
    return _SEVERITIES.index(message.severity)


def _title(told: Sequence[Message], language: Language) -> str:
    is_open, over, done = (sum(_place(message) == place for message in told) for place in range(3))
    incidents, runs = is_open + over, len({message.run for message in told if message.reason != "finished"})
    parts = []
    if language == "zh":
        states = [f"{count} 个{word}" for count, word in ((is_open, "未结束"), (over, "已结束")) if count]
        parts += [f"{runs} 个训练中有 {incidents} 个事件：{'，'.join(states)}"] if incidents else []
        return "；".join([*parts, *([f"{done} 个训练已完成"] if done else [])])
    states = [f"{count} {word}" for count, word in ((is_open, "open"), (over, "over")) if count]
    parts += [f"{_counted(incidents, 'incident')} in {_counted(runs, 'run')}: {', '.join(states)}"] if incidents else []
    return "; ".join([*parts, *([f"{_counted(done, 'run')} finished"] if done else [])])


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def newest_state(messages: Sequence[Message]) -> Message:
    """The last of an incident's ``messages``, oldest first, with a sentence on what all of them tell."""
    last = messages[-1]
    counts = Counter(map(reason_word, messages))
    first = {reason_word(message): message.step for message in reversed(messages)}
    if last.language == "zh":
        parts = [f"第 {first[why]} 步{why}" if count == 1 else f"{why} {count} 次" for why, count in counts.items()]
        return replace(last, summary=f"{last.summary}延迟送达，合并为一条：{'，'.join(parts)}。")
    parts = [f"{why} at step {first[why]}" if count == 1 else f"{why} {count} times" for why, count in counts.items()]
    return replace(last, summary=f"{last.summary} Told late, in one message: {', '.join(parts)}.")
