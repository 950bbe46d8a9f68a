"""Where a step belongs: seen again, another attempt, or the next step."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from verlwatch.core._attempts import RECALL, Attempts, Place
from verlwatch.core.types import Writer

TRAINER = Writer("TaskRunner", 100)
AGAIN = Writer("TaskRunner", 200)


def gen(step: int, attempt: int = 1) -> dict[str, float]:
    """Seconds that differ from step to step and from attempt to attempt."""
    return {"gen": 40 + step * 0.123456 + attempt, "step": 70.5 + step + attempt}


class Told:
    """Attempts, fed by short sentences."""

    def __init__(self) -> None:
        self.attempts = Attempts()

    def __call__(self, source: str, step: int, **more: Any) -> Place:
        attempt = more.pop("attempt", 1)
        seconds = more.pop("seconds", gen(step, attempt))
        place = self.attempts.place(source, more.pop("generation", 1), more.pop("writer", TRAINER), step, seconds)
        assert place is not None
        return place

    def doubt(self, source: str, step: int, *, writer: Writer = TRAINER, attempt: int = 1) -> Place | None:
        return self.attempts.place(source, 1, writer, step, gen(step, attempt))


@pytest.fixture
def tell() -> Told:
    return Told()


def test_the_first_step_begins_the_first_attempt(tell: Told) -> None:
    assert tell("log", 1) == Place(1, current=True, began=True, echo=False)
    assert tell("log", 2) == Place(1, current=True, began=False, echo=False)


def test_a_gap_is_no_restart(tell: Told) -> None:
    tell("log", 80)
    assert tell("log", 83) == Place(1, current=True, began=False, echo=False)


def test_the_same_steps_in_a_second_source_are_the_same_attempt(tell: Told) -> None:
    for step in range(1, 6):
        tell("log", step)
    assert [tell("jsonl", step).attempt for step in range(1, 8)] == [1] * 7
    assert tell("log", 6).attempt == 1


def test_equality_is_judged_at_the_coarser_precision(tell: Told) -> None:
    tell("jsonl", 1, seconds={"gen": 41.23456})
    assert tell("log", 1, seconds={"gen": 41.235}) == Place(1, current=True, began=False, echo=True)


def test_steps_that_go_back_begin_an_attempt_once_they_go_on_from_there(tell: Told) -> None:
    for step in range(1, 60):
        tell("log", step)
    assert tell.doubt("log", 51, attempt=2) is None
    assert tell("log", 52, attempt=2) == Place(2, current=True, began=True, echo=False)


def test_one_step_back_of_the_same_process_is_noise(tell: Told) -> None:
    for step in range(1, 60):
        tell("log", step)
        if step > 3:
            assert tell.doubt("log", 3, attempt=9) is None
    assert tell("log", 60) == Place(1, current=True, began=False, echo=False)


def test_without_a_prefix_a_step_back_is_all_there_is_to_tell_a_restart(tell: Told) -> None:
    for step in range(60):
        tell("log", step, writer=Writer())
    assert tell("log", 0, writer=Writer(), attempt=2) == Place(2, current=True, began=True, echo=False)


def test_a_rotated_log_of_the_same_process_is_the_same_attempt(tell: Told) -> None:
    for step in range(1, 60):
        tell("log", step)
    assert tell("log", 60, generation=2) == Place(1, current=True, began=False, echo=False)


def test_lines_without_timing_move_nothing(tell: Told) -> None:
    for step in range(1, 60):
        tell("log", step)
        tell("log", 5, seconds={})
    assert tell.attempts.current == 1


def test_a_line_without_prefix_beside_a_prefixed_trainer_is_somebody_elses(tell: Told) -> None:
    tell("log", 1)
    assert tell.doubt("log", 5, writer=Writer(), attempt=7) is None


def test_two_trainers_in_one_file_are_two_attempts_and_not_hundreds(tell: Told) -> None:
    other = Writer("TaskRunner", 300)
    for step in range(1, 60):
        tell("log", step)
        tell("log", step, writer=other, attempt=2)
    assert tell.attempts.current == 2


def test_the_attempt_that_a_restart_leads_to_is_the_later_one_whoever_told_it_first(tell: Told) -> None:
    for step in range(1, 41):
        tell("jsonl", step, writer=Writer(), attempt=2)
    for step in range(1, 6):
        tell("log", step)
    assert tell("log", 1, writer=AGAIN, attempt=2) == Place(3, current=True, began=True, echo=True)
    assert tell("jsonl", 41, writer=Writer(), attempt=2) == Place(3, current=True, began=False, echo=False)


def test_a_new_process_that_goes_on_counting_begins_an_attempt(tell: Told) -> None:
    for step in range(1, 51):
        tell("log", step)
    assert tell("log", 51, writer=AGAIN, attempt=2) == Place(2, current=True, began=True, echo=False)


def test_a_resume_line_before_the_next_step_begins_an_attempt(tell: Told) -> None:
    for step in range(1, 51):
        tell("log", step)
    tell.attempts.restarted("log", TRAINER)
    assert tell("log", 51, attempt=2).attempt == 2


def test_a_validation_only_line_after_a_restart_decides_nothing(tell: Told) -> None:
    for step in range(1, 51):
        tell("log", step)
    assert tell("log", 50, writer=AGAIN, seconds={}) == Place(2, current=False, began=False, echo=False)
    assert tell("log", 51, writer=AGAIN, attempt=2) == Place(2, current=True, began=True, echo=False)


def test_after_a_restart_console_and_jsonl_meet_in_the_new_attempt_whichever_comes_first(tell: Told) -> None:
    for first, second in (("log", "jsonl"), ("jsonl", "log")):
        told = Told()
        for step in range(1, 51):
            told("log", step)
            told("jsonl", step, writer=Writer())
        fresh: dict[str, dict[str, Any]] = {"log": {"writer": AGAIN}, "jsonl": {"generation": 2, "writer": Writer()}}
        for step in range(51, 55):
            assert told(first, step, attempt=2, **fresh[first]).attempt == 2
        for step in range(51, 57):
            assert told(second, step, attempt=2, **fresh[second]).attempt == 2, (first, step)
        assert told.attempts.current == 2


def test_a_source_that_lags_in_the_old_attempt_stays_there(tell: Told) -> None:
    for step in range(1, 51):
        tell("log", step)
    for step in range(1, 41):
        tell("jsonl", step, writer=Writer())
    tell("log", 46, writer=AGAIN, attempt=2)
    assert tell("jsonl", 41, writer=Writer()) == Place(1, current=False, began=False, echo=True)


def test_a_repeated_line_is_the_same_step(tell: Told) -> None:
    tell("log", 9)
    assert tell("log", 9) == Place(1, current=True, began=False, echo=True)
    assert tell.attempts.current == 1


def test_only_the_last_steps_are_recalled(tell: Told) -> None:
    for step in range(RECALL + 10):
        tell("log", step)
    assert len(tell.attempts._attempts[1].steps) == RECALL


def test_state_round_trips_and_steps_come_back_from_the_store(tell: Told) -> None:
    for step in range(1, 51):
        tell("log", step)
    again = Told()
    again.attempts = Attempts.from_state(orjson.loads(orjson.dumps(tell.attempts.state())))
    again.attempts.recall((1, step, gen(step)) for step in range(1, 51))
    assert again.attempts.state() == tell.attempts.state()
    assert again("jsonl", 30, writer=Writer()) == Place(1, current=True, began=False, echo=True)
    assert again.doubt("log", 20, attempt=2) is None
    assert again("log", 21, attempt=2) == Place(2, current=True, began=True, echo=False)


def test_a_resume_in_a_log_of_its_own_is_another_attempt_even_where_the_steps_go_on(tell: Told) -> None:
    for step in range(1, 6):
        tell("worker-1.out", step)
    tell.attempts.restarted("worker-2.out", AGAIN)
    assert tell("worker-2.out", 6, writer=AGAIN, attempt=2) == Place(2, current=True, began=True, echo=False)
    assert tell("worker-2.out", 7, writer=AGAIN, attempt=2).attempt == 2


def test_a_log_that_repeats_the_resume_of_another_is_of_the_same_attempt(tell: Told) -> None:
    for step in range(1, 6):
        tell("worker-1.out", step)
    for log in ("worker-2.out", "job-driver.log"):
        tell.attempts.restarted(log, AGAIN)
    for step in range(6, 9):
        assert {tell(log, step, writer=AGAIN, attempt=2).attempt for log in ("worker-2.out", "job-driver.log")} == {2}


def test_a_first_start_that_resumes_is_the_first_attempt(tell: Told) -> None:
    tell.attempts.restarted("log", TRAINER)
    assert tell("log", 41) == Place(1, current=True, began=True, echo=False)
    again = Told()
    again.attempts.restarted("new.log", AGAIN)
    again.attempts = Attempts.from_state(orjson.loads(orjson.dumps(again.attempts.state())))
    assert again.attempts.state()["resumed"] == [["new.log", 200, ""]]


def test_one_line_with_a_prefix_does_not_mute_a_log_without(tell: Told) -> None:
    for step in range(1, 51):
        tell("log", step, writer=Writer())
    assert tell.doubt("log", 7, writer=AGAIN, attempt=9) is None
    assert [tell("log", step, writer=Writer()).attempt for step in range(51, 60)] == [1] * 9


def test_a_trainer_that_speaks_with_a_prefix_from_now_on_is_believed_at_its_second_step(tell: Told) -> None:
    for step in range(1, 51):
        tell("log", step, writer=Writer())
    assert tell.doubt("log", 48, writer=AGAIN, attempt=2) is None
    assert tell("log", 49, writer=AGAIN, attempt=2) == Place(2, current=True, began=True, echo=False)


def test_a_rewritten_log_may_speak_without_a_prefix(tell: Told) -> None:
    for step in range(1, 51):
        tell("log", step)
    places = [tell("log", step, writer=Writer(), attempt=2, generation=2) for step in range(1, 60)]
    assert {place.attempt for place in places} == {2}


def test_a_long_attempt_is_recognised_by_its_first_steps(tell: Told) -> None:
    for step in range(1, RECALL + 500):
        tell("log", step)
    assert tell("jsonl", 1, writer=Writer()) == Place(1, current=True, began=False, echo=True)
    assert tell.doubt("other.jsonl", 2, writer=Writer(), attempt=7) is not None
    assert tell.attempts.current == 2
