"""What stands around a message is taken off, and several messages on one line are told apart."""

from __future__ import annotations

import pytest

from verlwatch.core.lines._envelope import messages
from verlwatch.core.lines._line import Line
from verlwatch.core.lines._shipping import unshipped
from verlwatch.core.types import NOBODY, Writer

TRAINER = Writer("TaskRunner", 42)
ESC = "\x1b"
BAR = "Training Progress:  33%|███▎      | 1/3 [00:00<00:00,  2.50it/s]"
LINE = "step:7 - a/b:1.5"


@pytest.mark.parametrize(
    "text",
    [
        f"(TaskRunner pid=42) {LINE}",
        f"{ESC}[36m(TaskRunner pid=42){ESC}[0m {LINE}",
        f"{ESC}[38;5;214m(TaskRunner pid=42){ESC}[0m {LINE}{ESC}[K",
        f"^[[36m(TaskRunner pid=42)^[[0m {LINE}",
        f"2025-07-31T08:28:47.911109392Z {ESC}[36m(TaskRunner pid=42){ESC}[0m {LINE}",
        f"2025-07-31T08:28:47+02:00 (TaskRunner pid=42) {LINE}",
        f"(TaskRunner pid=42) {LINE}\r",
        f"(TaskRunner pid=42) \r{LINE}",
        f"(TaskRunner pid=42) INFO:2026-08-02 10:00:01,250:{LINE}",
        f"(main_task pid(TaskRunner pid=42) {LINE}",
        f"{BAR}(TaskRunner pid=42) {LINE}",
        f"(WorkerDict pid=7) half a line(TaskRunner pid=42) {LINE}",
        f"(raylet){ESC}[36m(TaskRunner pid=42){ESC}[0m {LINE}",
    ],
)
def test_the_last_message_is_the_trainers(text: str) -> None:
    assert messages(unshipped(text).text)[-1] == Line(LINE, TRAINER)


def test_a_process_on_another_node_is_another_writer() -> None:
    assert messages(f"(TaskRunner pid=42, ip=10.0.0.7) {LINE}") == [Line(LINE, Writer("TaskRunner", 42, "10.0.0.7"))]


def test_a_line_without_prefix_is_nobodys() -> None:
    assert messages(f"{LINE}") == [Line(LINE, NOBODY)]


def test_a_prefix_that_is_quoted_is_text() -> None:
    text = "he wrote (TaskRunner pid=42) step:1"
    assert messages(f"(AgentLoopWorker pid=7) {text}") == [Line(text, Writer("AgentLoopWorker", 7))]


@pytest.mark.parametrize("hint", ["", " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to ...)"])
def test_the_dedup_suffix_becomes_a_count(hint: str) -> None:
    text = f"(TaskRunner pid=42) {LINE}{ESC}[32m [repeated 12x across cluster]{hint}{ESC}[0m"
    assert messages(text) == [Line(LINE, TRAINER, repeated=12)]


def test_updates_of_a_bar_are_messages_of_the_lines_writer() -> None:
    assert messages(f"(TaskRunner pid=42) \r{BAR}\r{BAR}") == [Line(BAR, TRAINER, cut=False, is_bar=True)] * 2


def test_text_that_a_bar_interrupts_is_cut() -> None:
    assert messages(f"{LINE}\r{BAR}rest") == [
        Line(LINE, cut=True),
        Line(BAR, cut=False, is_bar=True),
        Line("rest"),
    ]


def test_text_that_another_writer_interrupts_is_cut() -> None:
    assert messages(f"{LINE}(TaskRunner pid=42) x") == [Line(LINE, cut=True), Line("x", TRAINER)]


@pytest.mark.parametrize("prefix", ["", "(TaskRunner pid=42) "])
def test_a_line_of_exactly_4096_characters_is_cut(prefix: str) -> None:
    assert messages(f"{prefix}{'x' * 4096}")[0].cut
    assert messages(f"{prefix}{'é' * 4096}")[0].cut
    assert messages(f"{prefix}{'x' * 4095}")[0].cut is None


def test_leading_spaces_belong_to_the_message() -> None:
    assert messages("(TaskRunner pid=42)  - a/b:1") == [Line(" - a/b:1", TRAINER)]


def test_a_prefix_without_text_is_an_empty_message() -> None:
    assert messages("(TaskRunner pid=42) ") == [Line("", TRAINER)]
