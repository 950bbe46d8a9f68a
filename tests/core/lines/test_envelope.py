"""What stands around a message is taken off, and several messages on one line are told apart."""

from __future__ import annotations

import pytest

from verlwatch.core.lines._envelope import MESSAGES, Prefixes, messages, plain
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
        f"(WorkerDict pid=7(TaskRunner pid=42) {LINE}",
        f"(WorkerDict pid=7, ip=10.0.0(TaskRunner pid=42) {LINE}",
        f"(WorkerDict (main_task p(TaskRunner pid=42) {LINE}",
        f"(TaskRunner pid=42) {BAR}(TaskRunner pid=42) {LINE}",
        f"(main_task pid=7) \r{BAR}\r(TaskRunner pid=42) {LINE}",
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


@pytest.mark.parametrize(
    "text",
    [
        f"my answer is:(TaskRunner pid=42) {LINE}",
        f"(main_task pid(TaskRunner pid=42) {LINE}",
        f"{BAR}(TaskRunner pid=42) {LINE}",
        f"\r(TaskRunner pid=42) {LINE}",
        f"x\r(TaskRunner pid=42) {LINE}",
    ],
)
@pytest.mark.parametrize("writer", ["WorkerDict", "AgentLoopWorker", "RewardManager"])
def test_who_prints_what_models_say_has_the_line_for_itself(text: str, writer: str) -> None:
    said = messages(f"({writer} pid=7) {text}")
    assert {line.writer for line in said} == {Writer(writer, 7)}
    assert not any(line.text == LINE for line in said)


@pytest.mark.parametrize("before", ["(TaskRunner pid=1) ", "", "(raylet) "])
def test_a_prefix_behind_text_is_quoted(before: str) -> None:
    (line,) = messages(f"{before}my answer is:(TaskRunner pid=42) {LINE}")
    assert line.text == f"my answer is:(TaskRunner pid=42) {LINE}"


def test_in_the_file_of_one_process_every_prefix_is_text() -> None:
    text = f"(TaskRunner pid=42) {LINE}"
    assert messages(f"{text}\r{text}", writer=Writer("Runner", 7)) == [
        Line(text, Writer("Runner", 7), cut=True),
        Line(text, Writer("Runner", 7)),
    ]


@pytest.mark.parametrize("ip", ["10.0.0.7", "fe80::1%eth0", "node-1.cluster"])
def test_an_address_is_of_letters_digits_and_few_signs(ip: str) -> None:
    assert messages(f"(A pid=1, ip={ip}) x") == [Line("x", Writer("A", 1, ip))]
    assert messages(f"(A pid=1, ip={ip}\x07) x")[0].writer == NOBODY


@pytest.mark.parametrize("between", ["\r", ""])
def test_of_very_many_updates_the_last_are_kept_and_what_is_glued_around_them(between: str) -> None:
    bars = [f"Training Progress:  33%|x| {n}/9000 [00:00<00:00,  2.50it/s]" for n in range(3000)]
    said = messages(f"(TaskRunner pid=42) {LINE}{between}{between.join(bars)}rest")
    assert said[0] == Line(LINE, TRAINER, cut=True)
    assert said[-2:] == [Line(bars[-1], TRAINER, cut=False, is_bar=True), Line("rest", TRAINER)]
    assert MESSAGES <= len(said) <= MESSAGES + 4


@pytest.mark.parametrize("prefix", ["", "(TaskRunner pid=42) "])
def test_a_line_of_exactly_4096_characters_is_cut(prefix: str) -> None:
    assert messages(f"{prefix}{'x' * 4096}")[0].cut
    assert messages(f"{prefix}{'é' * 4096}")[0].cut
    assert messages(f"{prefix}{'x' * 4095}")[0].cut is None


def test_leading_spaces_belong_to_the_message() -> None:
    assert messages("(TaskRunner pid=42)  - a/b:1") == [Line(" - a/b:1", TRAINER)]


def test_a_prefix_without_text_is_an_empty_message() -> None:
    assert messages("(TaskRunner pid=42) ") == [Line("", TRAINER)]


@pytest.mark.parametrize(
    "text",
    [
        *(f"{ESC}[36m(A pid=1, ip=10.0.0.7){ESC}[0m x (y)", "(A pid=1) x", "(A pid=1) ", "(A pid=1)", "(raylet) x"),
        *(
            "(A pid=1)  x",
            "(A pid=1) INFO:root:x [repeated 3x across cluster]",
            "(A pid=1) a  5%|#| 1/3 [0<1]b",
            "x",
            "",
        ),
    ],
)
def test_a_plain_line_is_read_as_any_other(text: str) -> None:
    prefixes = Prefixes()
    for _ in range(2):
        told = prefixes.sole(text.encode())
        assert told is not None
        assert plain(text.encode(), told[1], told[0]) == messages(text)


@pytest.mark.parametrize(
    "text",
    [
        *("(A pid=1) x(B pid=2) y", "(x) y", "2026-01-01T00:00:00Z stdout P x", '{"log":"x"}', "^[[36m(A pid=1) x"),
        *("é", "(A pid=1) (raylet) x", f"{ESC}[36mx", "(" + "a" * 300 + " pid=1) x"),
    ],
)
def test_who_has_written_a_line_that_is_not_plain_is_left_open(text: str) -> None:
    assert Prefixes().sole(text.encode()) is None


@pytest.mark.parametrize("message", ["x\ry", f"x{ESC}[0m", "^[[0mx", "x" * 4086])
def test_a_line_that_is_not_plain_is_taken_apart(message: str) -> None:
    raw = f"(A pid=1) {message}".encode()
    assert plain(raw, message.encode(), Writer("A", 1)) is None
