"""What a run is told of before its series have baselines, and when a baseline is worth nothing any more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.training import SETTINGS, Training, story
from verlwatch.core.engine import Engine
from verlwatch.core.types import Chunk, Outcome


def whole(text: str, engine: Engine | None = None) -> Outcome:
    return (engine or Engine(SETTINGS)).feed(Chunk("train.log", 1, 0, text.encode()), 0.0)


def tutorial(first: int, last: int, gen: int) -> str:
    return "".join(
        f"Step {step}: total={gen + 230 + step % 3}ms, gen={gen + step % 5}ms, old_log_prob=120ms, ref=50ms\n"
        for step in range(first, last + 1)
    )


def test_a_phase_that_quadruples_after_four_steps_is_told_as_a_judgement_from_few() -> None:
    outcome = whole(tutorial(496, 499, 2980) + tutorial(500, 500, 12180))
    assert story(outcome) == [("opened", "gen", 500)]
    (told,) = outcome.transitions
    assert told.rule == "early_slow"
    assert told.ratio == pytest.approx(4.09, abs=0.01)
    message = outcome.notifications[0].message
    assert "few steps" in message.summary + "".join(message.advice)


def test_it_closes_when_the_phase_is_back() -> None:
    text = tutorial(1, 6, 2980) + tutorial(7, 7, 12180) + tutorial(8, 9, 2980)
    assert story(whole(text)) == [("opened", "gen", 7), ("resolved", "gen", 7)]


def test_a_young_run_that_slows_by_half_is_not_told() -> None:
    assert story(whole(tutorial(1, 6, 2980) + tutorial(7, 9, 4500))) == []


def test_a_limit_is_told_whatever_the_past_says() -> None:
    engine = Engine(replace(SETTINGS, limits=(("gen", 42.0), ("step", 100.0))))
    told = Training().steps(1, 5, gen=43.5).steps(6, 8).told(engine)
    assert [(t.rule, *story_of) for t, story_of in zip(told.transitions, story(told), strict=True)] == [
        ("limit", "opened", "gen", 1), ("limit", "resolved", "gen", 5)
    ]  # fmt: skip
    assert "over its limit of 42 s" in told.notifications[0].message.title


def dump(nodes: int) -> str:
    return f"{{'actor_rollout_ref': {{'rollout': {{'n': 4}}}},\n 'trainer': {{'nnodes': {nodes}}}}}"


@pytest.mark.parametrize(("nodes", "expected"), [(2, [("opened", "gen", 61), ("opened", "gen", 61)]), (4, [])])
def test_a_resume_with_other_work_begins_anew(nodes: int, expected: list[tuple[str, str, int]]) -> None:
    """Twice as many nodes halve gen, or whatever they do: the old baseline says nothing of it."""
    before, after = Training().line(dump(2)), Training(pid=8).line(dump(nodes))
    before.lines = [row for line in before.lines for row in prefixed(line, 7)]
    after.lines = [row for line in after.lines for row in prefixed(line, 8)]
    before.steps(1, 60)
    after.line("Setting global step to 60").steps(61, 100, gen=90.0)
    engine = Engine(SETTINGS)
    told = whole("".join(before.lines + after.lines), engine)
    phases = [(event, phase) for event, phase, _ in story(told)]
    assert (("opened", "gen") in phases) == bool(expected)


def prefixed(line: str, pid: int) -> list[str]:
    first, *rest = line.rstrip("\n").split("\n")
    return [first + "\n", *(f"(TaskRunner pid={pid}) {row}\n" for row in rest)]


def test_steps_without_numbers_are_counted_and_judged() -> None:
    rows = "".join(
        f"[INFO] step: gen: {2500 + 10 * (n % 3)}.5ms\n[INFO] step: ref: 180.{n}ms\n" for n in range(30)
    ) + "".join("[INFO] step: gen: 10500ms\n[INFO] step: ref: 180ms\n" for _ in range(3))
    engine = Engine(SETTINGS)
    told = whole(rows, engine)
    assert engine.runs["train"].is_counted
    assert story(told)[0] == ("opened", "gen", 31)


def test_numbers_win_over_counting() -> None:
    engine = Engine(SETTINGS)
    rows = "[INFO] step: gen: 2500ms\n[INFO] step: ref: 180ms\n"
    whole(rows + tutorial(496, 499, 2980) + rows + rows, engine)
    assert not engine.runs["train"].is_counted
    assert engine.runs["train"].step == 499


def test_validation_has_a_past_of_its_own() -> None:
    training = Training()
    for step in range(1, 101):
        extra = {"testing": 160.0 if step == 90 else 40.0} if step % 10 == 0 else {}
        training.steps(step, step, **extra)
    assert story(training.told()) == [("opened", "testing", 90), ("resolved", "testing", 90)]


def test_the_tutorials_own_case() -> None:
    log = Path(__file__).parents[1] / "data" / "tutorial-forms.log.gz"
    import gzip

    outcome = whole(gzip.decompress(log.read_bytes()).decode())
    assert ("opened", "gen", 500) in story(outcome)
