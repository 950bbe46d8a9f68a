"""Where a run is, from the lines of its trainer, its workers and its engines."""

from __future__ import annotations

import orjson
import pytest

from tests.core.watched import Watched, step_line, trainer
from verlwatch.core.life._stage import Stages

SERVER = "(vLLMHttpServer pid=61) "
WORKER = "(WorkerDict pid=62) "


def counters(running: int, engine: int = 0) -> str:
    return (
        f"{SERVER}INFO 03-02 09:00:00 [loggers.py:257] Engine {engine:03}: Avg prompt throughput: 0.0 tokens/s, Avg "
        f"generation throughput: 9.5 tokens/s, Running: {running} reqs, Waiting: 0 reqs, GPU KV cache usage: 1.5%"
    )


@pytest.fixture
def run() -> Watched:
    """Three steps are over."""
    watched = Watched()
    watched.say("Total training steps: 100", *map(step_line, (1, 2, 3)))
    return watched


def stage(watched: Watched) -> tuple[str, str]:
    stages: Stages = watched.engine.runs["train"].life.stages
    now = stages.told(watched.engine.runs["train"].life.clocks.heard_at)
    return now.name, now.words


def test_after_a_step_it_is_in_the_next_one(run: Watched) -> None:
    assert stage(run) == ("step", "the step after step 3")


@pytest.mark.parametrize(
    ("line", "name", "words"),
    [
        (WORKER + "Compute log probs:  50%|█████     | 160/320 [05:20<05:20,  2.00s/it]", "old_log_prob", "160 of 320"),
        (WORKER + "Compute log probs: 100%|██████████| 320/320 [05:20<00:00,  1.00s/it]", "step", "old_log_prob"),
        (WORKER + "Update policy:   0%|          | 0/8 [00:00<?, ?it/s]", "update_actor", "0 of 8"),
        (trainer("test_gen_batch meta info: {'validate': True, 'global_steps': 4}"), "validation", "begun"),
        (trainer("local_global_step_folder: /ckpt/global_step_4"), "checkpoint", "/ckpt/global_step_4"),
        (counters(3), "gen", "the engines work on 3 requests"),
        (counters(1), "gen", "the engines work on 1 request"),
        (counters(0), "step", "the engines are idle, so it is behind generation"),
    ],
)
def test_lines_tell_where_it_is(run: Watched, line: str, name: str, words: str) -> None:
    run.raw(line)
    found = stage(run)
    assert found[0] == name
    assert words in found[1]


def test_what_was_begun_is_over_with_the_step(run: Watched) -> None:
    run.raw(trainer("local_global_step_folder: /ckpt/global_step_4"), trainer(step_line(4)), "x")
    run.wait(3)
    assert stage(run) == ("step", "the step after step 4")


def test_validation_goes_on_while_the_engines_work(run: Watched) -> None:
    run.raw(trainer("test_gen_batch meta info: {'validate': True}"), counters(5))
    assert stage(run) == ("validation", "validation, begun: the engines work on 5 requests")


def test_all_engines_count(run: Watched) -> None:
    run.raw(counters(4, 0), counters(0, 1), counters(3, 2))
    assert stage(run)[1].endswith("the engines work on 7 requests")
    run.raw(counters(0, 0), counters(0, 2))
    assert stage(run)[0] == "step"


def test_counters_of_long_ago_say_nothing_of_now(run: Watched) -> None:
    run.raw(counters(4))
    run.wait(59)
    run.raw("x")
    assert stage(run)[0] == "gen"
    run.wait(11)
    run.raw("x")
    assert stage(run)[0] == "step"


def test_engines_that_were_idle_and_count_no_more_are_idle(run: Watched) -> None:
    run.raw(counters(0))
    run.wait(600)
    assert stage(run)[1].endswith("the engines are idle, so it is behind generation")


def test_counters_of_the_step_before_say_nothing_of_this_one(run: Watched) -> None:
    run.raw(counters(4))
    run.wait(5)
    run.say(step_line(4))
    run.wait(3)
    assert stage(run) == ("step", "the step after step 4")


def test_a_trainer_of_before_says_nothing_of_the_run_that_goes_on(run: Watched) -> None:
    run.raw("(TaskRunner pid=8) Setting global step to 2")
    run.raw(f"(TaskRunner pid=8) {step_line(3, gen=44.0)}", f"(TaskRunner pid=8) {step_line(4)}", "x")
    run.wait(3)
    before = stage(run)
    run.say("local_global_step_folder: /ckpt/global_step_4")
    assert stage(run) == before


def test_it_is_the_same_after_a_restart(run: Watched) -> None:
    run.raw(counters(4))
    stages = Stages()
    stages.restore(orjson.loads(orjson.dumps(run.engine.runs["train"].life.stages.state())))
    at = run.engine.runs["train"].life.clocks.heard_at
    assert stages.told(at) == run.engine.runs["train"].life.stages.told(at)
