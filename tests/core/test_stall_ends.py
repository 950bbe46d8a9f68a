"""How a stall ends: by the step that ended it, however many steps are read with that one, and never by an old word."""

from __future__ import annotations

import pytest

from tests.core.watched import Watched, step_line, titles, trainer


@pytest.fixture
def run() -> Watched:
    """Ten steps of 60 s, and then lines that tell of nothing for 300 s."""
    watched = Watched()
    watched.say("Total training steps: 100", "Training from scratch")
    watched.steps(1, 10)
    hang(watched)
    assert [rule for _, rule, _ in watched.told] == ["stalled"]
    return watched


def hang(watched: Watched) -> None:
    for _ in range(20):
        watched.wait(15)
        watched.say("INFO: GET /metrics 200 OK")


def test_of_several_steps_that_are_read_together_the_first_has_ended_it(run: Watched) -> None:
    run.raw(*(trainer(step_line(number, gen=40.0 + 300.0 * (number == 11))) for number in (11, 12, 13)))
    assert titles(run)[1:] == ["goes on: step 11 came after 300 s; gen took 340 s of it"]


def test_the_next_stall_is_not_over_because_the_one_before_was(run: Watched) -> None:
    run.step(11, gen=340.0)
    assert len(run.messages) == 2
    hang(run)
    assert [reason for reason, _, _ in run.told] == ["opened", "resolved", "reopened"]
    run.see(behind=True)
    run.wait(5)
    assert (len(run.messages), run.state) == (3, "stalled")
