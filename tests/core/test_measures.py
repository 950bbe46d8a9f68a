"""MFU, memory and throughput of a run, through the engine."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from tests.core import training
from tests.core.training import story
from verlwatch.core.engine import Engine
from verlwatch.core.types import Chunk, Outcome

CHANGE = 80
"""The step at which something changes."""
SETTINGS = replace(training.SETTINGS, metrics=("mfu_actor", "cpu_memory_used_gb", "max_memory_allocated_gb"))
DEVICE, DEVICE_08 = "perf/max_memory_allocated_gb", "actor/perf/max_memory_allocated_gb"
HOST = "perf/cpu_memory_used_gb"
Of = Callable[[int], float]


def told(
    last: int = 140,
    *,
    update: float = 1.0,
    mfu: float = 1.0,
    engine: Engine | None = None,
    also: Mapping[str, Of] = MappingProxyType({}),
) -> Outcome:
    """A run in which update_actor, and MFU, change by a factor at step CHANGE; ``also`` values by key, of the step."""
    noise, lines = random.Random(3), []
    for step in range(1, last + 1):
        slower, lower = (update, mfu) if step >= CHANGE else (1.0, 1.0)
        gen, actor = 40.0 * noise.uniform(0.97, 1.03), 20.0 * slower * noise.uniform(0.98, 1.02)
        values = {
            "timing_s/gen": gen,
            "timing_s/update_actor": actor,
            "timing_s/step": gen + actor,
            "perf/throughput": 50.0 * 60.0 / (gen + actor),
            "perf/mfu/actor": 0.38 * lower * 20.0 / actor * noise.uniform(0.98, 1.02),
            **{key: of(step) for key, of in also.items()},
        }
        lines.append(f"step:{step} - actor/lr:1e-06 - " + " - ".join(f"{k}:{v!r}" for k, v in values.items()) + "\n")
    return (engine or Engine(SETTINGS)).feed(Chunk("train.log", 1, 0, "".join(lines).encode()), 0.0)


def grows(base: float, from_step: int = CHANGE) -> Of:
    """One percent of ``base`` more with each step."""
    return lambda step: base * (1 + 0.01 * max(0, step - from_step + 1))


def steady(base: float) -> Of:
    return lambda _: base


def test_a_third_less_mfu_with_phases_as_before_is_told_for_information() -> None:
    outcome = told(mfu=0.67)
    assert story(outcome) == [("opened", "mfu_actor", CHANGE)]
    (opened,) = outcome.transitions
    assert (opened.rule, opened.severity) == ("metric_shift", "info")
    assert opened.step <= CHANGE + 6
    assert opened.ratio == pytest.approx(0.67, abs=0.03)
    assert opened.before == pytest.approx(38.0, rel=0.05)
    assert outcome.notifications == ()


def test_a_slower_phase_explains_its_mfu() -> None:
    outcome = told(update=1.5)
    assert [(event, phase) for event, phase, _ in story(outcome)] == [("opened", "update_actor")]


@pytest.mark.parametrize("key", [HOST, DEVICE, DEVICE_08, "actor/perf/cpu_memory_used_gb"])
def test_memory_that_grows_by_a_percent_each_step_is_told_within_fifteen(key: str) -> None:
    name = key.rpartition("/")[2]
    outcome = told(CHANGE + 30, also={key: grows(120.0)})
    opened = outcome.transitions[0]
    assert (opened.rule, opened.phase, opened.severity) == ("metric_shift", name, "warning")
    assert CHANGE <= opened.step <= CHANGE + 15
    message = outcome.notifications[0].message
    assert message.phase == name
    assert " GB instead of 120 GB" in message.title
    labels = [label for label, _ in message.facts]
    assert "Ratio" in labels
    assert not {"Lost so far", "Ratio at equal work", "Adds to the step"} & set(labels)


def test_what_is_flat_is_silent() -> None:
    outcome = told(300, also={HOST: steady(120.0), DEVICE: steady(33.3), "perf/mfu/critic": steady(0.3)})
    assert outcome.transitions == ()


def test_memory_that_comes_back_costs_nothing() -> None:
    outcome = told(160, also={HOST: lambda step: 150.0 if CHANGE <= step < CHANGE + 40 else 120.0})
    assert [event for event, _, _ in story(outcome)] == ["opened", "resolved"]
    end = outcome.notifications[-1].message
    assert "back to normal" in end.title
    assert "cost" not in end.summary
    assert "Cost" not in dict(end.facts)


def test_throughput_is_judged_beside_the_step_where_it_is_asked_for() -> None:
    low: Mapping[str, Of] = {"perf/throughput": lambda step: (50.0 + step % 3) * (0.7 if step >= CHANGE else 1.0)}
    assert told(also=low).transitions == ()
    asked = Engine(replace(SETTINGS, metrics=("throughput",)))
    (opened,) = told(engine=asked, also=low).transitions
    assert (opened.rule, opened.phase, opened.severity) == ("metric_shift", "throughput", "info")


def test_what_is_not_asked_for_is_not_judged() -> None:
    engine = Engine(replace(SETTINGS, metrics=()))
    assert told(mfu=0.5, engine=engine, also={HOST: grows(120.0)}).transitions == ()
    assert "mfu_actor" not in engine.runs["train"].judged.recent


def test_each_metric_is_a_series_of_the_budget() -> None:
    engine = Engine(SETTINGS)
    told(40, engine=engine, also={HOST: steady(120.0), DEVICE: steady(33.0)})
    judged = engine.runs["train"].judged
    assert judged.recent.keys() == {
        "gen", "update_actor", "step", "mfu_actor", "cpu_memory_used_gb", "max_memory_allocated_gb"
    }  # fmt: skip


def test_the_status_lists_no_metric_among_the_phases() -> None:
    from verlwatch.shell._run_view import run_status

    engine = Engine(SETTINGS)
    told(40, engine=engine, also={HOST: steady(120.0)})
    assert [phase.name for phase in run_status(engine.runs["train"], 0.0).phases] == ["gen", "update_actor", "step"]
