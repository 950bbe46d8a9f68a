"""What a step tells of its samples, through the engine: the slowest one, preemptions, tools, aborted and cut ones."""

from __future__ import annotations

import pytest

from tests.core.healthy_run import (
    ABORTED,
    CLIPPED,
    FAULT,
    LOOP,
    MEAN,
    MEAN_TOOLS,
    PREEMPTED,
    SLOWEST,
    SLOWEST_TOOLS,
    Fault,
    HealthyRun,
    Values,
    opened,
)
from verlwatch.core import tail
from verlwatch.core.engine import Engine
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk


def plus(key: str, more: float) -> Fault:
    def fault(values: Values, part: float) -> None:
        values[key] += more * part

    return fault


def faster_but_one(factor: float) -> Fault:
    """All samples but the slowest take a part of their time: gen takes as long as before."""

    def fault(values: Values, part: float) -> None:
        del part
        values[MEAN] *= factor
        values[MEAN_TOOLS] *= factor

    return fault


def slower_tools(factor: float) -> Fault:
    """Tools take longer and the tokens less: a sample takes as long as before."""

    def fault(values: Values, part: float) -> None:
        del part
        for tools, generation in ((MEAN_TOOLS, MEAN), (SLOWEST_TOOLS, SLOWEST)):
            more = (factor - 1) * values[tools]
            values[tools] += more
            values[generation] -= more

    return fault


@pytest.mark.parametrize(
    ("rule", "fault", "over", "within"),
    [
        ("long_tail", faster_but_one(0.5), 1, 5),
        ("preemptions", plus(PREEMPTED, 0.5), 1, 5),
        ("preemptions", plus(PREEMPTED, 0.5), 40, 25),
        ("tool_calls", slower_tools(2.2), 1, 5),
        ("aborted", plus(ABORTED, 0.1), 1, 5),
        ("response_clipping", plus(CLIPPED, 0.3), 1, 5),
        ("response_clipping", plus(CLIPPED, 0.4), 40, 30),
    ],
)
def test_what_is_lastingly_worse_is_told_once(rule: str, fault: Fault, over: int, within: int) -> None:
    outcome = HealthyRun(seed=21, fault=fault, over=over).told(FAULT + 40, health=())
    ((told, step),) = opened(outcome)
    assert told == rule
    assert FAULT < step <= FAULT + within
    (message, *_) = (n.message for n in outcome.notifications)
    assert message.severity == "warning"
    assert any("actor_rollout_ref.rollout" in line or "data." in line for line in message.advice)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faster_but_one(0.8), id="tail a quarter longer"),
        pytest.param(plus(PREEMPTED, 0.06), id="few preemptions"),
        pytest.param(slower_tools(1.3), id="tools six points more"),
        pytest.param(plus(ABORTED, 0.03), id="three points more aborted"),
        pytest.param(plus(CLIPPED, 0.08), id="eight points more cut"),
        pytest.param(faster_but_one(2.0), id="tail shorter"),
    ],
)
def test_what_is_slightly_worse_or_better_is_not_told(fault: Fault) -> None:
    assert opened(HealthyRun(seed=22, fault=fault).told(FAULT + 40, health=())) == []


def test_the_message_says_how_long_the_slowest_sample_takes_of_gen() -> None:
    def fault(values: Values, part: float) -> None:
        faster_but_one(0.4)(values, part)
        values |= {f"{LOOP}slowest/response_length": 2048.0, f"{LOOP}slowest/num_preempted": 3.0}

    outcome = HealthyRun(seed=21, fault=fault).told(FAULT + 20, health=())
    message = outcome.notifications[0].message
    assert message.title.startswith("train: generation waits for its slowest sample: ")
    assert " s of gen " in message.title
    assert ", mean " in message.title
    text = "\n".join(message.evidence)
    assert "its response has 2048 tokens, the mean one " in text
    assert "tool calls took " in text
    assert "it was preempted 3 times" in text


def test_where_gen_is_told_the_tail_is_evidence_of_it() -> None:
    def fault(values: Values, part: float) -> None:
        del part
        values[SLOWEST] *= 2.2
        values[SLOWEST_TOOLS] *= 2.2

    outcome = HealthyRun(seed=21, fault=fault).told(FAULT + 40, health=())
    assert {n.message.phase for n in outcome.notifications} == {"gen"}
    assert any(line.startswith("slowest_sample: ") for n in outcome.notifications for line in n.message.evidence)
    assert {t.severity for t in outcome.transitions if t.rule == "long_tail"} == {"info"}


def test_an_engine_that_does_not_report_preemptions_has_none() -> None:
    assert tail.measured("preemptions", {PREEMPTED: -1.0}) is None
    assert tail.measured("preemptions", {PREEMPTED: 0.0}) == 0.0


def test_a_run_without_tools_has_no_share_for_them() -> None:
    values = {SLOWEST: 90.0, MEAN: 30.0, SLOWEST_TOOLS: 0.0, MEAN_TOOLS: 0.0}
    assert tail.measured("tool_wait", values) is None
    assert tail.measured("slowest_sample", values) == 3.0


def test_tools_count_for_the_time_of_a_sample() -> None:
    values = {SLOWEST: 50.0, MEAN: 20.0, SLOWEST_TOOLS: 40.0, MEAN_TOOLS: 10.0}
    assert tail.measured("slowest_sample", values) == 3.0
    assert tail.measured("tool_wait", values) == pytest.approx(1 / 3)


def test_ranks_stand_for_samples_where_only_those_are_printed() -> None:
    found = tail.read({"timing_s/generation_timing/max": 90.0, "timing_s/generate_sequences": 60.0})
    assert found is not None
    assert (found.of, found.slowest_s, found.mean_s) == ("rank", 90.0, 60.0)


@pytest.mark.parametrize("values", [{}, {MEAN: 3.0}, {SLOWEST: 3.0, MEAN: 0.0}, {SLOWEST: 3.0, MEAN: float("nan")}])
def test_what_is_not_printed_is_not_known(values: Values) -> None:
    assert tail.measured("slowest_sample", values) is None


def test_a_slowest_sample_that_is_a_small_part_of_gen_is_not_told() -> None:
    run = HealthyRun(seed=21, fault=faster_but_one(0.5))
    text = "".join(f"{_slow_gen(run.line(step))}" for step in range(1, FAULT + 40))
    assert opened(Engine(Settings()).feed(Chunk("train.log", 1, 0, text.encode()), 0.0)) == []


def _slow_gen(line: str) -> str:
    """The same step, with a minute of gen in which no sample is generated."""
    before, _, rest = line.partition("timing_s/gen:")
    seconds, _, after = rest.partition(" - ")
    return f"{before}timing_s/gen:{float(seconds) * 2.5!r} - {after}"
