"""A digest as each channel shows it: a line for each incident, cut once, and the right number left out."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tests.shell.notifier_messages import FINISHED, OPENED, RESOLVED
from verlwatch.shell.notifiers import NOTIFIERS, Notifier, in_language, message_text
from verlwatch.shell.notifiers._digest import digest

COUNT = 113
DIGESTED = [
    replace(
        OPENED, incident=f"a{n:07d}", run=f"qwen2-7b-grpo-{n}", title=f"qwen2-7b-grpo-{n}: gen took ×3.94 at step 120"
    )
    for n in range(COUNT)
]
CHANNELS = [kind for kind in NOTIFIERS if kind.DIGEST and kind.RATE]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", CHANNELS, ids=lambda kind: kind.TYPE)
def test_what_a_channel_has_no_room_for_is_counted_once_and_rightly(kind: type[Notifier], language: str) -> None:
    messages = [in_language(message, "zh" if language == "zh" else "en") for message in DIGESTED]
    shown = json.dumps(kind.render(digest(messages, "digest-1"), "digest-1"), ensure_ascii=False)
    told = set(re.findall(r"a\d{7}", shown))
    more = re.findall(r"… and (\d+) more|另有 (\d+) 行", shown)
    assert 5 < len(told) < COUNT
    assert len(more) == 1
    assert len(told) + int("".join(more[0])) == COUNT


@pytest.mark.parametrize("kind", CHANNELS, ids=lambda kind: kind.TYPE)
def test_no_footer_names_an_incident_that_is_none(kind: type[Notifier]) -> None:
    shown = json.dumps(kind.render(digest(DIGESTED[:3], "digest-1"), "digest-1"), ensure_ascii=False)
    assert "incident digest-1" not in shown
    assert "incident `digest-1`" not in shown
    assert all(message.incident in shown for message in DIGESTED[:3])


def test_runs_that_are_done_are_counted_apart_and_come_last() -> None:
    told = [replace(FINISHED, incident=f"f{n}", run=f"done-{n}", title=f"done-{n}: finished") for n in range(2)]
    message = digest([*told, replace(OPENED, incident="a1"), replace(RESOLVED, incident="a2")], "digest-1")
    assert message.title == "2 incidents in 1 run: 1 open, 1 over; 2 runs finished"
    assert message.evidence[2:] == ("done-0: finished", "done-1: finished")
    assert digest(told, "digest-1").title == "2 runs finished"
    assert message_text(digest(told, "digest-1")).startswith("🏁 ")
    chinese = [in_language(each, "zh") for each in (*told, OPENED)]
    assert digest(chinese, "digest-1").title == "1 个训练中有 1 个事件：1 个未结束；2 个训练已完成"  # noqa: RUF001


def test_as_text_it_names_none_either() -> None:
    shown = message_text(digest(DIGESTED, "digest-1"))
    assert "digest-1" not in shown
    assert shown.count("| a0") == COUNT
