"""What rules say in words of their own (`Diagnosis.title`), in Chinese: each English sentence has a pattern.

Sentences are made of others (``over: SENTENCE``), and so are their patterns: a part of the English text stands in the
Chinese one as ``{0}``, as it is; as ``{0:t}``, a sentence, or ``{0:v}``, a value, that is said in Chinese itself; as
``{0:n}``, with its units and counts in Chinese; as ``{0:p}``, a phase or a stage; as ``{0:c}``, a card and its host.
What has no pattern stays English: a name, a command, a line of the log.
"""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from verlwatch.core.types import Message
from verlwatch.shell.notifiers import _zh_ahead, _zh_fleet, _zh_gpu, _zh_health, _zh_life
from verlwatch.shell.notifiers._zh_phases import PHASES
from verlwatch.shell.notifiers._zh_rule import Pairs, Words, with_units

LONGEST = 600
"""No sentence of ours is longer."""
COMMON = Words(
    titles=(
        (r"over: (.+)", "已结束：{0:t}"),
        (r"accepted by a person: (.+); not told again until it has ended", "已由人工接受：{0:t}；在其结束之前不再告知"),
        (r"the run ended with this open: (.+)", "训练已结束，当时仍存在：{0:t}"),
        (r"nothing more is heard, closed: (.+)", "此后再无消息，已关闭：{0:t}"),
        (r"comes and goes: (.+); no more of it for an hour", "时有时无：{0:t}；一小时内不再告知"),
        (r"still: (.+)", "仍然：{0:t}"),
        (r"again: (.+)", "再次：{0:t}"),
        (r"It was: (.+); over (.+?) after it was found", "此前：{0:t}；发现之后 {1:n}结束"),
        (r"It was: (.+)", "此前：{0:t}"),
    ),
    values=((r"(.+) ago", "{0:n}前"),),
    labels={"First told": "首次告知"},
)
ALL = (COMMON, _zh_fleet.WORDS, _zh_gpu.WORDS, _zh_ahead.WORDS, _zh_health.WORDS, _zh_life.WORDS)
"""The first pattern that fits counts."""
RULES = frozenset(name for words in ALL for name in words.rules)
LABELS: Mapping[str, str] = {label: chinese for words in ALL for label, chinese in words.labels.items()}
STAGES = {"start": "启动", "loading": "加载", "first step": "第一步", "validation": "验证", "checkpoint": "保存检查点"}


def _compiled(tables: tuple[Pairs, ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), chinese) for table in tables for pattern, chinese in table)


_TITLES = _compiled(tuple(words.titles for words in ALL))
_VALUES = _compiled(tuple(words.values for words in ALL))
_EVIDENCE = _compiled(tuple(words.evidence for words in ALL))
_ADVICE = _compiled(tuple(words.advice for words in ALL))
QUOTED = frozenset(label for words in ALL for label in words.quoted)
"""Facts whose values are names and texts of others."""
_MORE = re.compile(r" and ([0-9]+) more$")
_BLANK = re.compile(
    r"(?<=[，。：；（\u4e00-\u9fff]) +(?=[\u4e00-\u9fff，。：；（）])|(?<=[，。：；（）]) +| +(?=[，。：；（）])"
)
"""Blanks that Chinese does not write."""
_PRINTED = re.compile(r"(^|; )(.{1,80}?), ([0-9.e+]+ (?:s|min|h)) ago: ")


def title(message: Message) -> str:
    """Of a message of a rule with words of its own."""
    head = f"{message.run}: "
    if message.title.startswith(head):
        return f"{message.run}：{_sentence(message.title.removeprefix(head))}"
    return _sentence(message.title)


def summary(message: Message) -> str:
    """The same."""
    text = message.summary.removesuffix(".")
    said = _said(_TITLES, text)
    return message.summary if said is None else f"{said}。"


def fact(label: str, value: str) -> str:
    """The value of a fact with this English label."""
    if label == "Still printing":
        return _PRINTED.sub(lambda found: f"{found[1]}{_writer(found[2])}（{with_units(found[3])}前）：", value)
    return value if label in QUOTED else _value(value)


def evidence(line: str) -> str:
    """A sentence of ours; what quotes a log stays."""
    said = _said(_EVIDENCE, line)
    return line if said is None else said


def advice(line: str) -> str:
    """What to try."""
    said = _said(_ADVICE, line)
    return line if said is None else said


class _Part(str):
    """A part of an English sentence, as a Chinese one wants it (see above)."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return _WAYS[spec](str(self))


def _said(table: tuple[tuple[re.Pattern[str], str], ...], text: str) -> str | None:
    if len(text) > LONGEST:
        return None
    for pattern, chinese in table:
        if found := pattern.fullmatch(text):
            return _BLANK.sub("", chinese.format(*(_Part(part or "") for part in found.groups()))).strip()
    return None


def _sentence(text: str) -> str:
    said = _said(_TITLES, text)
    return text if said is None else said


def _value(text: str) -> str:
    said = _said(_VALUES, text)
    return _counted(text) if said is None else said


def _counted(text: str) -> str:
    return _MORE.sub(r" 等（另 \1 个）", with_units(text))


def _place(text: str) -> str:
    """A phase or a stage by its Chinese name, what is neither as it is."""
    return STAGES.get(text) or (f" {text}（{PHASES[text]}）" if text in PHASES else f" {text} ")


def _card(text: str) -> str:
    """``GPU 3 (rank 7) on node-1``."""
    name, _, host = text.replace("the GPUs", "各 GPU").partition(" on ")
    name = re.sub(r" \((.+)\)", r"（\1）", name)
    return f"{host} 上的 {name}" if host else name


def _writer(text: str) -> str:
    return "主进程" if text == "the driver" else text


_WAYS: Mapping[str, Callable[[str], str]] = {
    "": str,
    "t": _sentence,
    "v": _value,
    "n": _counted,
    "p": _place,
    "c": _card,
}
