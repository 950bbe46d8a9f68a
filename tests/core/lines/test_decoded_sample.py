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


@pytest.mark.parametrize(
    "score", ["0", "1.0", "-0.5", "True", "np.float64(1.0)", "nan", "tensor(1.)", "[1.0]", "{'a': 1}", "0.5 / 1.0"]
)
def test_the_score_ends_a_sample(score: str, read: Read) -> None:
    data = sample("[prompt] a", "[response] b", "Total training steps: 9", "[ground_truth] c", f"[score] {score}")
    assert len(read(data + PLAN)) == 1


@pytest.mark.parametrize(
    "rows", [["[reward] 1.0"], ["[acc] True", "[pred] 2"], ["[pred] "], ["[score] 1", "[Format] ok"]]
)
def test_every_row_of_a_score_that_is_a_dict_is_one(rows: list[str], read: Read) -> None:
    imitation = "Total training steps: 9"
    data = sample("[prompt] a", "[response] b", imitation, "[ground_truth] c", imitation, *rows)
    assert len(read(data + PLAN)) == 1
    assert len(read(data + PLAN + data + PLAN)) == 2


def test_a_sample_without_a_score_ends_where_another_begins(read: Read) -> None:
    """Nothing real behind it is lost, though what is right may have several lines."""
    unscored = sample("[prompt] a", "[response] b", "Total training steps: 9", "[ground_truth] c")
    scored = sample("[prompt] a", "[response] b", "Total training steps: 9", "[ground_truth] c", "[score] 1")
    assert len(read(unscored + PLAN + scored + PLAN)) == 2
    assert len(read(unscored + PLAN + scored[scored.index(b"(TaskRunner pid=7) [response]") :] + PLAN)) == 2


def test_an_answer_that_the_model_writes_ends_nothing(read: Read) -> None:
    data = sample(
        "[prompt] a", "[response] b", "[ground_truth] c", "Total training steps: 9", "[ground_truth] c", "[score] 1"
    )
    assert read(data) == []


def test_a_bar_inside_of_a_sample_is_text_and_behind_it_a_bar(read: Read) -> None:
    bar = "Training Progress: 100%|###| 7/7 [00:07<00:00,  1.00s/it]"
    data = sample("[prompt] a", "[response] b", bar, "[ground_truth] c", "[score] 1")
    assert read(data) == []
    assert len(read(data + sample(bar))) == 1


def test_what_kinds_read_in_rows_behind_the_score_is_no_row_of_it(read: Read) -> None:
    data = sample("[prompt] a", "[response] b", "[ground_truth] c", "[score] 1", "[INFO] step: gen: 2487.3ms")
    assert len(read(data)) == 1


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
