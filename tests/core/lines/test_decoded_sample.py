"""Model output that a reward manager prints is not believed, and holds nothing back for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from verlwatch.core.lines import decoded_sample
from verlwatch.core.types import Record

Read = Callable[..., list[Record]]
PLAN = b"(TaskRunner pid=7) Total training steps: 7\n"


def sample(*rows: str) -> bytes:
    return "".join(f"(TaskRunner pid=7) {row}\n" for row in rows).encode()


@pytest.mark.parametrize("score", ["0", "1.0", "-0.5", "True", "np.float64(1.0)", "nan"])
def test_the_score_ends_a_sample(score: str, read: Read) -> None:
    data = sample("[prompt] a", "[response] b", "Total training steps: 9", "[ground_truth] c", f"[score] {score}")
    assert len(read(data + PLAN)) == 1


def test_a_score_before_the_answer_is_the_models_own(read: Read) -> None:
    data = sample("[prompt] a", "[response] b", "[score] 1", "Total training steps: 9", "[ground_truth] c", "[score] 0")
    assert read(data) == []


def test_what_another_process_prints_meanwhile_is_believed(read: Read) -> None:
    data = sample("[prompt] a", "[response] b").replace(b"pid=7", b"pid=8")
    assert len(read(data + PLAN)) == 1


def test_without_a_score_what_was_read_is_told(read: Read) -> None:
    assert len(read(sample("[prompt] a", "[response] b") + PLAN)) == 1


def test_a_sample_ends_after_so_many_lines(read: Read) -> None:
    longest = ["x"] * decoded_sample.Sample.LINES
    data = sample("[prompt] a") + PLAN + sample(*longest, "[ground_truth] c", "[score] 0")
    assert len(read(data)) == 1
