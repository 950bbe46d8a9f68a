"""The life of a run at its edges: restarts of the watcher, clocks that jump, history, logs that are not seen."""

from __future__ import annotations

import pytest

from tests.core.watched import BEGAN_AT, Watched, step_line, titles, trainer
from verlwatch.core.fleet import AgentReport
from verlwatch.core.settings import Patience, Settings

HOUR = 3600.0
ALLOWED_S = 150.0
"""2.5 times the 60 s that each step takes."""


@pytest.fixture
def run() -> Watched:
    """Ten steps of 60 s, watched from the first."""
    watched = Watched()
    watched.say("Total training steps: 100", "Training from scratch")
    watched.steps(1, 10)
    return watched


def chatter(watched: Watched, seconds: float) -> None:
    """Lines come that tell of nothing."""
    for _ in range(int(seconds / 15)):
        watched.wait(15)
        watched.say("INFO: GET /metrics 200 OK")


def stuck(watched: Watched, seconds: float = 300.0) -> None:
    chatter(watched, seconds)
    assert watched.told == [("opened", "stalled", 600 + ALLOWED_S)]


# -------------------------------------------------------------------------------------------------- short steps
def test_a_run_of_short_steps_that_hangs_while_an_engine_prints_is_told_once_until_it_is_critical() -> None:
    watched = Watched()
    watched.say("Total training steps: 100", "Training from scratch")
    watched.steps(1, 10, gen=1.5, update_actor=0.5)
    for _ in range(30):
        watched.wait(2)
        watched.say("INFO: GET /health 200 OK")
    assert watched.told == [("opened", "stalled", 30), ("escalated", "stalled", 50)]


def test_a_traceback_that_is_complete_after_the_end_of_its_process_is_told_with_it(run: Watched) -> None:
    run.raw(
        "Traceback (most recent call last):",
        '  File "/opt/verl/trainer/main_ppo.py", line 64, in main',
        "    run_ppo(config)",
        "ray.exceptions.RayTaskError(KeyError): ray::TaskRunner.run() (pid=7, ip=10.0.0.7, repr=<main_ppo.TaskRunner>)",
        '  File "/a/reward.py", line 17, in compute_score',
        "KeyError: 'gsm9k'",
    )
    run.observe("process", pid=7, name="ray::TaskRunner", role="trainer", state="gone", exit="code 1")
    run.wait(30)
    assert [rule for _, rule, _ in run.told] == ["crashed"]


def test_while_a_fault_is_gathered_a_stall_does_not_become_critical_first(run: Watched) -> None:
    stuck(run, 3 * ALLOWED_S - 15)
    run.wait(13)
    run.raw(
        "(WorkerDict pid=9) [rank3]:[E101 00:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
        "600012 milliseconds before timing out."
    )
    run.wait(10)
    assert run.told[1:] == [("escalated", "collective_timeout", 600 + 3 * ALLOWED_S + 2)]


def test_a_log_that_begins_with_the_host_of_its_trainer_is_heard() -> None:
    watched = Watched()
    watched.say("TaskRunner hostname: gpu-1, PID: 7", step_line(1), step_line(2))
    assert (watched.engine.runs["train"].life.is_live, watched.state) == (True, "running")


# -------------------------------------------------------------------------------------------------- restarts
def test_a_restart_in_the_middle_of_a_stall_tells_nothing_twice(run: Watched) -> None:
    stuck(run)
    for _ in range(3):
        run.restart()
        run.wait(2)
        run.see(behind=True)
        run.wait(2)
        run.see()
        chatter(run, 30)
    assert (len(run.messages), run.state) == (1, "stalled")
    run.step(11, gen=380.0)
    assert titles(run)[1:] == ["goes on: step 11 came after 402 s; gen took 380 s of it"]


def test_a_stall_that_ends_while_the_watcher_is_down_is_told_as_over(run: Watched) -> None:
    stuck(run)
    run.restart()
    run.wait(60)
    run.see(behind=True)
    run.step(11, gen=340.0)
    run.see()
    assert run.told[1:] == [("resolved", "stalled", 960)]


def test_a_restart_in_a_blind_moment_neither_ends_it_nor_tells_it_again(run: Watched) -> None:
    run.see(readable=False)
    run.wait(100)
    assert run.told == [("opened", "blind", 660)]
    run.restart()
    run.wait(5)
    run.see(readable=False)
    run.wait(300)
    assert len(run.messages) == 1
    run.see(behind=True)
    assert titles(run)[1:] == ["its logs can be read again"]


def test_after_a_restart_a_death_that_was_told_is_not_told_again(run: Watched) -> None:
    run.observe("process", state="gone", pid=7, name="python", exit="signal 9")
    run.wait(10)
    run.restart()
    run.wait(5)
    run.see()
    run.wait(HOUR)
    assert ([reason for reason, *_ in run.told], run.state) == (["opened"], "crashed")


def test_a_run_goes_on_after_a_restart_with_the_pace_that_it_had(run: Watched) -> None:
    run.restart()
    run.see()
    run.wait(ALLOWED_S - 1)
    assert run.told == []
    run.wait(2)
    assert [rule for _, rule, _ in run.told] == ["silent"]


# -------------------------------------------------------------------------------------------------- clocks
def test_a_host_that_was_suspended_finds_nothing_late(run: Watched) -> None:
    run.now += 2 * HOUR
    run.engine.slept(2 * HOUR)
    run.see(behind=True)
    run.wait(5)
    run.see()
    run.steps(11, 14)
    assert run.told == []


def test_what_hangs_after_a_suspension_is_told_as_late_as_it_would_be_otherwise(run: Watched) -> None:
    run.wait(50)
    run.now += 2 * HOUR
    run.engine.slept(2 * HOUR)
    chatter(run, 300)
    assert run.told == [("opened", "stalled", 600 + 2 * HOUR + ALLOWED_S)]


@pytest.mark.parametrize("back", [30.0, HOUR, 24 * HOUR])
def test_a_clock_that_is_set_back_tells_nothing_false(run: Watched, back: float) -> None:
    run.wait(30)
    run.now -= back
    run.wait(30)
    run.step(11)
    run.steps(12, 16)
    assert run.told == []


def test_a_run_that_hangs_when_the_clock_is_set_back_is_told_from_there_on(run: Watched) -> None:
    run.now -= HOUR
    run.see()
    chatter(run, 300)
    assert run.told == [("opened", "stalled", 600 - HOUR + ALLOWED_S)]


def test_a_death_is_told_soon_though_the_clock_is_set_back_meanwhile(run: Watched) -> None:
    run.observe("process", state="gone", pid=7, name="python", exit="code 1")
    run.now -= HOUR
    run.see()
    run.wait(5)
    assert [rule for _, rule, _ in run.told] == ["killed"]


# -------------------------------------------------------------------------------------------------- history
def of_before(*more: str, steps: int = 10) -> Watched:
    """A log that was there before anybody watched."""
    watched = Watched()
    lines = ("Total training steps: 100", "Training from scratch", *map(step_line, range(1, steps + 1)))
    watched.raw(*map(trainer, lines), *more, history=True)
    return watched


DEATH = "train.sh: line 12: 20990 Killed                  python3 -m verl.trainer.main_ppo"


def test_a_log_of_two_hours_ago_tells_no_stall() -> None:
    run = of_before()
    for _ in range(40):
        run.wait(60)
        run.see(changed_ago_s=2 * HOUR + run.now)
    assert (run.told, run.state) == ([], "unknown")


def test_a_log_that_grew_just_before_is_watched_from_then_on() -> None:
    run = of_before()
    run.wait(1)
    run.see(changed_ago_s=40)
    run.wait(400)
    assert run.told == [("opened", "silent", ALLOWED_S)]


def test_a_run_that_died_before_anybody_watched_is_no_news() -> None:
    run = of_before(DEATH)
    run.wait(1)
    run.see(changed_ago_s=600)
    run.wait(8 * HOUR)
    assert (run.told, run.state) == ([], "crashed")


def test_one_that_goes_on_after_such_a_death_is_watched() -> None:
    run = of_before(DEATH)
    run.wait(1)
    run.see(changed_ago_s=600)
    run.wait(60)
    run.steps(11, 16)
    run.wait(ALLOWED_S + 1)
    assert [rule for _, rule, _ in run.told] == ["silent"]


def test_a_run_that_was_done_before_anybody_watched_is_no_news() -> None:
    run = of_before(trainer("'Final validation metrics: None'"), steps=100)
    run.wait(1)
    run.see(changed_ago_s=60)
    run.wait(8 * HOUR)
    assert (run.told, run.state) == ([], "finished")


def test_history_never_sets_the_pace_by_the_speed_at_which_it_is_read() -> None:
    run = of_before(steps=50)
    run.see()
    run.steps(51, 60)
    assert run.told == []


# -------------------------------------------------------------------------------------------------- what is not seen
def test_a_log_that_cannot_be_read_is_blind_after_a_minute_and_nothing_else(run: Watched) -> None:
    run.see(readable=False)
    run.wait(59)
    assert run.told == []
    run.wait(HOUR)
    assert (run.told, run.state) == ([("opened", "blind", 660)], "unknown")


def test_while_bytes_wait_to_be_judged_nothing_is_late(run: Watched) -> None:
    run.see(behind=True)
    run.wait(HOUR)
    assert run.told == []


def test_a_run_in_the_queue_of_its_scheduler_is_not_late(run: Watched) -> None:
    run.observe("job", job="7", state="PENDING")
    run.wait(HOUR)
    assert run.told == []


def test_while_the_agent_is_gone_that_reads_a_stalled_run_the_stall_stays_as_it_is() -> None:
    run = Watched(source="gpu-1:/logs/train.log")
    run.engine.expect(("gpu-1",), BEGAN_AT)
    report = AgentReport("gpu-1", ("train",), 1)

    def turns(seconds: float, *, heard: bool) -> None:
        for _ in range(int(seconds / 10)):
            run.wait(10)
            if heard:
                run.hear(report)
                run.say("INFO: GET /metrics 200 OK")
            run.engine.see((), BEGAN_AT + run.now)

    run.hear(report)
    run.say("Total training steps: 100")
    for number in range(1, 11):
        turns(60, heard=True)
        run.step(number)
    turns(300, heard=True)
    assert run.told == [("opened", "stalled", 600 + ALLOWED_S)]
    turns(1200, heard=False)
    assert run.told[1:] == [("opened", "agent_lost", 960)]
    turns(30, heard=True)
    run.step(11, gen=1500.0)
    assert [rule for reason, rule, _ in run.told[2:] if reason == "resolved"] == ["agent_lost", "stalled"]
    assert not [rule for _, rule, _ in run.told if rule in {"blind", "silent"}]


# -------------------------------------------------------------------------------------------------- deaths and ends
def test_a_job_that_is_named_as_over_later_adds_no_message(run: Watched) -> None:
    run.raw(DEATH)
    run.wait(60)
    run.observe("job", job="7", state="FAILED", exit="code 137")
    run.wait(HOUR)
    assert [reason for reason, *_ in run.told] == ["opened"]


def test_a_job_that_is_queued_again_is_over_and_not_late(run: Watched) -> None:
    run.observe("job", job="7", state="PREEMPTED", exit="signal 15")
    run.wait(60)
    run.observe("job", job="7", state="PENDING")
    run.wait(8 * HOUR)
    assert titles(run) == [
        "job 7 ended by the scheduler: preempted, at step 10 of 100",
        "its job is queued again",
    ]
    assert run.state == "unknown"
    run.say("TaskRunner hostname: gpu-2, PID: 9")
    run.wait(3)
    run.observe("job", job="7", state="RUNNING")
    assert run.state == "starting"


def test_a_process_that_ends_in_good_order_makes_no_run_silent() -> None:
    run = Watched()
    run.steps(1, 10)  # how many steps were planned is not known
    run.observe("process", state="gone", pid=7, name="python", exit="code 0")
    run.wait(8 * HOUR)
    assert run.told == []


def test_how_long_a_dead_run_lived_does_not_grow_with_time(run: Watched) -> None:
    run.raw(DEATH)
    run.wait(5 * HOUR)
    assert [dict(message.facts)["Lived"] for _, message in run.messages] == ["10 min", "10 min"]


def test_a_run_that_fails_and_goes_on_is_told_as_alive(run: Watched) -> None:
    run.raw(DEATH)
    run.wait(30)
    run.step(11)
    assert titles(run) == [
        "killed by SIGKILL, at step 10 of 100",
        "goes on with step 11: what failed has ended no training",
    ]


# -------------------------------------------------------------------------------------------------- start
def test_each_part_of_a_start_has_its_own_limit() -> None:
    patience = Patience(start_s=100.0, loading_s=200.0, first_step_s=300.0, first_validation_s=400.0)
    watched = Watched(Settings(receivers=("team",), patience=patience))
    watched.say("Total training steps: 100")
    watched.wait(99)
    watched.say("Load from checkpoint folder: /ckpt/global_step_10")
    watched.wait(199)
    watched.say("test_gen_batch meta info: {'validate': True}")
    watched.wait(399)
    watched.say("'Initial validation metrics: {}'")
    watched.wait(299)
    assert watched.told == []
    watched.wait(2)
    assert [rule for _, rule, _ in watched.told] == ["silent"]


def test_a_log_that_is_of_no_training_is_never_late() -> None:
    watched = Watched()
    watched.raw("tokenizing shard 1 of 40")
    watched.wait(8 * HOUR)
    assert watched.told == []
