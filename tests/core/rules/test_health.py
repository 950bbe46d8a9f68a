"""The health of a training through the engine: what collapses or explodes is told, what training does is not."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp

import pytest

from tests.core.healthy_run import (
    ALL,
    ENTROPY,
    FAULT,
    GRADIENTS,
    KL,
    LENGTH,
    MEAN,
    MEAN_TOOLS,
    SCORE,
    SLOWEST,
    SLOWEST_TOOLS,
    Fault,
    HealthyRun,
    Values,
    opened,
)
from verlwatch.core.engine import Engine
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk, Outcome

SETTINGS = Settings(receivers=("team",))


def times(key: str, factor: float) -> Fault:
    """Multiplies a value, bit by bit."""

    def fault(values: Values, part: float) -> None:
        values[key] *= factor**part

    return fault


def to(key: str, value: float) -> Fault:
    def fault(values: Values, part: float) -> None:
        values[key] += (value - values[key]) * part

    return fault


def shorter(factor: float) -> Fault:
    """Responses, and with them the seconds of their samples."""

    def fault(values: Values, part: float) -> None:
        for key in (LENGTH, SLOWEST, MEAN, SLOWEST_TOOLS, MEAN_TOOLS):
            values[key] *= factor**part

    return fault


@pytest.mark.parametrize(
    ("rule", "fault", "over", "within"),
    [
        ("entropy_collapse", times(ENTROPY, 1 / 15), 20, 15),
        ("entropy_collapse", times(ENTROPY, 1 / 15), 60, 40),
        ("grad_norm_explosion", times(GRADIENTS, 5), 1, 6),
        ("grad_norm_explosion", times(GRADIENTS, 100), 30, 18),
        ("kl_explosion", to(KL, 3.0), 20, 10),
        ("reward_collapse", times(SCORE, 0.1), 1, 4),
        ("reward_collapse", times(SCORE, 0.1), 60, 60),
        ("length_collapse", shorter(0.3), 20, 20),
    ],
)
def test_a_collapse_or_explosion_is_told_once_while_it_comes(rule: str, fault: Fault, over: int, within: int) -> None:
    outcome = HealthyRun(seed=11, fault=fault, over=over).told(FAULT + 65)
    ((told, step),) = opened(outcome)
    assert told == rule
    assert FAULT < step <= FAULT + within
    (message, *_) = (n.message for n in outcome.notifications)
    assert " instead of " in message.title
    assert message.severity == "warning"
    assert any(line.startswith(f"step {step}: ") for line in message.evidence)
    assert message.advice


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(times(ENTROPY, 0.7), id="entropy falls by a third"),
        pytest.param(times(GRADIENTS, 1.8), id="gradients not twice as large"),
        pytest.param(times(KL, 1.8), id="KL not twice as large"),
        pytest.param(times(SCORE, 0.75), id="rewards a quarter lower"),
        pytest.param(shorter(0.7), id="responses a third shorter"),
        pytest.param(times(ENTROPY, 8.0), id="entropy rises"),
        pytest.param(times(GRADIENTS, 0.1), id="gradients vanish"),
        pytest.param(times(KL, 0.1), id="KL falls"),
    ],
)
def test_what_is_no_collapse_is_not_told(fault: Fault) -> None:
    assert opened(HealthyRun(seed=12, fault=fault, over=5).told(FAULT + 40)) == []


@pytest.mark.parametrize("seed", range(2))
def test_a_run_in_good_health_is_silent_with_all_its_trends(seed: int) -> None:
    assert opened(HealthyRun(seed).told(400)) == []


def test_entropy_that_slides_to_a_tenth_over_the_run_is_no_collapse() -> None:
    def slides(values: Values, part: float) -> None:
        values[ENTROPY] *= exp(-2.3 * part)

    assert opened(HealthyRun(3, fault=slides, over=250).told(400)) == []


def test_health_is_not_judged_unless_it_is_asked_for() -> None:
    for health in ((), tuple(name for name in ALL if name != "entropy")):
        engine = Engine(replace(SETTINGS, health=health))
        outcome = HealthyRun(11, fault=times(ENTROPY, 0.05)).told(FAULT + 40, engine=engine)
        assert opened(outcome) == []
        assert "entropy" not in engine.runs["train"].judged.recent


def test_what_recovers_is_over_and_what_stays_is_the_new_course() -> None:
    def for_a_while(values: Values, part: float) -> None:
        if part < 0.5:
            values[SCORE] *= 0.1

    outcome = HealthyRun(11, fault=for_a_while, over=40).told(FAULT + 60)
    assert [(t.event, t.closed_as) for t in outcome.transitions] == [("opened", None), ("closed", "resolved")]
    assert outcome.transitions[1].step <= FAULT + 30
    engine = Engine(replace(SETTINGS, health=ALL, accept_after_steps=50))
    outcome = HealthyRun(11, fault=times(SCORE, 0.1)).told(FAULT + 150, engine=engine)
    assert [t.event for t in outcome.transitions] == ["opened", "closed"]
    assert engine.runs["train"].judged.expected["score"] == pytest.approx(0.06, abs=0.03)


def test_they_take_nothing_of_the_phases_budget() -> None:
    rates = []
    for health in ((), ALL):
        engine = Engine(replace(SETTINGS, health=health))
        HealthyRun(1).told(40, engine=engine)
        rates.append(engine.runs["train"].judged._rate())
    assert rates[0] == rates[1]


# ---------------------------------------------------------------------------------------------------- not finite
def steps(first: int, last: int, **values: str) -> str:
    more = "".join(f" - {key.replace('__', '/')}:{value}" for key, value in values.items())
    return "".join(
        f"(TaskRunner pid=7) step:{k} - actor/lr:1e-06{more} - timing_s/gen:40.{k % 7} - timing_s/step:45.{k % 5}\n"
        for k in range(first, last + 1)
    )


def fed(text: str, engine: Engine | None = None) -> Outcome:
    return (engine or Engine(SETTINGS)).feed(Chunk("train.log", 1, 0, text.encode()), 0.0)


def life(outcome: Outcome) -> list[tuple[str, int, str]]:
    return [(t.event, t.step, t.severity) for t in outcome.transitions]


def test_a_gradient_that_is_nan_is_told_at_once_and_over_with_the_next_number() -> None:
    text = (
        steps(1, 3, actor__grad_norm="0.5") + steps(4, 4, actor__grad_norm="nan") + steps(5, 9, actor__grad_norm="0.4")
    )
    outcome = fed(text)
    assert life(outcome) == [("opened", 4, "warning"), ("closed", 4 + 1, "warning")]
    first, last = (n.message for n in outcome.notifications)
    assert first.title == "train: actor/grad_norm is nan at step 4"
    assert first.evidence == ("step 4: actor/grad_norm nan",)
    assert last.title.startswith("train: over: actor/grad_norm is nan")


@pytest.mark.parametrize("key", ["actor__pg_loss", "critic__vf_loss", "actor__kl_loss"])
def test_a_loss_that_is_no_number_is_critical(key: str) -> None:
    outcome = fed(steps(1, 5) + steps(6, 6, **{key: "np.float64(-inf)"}))
    assert life(outcome) == [("opened", 6, "critical")]
    assert outcome.transitions[0].summary == f"{key.replace('__', '/')} is -inf at step 6"


def test_nan_in_three_steps_running_is_critical() -> None:
    outcome = fed(steps(1, 5) + steps(6, 8, actor__grad_norm="nan", critic__grad_norm="nan"))
    assert life(outcome) == [("opened", 6, "warning"), ("updated", 8, "critical")]
    assert "for 3 steps now" in outcome.notifications[-1].message.title


def test_what_a_worker_says_is_told_with_its_step() -> None:
    said = "".join(f"(WorkerDict pid={20 + r}) WARN: rank {r} grad_norm is not finite: nan\n" for r in (0, 3))
    outcome = fed(steps(1, 5) + said + steps(6, 7))
    assert life(outcome) == [("opened", 6, "warning"), ("closed", 7, "warning")]
    assert outcome.notifications[0].message.evidence == ("grad_norm is not finite, say workers: ranks 0, 3",)


@pytest.mark.parametrize("key", ["critic__score__mean", "val__loss", "training__off_policy__ratio", "perf__mfu__actor"])
def test_what_is_no_loss_and_no_gradient_may_be_nan(key: str) -> None:
    assert life(fed(steps(1, 40, **{key: "nan"}))) == []


def test_nan_poisons_no_series() -> None:
    run = HealthyRun(5)
    lines = [run.line(step) for step in range(1, 101)]
    lines[50] = lines[50].replace(f"{ENTROPY}:", f"{ENTROPY}:nan - was:").replace(f"{SCORE}:", f"{SCORE}:inf - had:")
    engine = Engine(replace(SETTINGS, health=ALL))
    assert opened(fed("".join(lines), engine)) == []
    judged = engine.runs["train"].judged
    assert 0.1 < judged.expected["entropy"] < 1
    assert all(value < 1 for value in judged.recent["score"])
    json.dumps(judged.state(), allow_nan=False)


def jsonl(first: int, last: int, gradient: str) -> str:
    return "".join(
        f'{{"step":{k},"data":{{"actor/grad_norm":{gradient},"timing_s/gen":40.5,"timing_s/step":45.5}}}}\n'
        for k in range(first, last + 1)
    )


def test_null_in_the_file_of_a_logger_is_nan_where_it_stands_for_a_gradient() -> None:
    outcome = fed(jsonl(1, 5, "0.5") + jsonl(6, 6, "null") + jsonl(7, 8, "0.5"))
    assert life(outcome) == [("opened", 6, "warning"), ("closed", 7, "warning")]


def test_a_restart_between_two_such_steps_tells_nothing_twice() -> None:
    engine = Engine(SETTINGS)
    fed(steps(1, 5) + steps(6, 7, actor__grad_norm="nan"), engine)
    judged = engine.runs["train"].judged
    state = json.loads(json.dumps(judged.state(), allow_nan=False))
    other = type(judged)("train", SETTINGS)
    other.restore(state)
    assert other.finite.state() == judged.finite.state()
    found = other.finite.look(8, {"actor/grad_norm": float("nan")})
    assert found is not None
    assert (found.since, found.steps) == (6, 3)
