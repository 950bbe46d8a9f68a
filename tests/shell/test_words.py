"""A message in Chinese says what the English one says, for every rule, reason, phase and label there is.

Rules that word their messages themselves are in test_words_worded.py.
"""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import pytest

from tests.shell.notifier_messages import HOSTILE, OPENED
from verlwatch.core.engine import Engine
from verlwatch.core.fleet import BLIND_S, LOST_S, AgentReport
from verlwatch.core.incidents import _facts, compose
from verlwatch.core.incidents._facts import Context
from verlwatch.core.metrics import MEASURES
from verlwatch.core.phases import JUDGED
from verlwatch.core.settings import Settings
from verlwatch.core.types import ClosedAs, Diagnosis, Incident, Message, Notice, Reason
from verlwatch.shell.notifiers import _zh, in_language, message_text, sample_message
from verlwatch.shell.notifiers._words import reason_word
from verlwatch.shell.notifiers._zh_phases import PHASES
from verlwatch.shell.notifiers._zh_rule import with_units

if TYPE_CHECKING:
    from collections.abc import Mapping

REASONS = tuple(reason for reason in (*get_args(get_args(Reason)[0]), *get_args(ClosedAs)))
CONFIG: Mapping[str, Any] = {key: 1 for keys in _facts.KEYS.values() for key in keys}
CONTEXT = Context(
    recent=(100.0,) * 12 + (161.0,) * 12, step_s=300.0, step_expected_s=230.0, gpus=64, config=CONFIG, link="http://a/"
)
ENGLISH = re.compile(r"\b(?:the|of|is|since|step|steps|told|ago|took|was|so|far|hours?|min|seconds?|likely)\b")


def composed(
    rule: str,
    reason: Any,
    phase: str = "gen",
    *,
    scope: Any = (),
    advice: tuple[str, ...] = (),
    by_hand: bool = False,
) -> Message:
    """As the core words it."""
    diagnosis = Diagnosis(
        rule, "run-a", phase, "warning", 200, 210, 1.61, 100.0, 161.0, 61.0, "summary", (), advice, scope
    )
    closed = reason in get_args(ClosedAs)
    incident = Incident(
        "7e57c0de", "run-a", 0, "closed" if closed else "firing", "warning", (diagnosis,), 200, 0.0, 1.9,
        lost_s=3120.0, told=(Notice(0.0, "opened", "warning", (rule, phase), 1.61),), by_hand=by_hand,
        closed_as=reason if closed else None, closed_step=240 if closed else None, last_step=239,
    )  # fmt: skip
    return compose(incident, reason, step=211, now=600.0, context=CONTEXT)


def test_every_rule_of_a_changed_metric_has_a_cause_where_the_english_has_one() -> None:
    assert _facts.CAUSES.keys() <= {name for name, rule in _zh.RULES.items() if rule.cause}


def test_every_reason_and_phase_has_chinese_words() -> None:
    assert _zh.REASONS.keys() == set(REASONS)
    assert set(JUDGED) | MEASURES.keys() <= PHASES.keys()


@pytest.mark.parametrize("rule", sorted(_zh.RULES))
@pytest.mark.parametrize("reason", [reason for reason in REASONS if reason != "finished"])
def test_nothing_but_names_stays_english(rule: str, reason: str) -> None:
    english = composed(rule, reason, advice=("Look at the hosts.",), scope=(("rank", "3"), ("host", "node-1")))
    message = in_language(english, "zh")
    assert len(message.facts) == len(english.facts)
    assert (not message.advice) == (not english.advice)
    text = " ".join((message.title, message.summary, *(word for pair in message.facts for word in pair)))
    assert ENGLISH.findall(text) == []
    assert all(len(label) > 1 and not label.isascii() for label, _ in message.facts)


def test_an_incident_in_chinese_reads_as_a_person_would_write_it() -> None:
    scope = (*(("rank", str(n)) for n in range(4)), ("host", "node-1"))
    message = in_language(composed("phase_shift", "repeated", scope=scope, advice=("Compare.",)), "zh")
    assert message.title == "run-a：gen（生成）仍然自第 200 步起为 161 秒，此前为 100 秒（×1.61）"
    assert message.summary == "自第 200 步起，同等工作量下 gen（生成）的耗时是之前的 1.61 倍。"
    facts = dict(message.facts)
    assert facts["起始步"] == "200（10 分钟前首次告知）"
    assert facts["同等工作量下的倍数"] == "×1.61（按秒数为 ×1.61）"
    assert facts["每步增加"] == "61 秒（相当于一步的 27%），占变慢部分的 87%"
    assert facts["已损失"] == "52 分钟，55 GPU 小时；若持续，每天 312 GPU 小时"
    assert facts["位置"] == "ranks 0-3 (4)，主机 node-1"
    assert message.advice[-1] == (
        "已知情？verlwatch silence add --run=run-a --phase=gen --for=2h；在其增大前不再告知：verlwatch accept 7e57c0de"
    )
    assert message.language == "zh"


def test_how_an_incident_ended_is_said_in_chinese() -> None:
    message = in_language(composed("phase_shift", "resolved"), "zh")
    assert message.title == "run-a：gen（生成）自第 240 步起恢复正常（最高 ×1.90，基线 100 秒）"
    assert message.summary.endswith("1.61 倍。已恢复，第 200 至 239 步，共损失 52 分钟。")
    assert reason_word(message) == "已恢复"


def test_what_a_person_accepted_is_not_told_in_chinese_as_a_new_baseline() -> None:
    message = in_language(composed("phase_shift", "accepted", by_hand=True), "zh")
    assert message.title == "run-a：gen（生成）为 161 秒（此前 100 秒）：已由人工接受，除非再增大 25%，不再告知"
    assert "由人工接受" in message.summary
    assert dict(message.facts)["由谁接受"] == "人工"
    assert "今后以此为基线" in in_language(composed("phase_shift", "accepted"), "zh").title


AGENT = AgentReport("node-7", ("run-a", "run-b"), 3)
BLIND = replace(AGENT, unreadable=("/logs/train.log",))


def said_of_an_agent() -> list[Message]:
    """Of one that is lost and comes back, that cannot read its files and then can, and that nobody expects any more."""
    engine = Engine(Settings(receivers=("team",)))
    outcomes = [
        engine.expect(("node-7",), 0.0),
        engine.hear(AGENT, 1.0),
        engine.tick(1.0 + LOST_S),
        engine.hear(BLIND, 300.0),
        engine.hear(BLIND, 330.0),
        engine.hear(BLIND, 300.0 + BLIND_S),
        engine.hear(AGENT, 900.0),
        engine.tick(900.0 + LOST_S),
        engine.expect((), 1000.0),
    ]
    return [notification.message for outcome in outcomes for notification in outcome.notifications]


def test_what_a_hub_says_of_an_agent_is_said_in_chinese() -> None:
    messages = [in_language(message, "zh") for message in said_of_an_agent()]
    assert [message.title for message in messages] == [
        "agent node-7：已失联 60 秒",
        "agent node-7：恢复联系",
        "agent node-7：3 个文件中有 1 个无法读取",
        "agent node-7：又能读取全部文件",
        "agent node-7：已失联 60 秒",
        "agent node-7：不再需要",
    ]
    assert messages[0].summary == "它读取的 3 个文件（run-a, run-b）在其恢复之前无人监视。"
    assert messages[1].summary == "此前：已失联 60 秒；发现之后 239 秒结束。"
    assert messages[2].summary == "在能读取之前，不知道它们关于 run-a, run-b 说了什么。"
    assert messages[2].evidence == ("/logs/train.log",)
    for message in messages:
        assert not ENGLISH.findall(" ".join((message.title, message.summary, *message.advice)))


def test_what_has_no_chinese_words_stays_english() -> None:
    message = in_language(replace(OPENED, rule="brand_new", facts=(("New label", "5 s"),)), "zh")
    assert (message.title, message.summary, message.advice) == (OPENED.title, OPENED.summary, OPENED.advice)
    assert message.facts == (("New label", "5 秒"),)
    assert in_language(HOSTILE, "zh").title == HOSTILE.title


def test_the_sample_says_in_chinese_that_it_is_a_test() -> None:
    message = in_language(sample_message(), "zh")
    assert message.title.startswith("【测试】")
    assert "并无异常" in message.summary
    assert "已知情" in message_text(message)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("step 120: gen 394 s, expected 100 s for its work", "第 120 步：gen 为 394 秒，按其工作量应为 100 秒"),
        ("step 9: 394 s, expected 1e+03 s for its work", "第 9 步：394 秒，按其工作量应为 1e+03 秒"),
        ("adds 294 s to a step of 253 s (+116%)", "使一步（253 秒）增加 294 秒（+116%）"),
        ("since step 9: 12 s instead of 8 s", "自第 9 步起：12 秒，此前为 8 秒"),
        ("0.5 ms per token, expected 0.2 ms", "每 token 0.5 ms，应为 0.2 ms"),
        ("(pid=7) step 120: gen 394 s, expected 100 s for its work", None),
        ("adds 294 s to a step of 253 s (+116%) <b>", None),
    ],
)
def test_our_own_evidence_is_chinese_and_what_a_log_says_stays(line: str, shown: str | None) -> None:
    assert in_language(replace(OPENED, evidence=(line,)), "zh").evidence == (shown or line,)


def test_english_is_what_the_core_composed() -> None:
    assert in_language(OPENED, "en") is OPENED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("394 s", "394 秒"),
        ("12 min", "12 分钟"),
        ("3.4 h", "3.4 小时"),
        ("1 step", "1 步"),
        ("120 to 124", "120 至 124"),
        ("612 tokens/s/GPU", "612 tokens/s/GPU"),
        ("rank 3", "rank 3"),
        ("5 steady", "5 steady"),
    ],
)
def test_units_are_said_in_chinese(text: str, shown: str) -> None:
    assert with_units(text) == shown
