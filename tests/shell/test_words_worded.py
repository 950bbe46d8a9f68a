"""Messages that rules word themselves are said in Chinese: every sentence that any rule has, whole."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import pytest

from tests.shell.notifier_messages import OPENED
from tests.shell.worded_messages import QUOTE, diagnoses, module_of, sentences
from verlwatch.core.incidents import compose
from verlwatch.core.incidents._facts import Context
from verlwatch.core.rules import LIFE_RULES, MEMORY_RULES, RULES
from verlwatch.core.types import ClosedAs, Incident, Notice, Reason
from verlwatch.shell.notifiers import _zh, _zh_worded, in_language, message_text

if TYPE_CHECKING:
    from verlwatch.core.types import Diagnosis, Message

NAMES = [rule.NAME for rules in (RULES, LIFE_RULES, MEMORY_RULES) for rule in rules]
WORDED = sorted(set(NAMES) - _zh.RULES.keys())
REASONS = tuple(reason for reason in (*get_args(get_args(Reason)[0]), *get_args(ClosedAs)) if reason != "finished")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = re.compile(
    r"\b(?:a|after|again|ago|all|an|and|are|at|by|died|ended|for|free|from|full|has|have|holds|hours?|in|is|it|its|killed"
    r"|last|left|less|likely|limit|min|more|no|of|on|or|over|peers|since|seconds?|steps?|still|take|than|the|that|this"
    r"|times?|to|told|took|waited|was|while|will|with)\b"
)
_COMMAND = re.compile(r"`[^`]*`|dmesg [^）]*|nvidia-smi [^；]*|TimeLimit=…")
_KEY = re.compile(r"[\w./]+[._/][\w./]+")


def english_in(text: str) -> list[str]:
    """English words that are no part of a command, a key of the configuration or somebody else's text."""
    return ENGLISH.findall(_KEY.sub("", _COMMAND.sub("", text.partition(QUOTE)[0].replace("run-a", ""))))


def composed(diagnosis: Diagnosis, reason: Any, *, outcome: str = "", by_hand: bool = False) -> Message:
    """As the core words it, an hour after it was found."""
    closed: Any = "run ended" if reason == "finished" else reason if reason in get_args(ClosedAs) else None
    lead = (diagnosis.rule, diagnosis.subject)
    incident = Incident(
        "7e57c0de", "run-a", 1, "closed" if closed else "firing", diagnosis.severity, (diagnosis,), 200, 0.0, 1.0,
        told=() if reason == "opened" else (Notice(60.0, "opened", "critical", lead, 1.0),),
        closed_as=closed, by_hand=by_hand, outcome=diagnosis.title if reason == "finished" else outcome,
    )  # fmt: skip
    return compose(incident, reason, step=211, now=3660.0, context=Context(link="http://a/"))


def is_quoted(diagnosis: Diagnosis, line: str) -> bool:
    """A line of a log, a name of an exception, a fault that has no words."""
    return QUOTE in line or line.isidentifier() or (diagnosis.rule == "blind" and line in diagnosis.evidence)


# ---------------------------------------------------------------------------------------------------- completeness
def test_every_rule_has_chinese_words_in_one_place() -> None:
    assert set(WORDED) <= _zh_worded.RULES
    assert not _zh_worded.RULES & _zh.RULES.keys()


def test_every_rule_that_words_itself_is_asked_here_and_no_other_words_itself() -> None:
    titled = {name for name, found in diagnoses().items() if any(diagnosis.title for diagnosis in found)}
    assert titled == set(WORDED)


@pytest.mark.parametrize("rule", WORDED)
def test_every_sentence_of_a_rule_is_chinese(rule: str) -> None:
    for diagnosis in diagnoses()[rule]:
        english = composed(diagnosis, "opened")
        message = in_language(english, "zh")
        assert bool(message.summary) == bool(english.summary) == (diagnosis.summary != diagnosis.title)
        evidence = [line for line in message.evidence if not is_quoted(diagnosis, line)]
        ours = (message.title.removeprefix("run-a："), message.summary, *evidence, *message.advice)
        assert [text for text in filter(None, ours) if not CHINESE.search(text) or english_in(text)] == []
        assert [label for label, _ in message.facts if label.isascii()] == []
        assert [value for _, value in message.facts if english_in(value)] == []


@pytest.mark.parametrize("rule", WORDED)
def test_whatever_happens_to_an_incident_is_said_in_chinese(rule: str) -> None:
    if rule == "finished":
        return
    diagnosis = diagnoses()[rule][0]
    titles = set()
    for reason in REASONS:
        message = in_language(composed(diagnosis, reason), "zh")
        assert message.title.startswith("run-a：")
        assert CHINESE.search(message.title.removeprefix("run-a："))
        assert message.summary.endswith("。") or (not message.summary and message.closed_as is None)
        texts = (message.title, message.summary, *(word for pair in message.facts for word in pair))
        assert [text for text in texts if english_in(text)] == []
        titles.add(message.title)
    assert len(titles) >= len(REASONS) - 2  # escalated and updated read as opened does


@pytest.mark.parametrize("rule", WORDED)
def test_every_sentence_of_advice_that_a_rule_holds_is_known(rule: str) -> None:
    assert [text for text in sentences(module_of(rule)) if not CHINESE.search(_zh_worded.advice(text))] == []


# ---------------------------------------------------------------------------------------------------- how it reads
def found(rule: str, title: str) -> Diagnosis:
    return next(diagnosis for diagnosis in diagnoses()[rule] if diagnosis.title.startswith(title))


def test_a_run_that_is_stuck_reads_as_a_person_would_write_it() -> None:
    message = in_language(composed(found("stalled", "stuck in gen"), "repeated"), "zh")
    assert message.title == "run-a：仍然：卡在 gen（生成）：第 7/100 步之后已有 15 分钟没有进展"
    facts = dict(message.facts)
    assert facts["允许时长"] == "310 秒（自身各步 95 分位（124 秒）的 2.5 倍）"
    assert facts["首次告知"] == "60 分钟前"


def test_what_is_still_printed_stays_as_it_is_printed() -> None:
    diagnosis = next(d for d in diagnoses()["stalled"] if "Still printing" in dict(d.facts))
    facts = dict(in_language(composed(diagnosis, "opened"), "zh").facts)
    assert facts["仍在打印"] == (
        f"主进程（4 秒前）：{QUOTE} the last line; vLLMHttpServer pid=7（40 秒前）：{QUOTE} GET /health"
    )


def test_a_death_reads_as_a_person_would_write_it() -> None:
    message = in_language(composed(found("device_oom", "GPU out of memory on rank 3 in gen"), "opened"), "zh")
    assert message.title == "run-a：GPU 显存不足：rank 3，阶段 gen（生成）（在第 7/100 步）"
    assert dict(message.facts)["剩余"] == "1 GiB（共 80 GiB）"


def test_a_run_that_is_done_reads_as_a_person_would_write_it() -> None:
    message = in_language(composed(found("finished", "finished: step 100 of 100"), "finished"), "zh")
    assert message.title == "run-a：训练完成：第 100/100 步"
    assert message.summary == "训练已完成，第 100/100 步。"
    assert dict(message.facts)["步数"] == "100"
    assert dict(message.facts)["最佳验证结果"] == "test_score/gsm8k：第 90 步时为 0.81，结束时为 0.8"


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (
            "goes on: step 8 came after 15 min; gen took 14 min of it",
            "恢复进展：第 8 步用了 15 分钟，其中 gen（生成）占 14 分钟",
        ),
        ("goes on: step 8 came after 15 min", "恢复进展：第 8 步用了 15 分钟"),
        ("goes on: lines come again", "恢复：又有日志了"),
        ("its logs can be read again", "日志又可以读取了"),
        ("goes on with step 8: what failed has ended no training", "继续进行到第 8 步：出错的部分没有中断训练"),
        ("runs again: a new start after step 7", "重新运行：在第 7 步之后重新启动"),
        ("runs again: a new start after no step", "重新运行：上一次没有完成任何一步"),
        (
            "rank 3 holds what its peers hold again (0.6 GB more), at step 9",
            "rank 3 的显存已与同组相同（相差 0.6 GB），第 9 步",
        ),
        ("GPU 3 on n1 holds what its peers hold again, at step 9", "n1 上的 GPU 3 的显存已与同组相同，第 9 步"),
        (
            "rank 3 holds what it did before, beside its peers again (0.6 GB less), at step 9",
            "rank 3 与同组的差距已恢复原样（相差 0.6 GB），第 9 步",
        ),
        (
            "rank 3 does other work than the cards that it was compared with",
            "rank 3 与此前相比较的卡做的不是同样的工作",
        ),
        (
            "rank 3 has stayed where it is for 200 steps; this is its normal now",
            "rank 3 的差距已有 200 步没有变化，今后视为正常",
        ),
    ],
)
def test_how_it_ended_is_said_in_chinese(outcome: str, shown: str) -> None:
    message = in_language(composed(diagnoses()["stalled"][0], "resolved", outcome=outcome), "zh")
    assert message.title == f"run-a：{shown}"
    was = "卡在 gen（生成）：第 7/100 步之后已有 15 分钟没有进展"
    assert message.summary == f"此前：{was}；发现之后 61 分钟结束。"


@pytest.mark.parametrize(
    "text",
    ["crashed: {0} {1:t} {x", "crashed: " + "at step " * 200, "over: over: over: nobody's words", "blind: \u4e2d{}"],
)
def test_no_text_of_others_breaks_a_sentence(text: str) -> None:
    message = replace(OPENED, rule="crashed", title=f"{OPENED.run}: {text}", summary=f"{text}.", evidence=(text,))
    shown = in_language(message, "zh")
    assert shown.language == "zh"
    assert shown.evidence == (text,)
    assert text.rsplit(": ", maxsplit=1)[-1] in shown.title
    assert message_text(shown)


def test_no_sentence_takes_long_however_it_goes_on() -> None:
    for rule in WORDED:
        for text in ("at step 1 in (pid 7) on rank 3, " * 18, "a is nan, " * 60, "x" * 600, "over: " * 100):
            _zh_worded.title(replace(OPENED, rule=rule, title=f"{OPENED.run}: {text}"))
            _zh_worded.evidence(text)
            _zh_worded.fact("Doing", text)


def test_what_slower_generation_is_told_with_is_chinese() -> None:
    told = [diagnosis for diagnosis in diagnoses()["phase_shift"] if diagnosis.subject == "gen"]
    english = {line for diagnosis in told for line in diagnosis.evidence}
    assert any("asynchronous" in line for line in english)
    assert any(line.startswith("tool_wait: ") for line in english)
    shown = in_language(replace(OPENED, evidence=tuple(english)), "zh").evidence
    assert [line for line in shown if not CHINESE.search(line) or english_in(line)] == []
