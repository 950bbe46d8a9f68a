"""Each rule about the life of a run: a view that fires it, a near miss, and what it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from verlwatch.core.rules import (
    LIFE_RULES,
    Allowance,
    Fault,
    LifeRule,
    LifeView,
    Printing,
    Stage,
    actor_died,
    blind,
    collective_timeout,
    crashed,
    device_oom,
    ended_early,
    engine_dead,
    finished,
    host_oom,
    job_ended,
    killed,
    node_died,
    npu_error,
    silent,
    stalled,
)
from verlwatch.core.types import Severity

VIEW = LifeView(
    "r", 5000.0, step=12, planned=200, waited_s=100.0, allowed=Allowance(150.0, "2.5× the 95th percentile"),
    heard_s=5.0, quiet_s=300.0, stage=Stage("step", 4900.0, "the step after step 12"), lived_s=4000.0,
)  # fmt: skip
"""A run that is well."""
GONE: dict[str, str | int | float] = {"pid": 7, "state": "gone", "name": "ray::TaskRunner", "exit": "code 1"}


def fault(kind: str, *, severity: Severity = "critical", **said: str | float) -> Fault:
    return Fault(kind, {"class": kind, **said}, f"the line of {kind}", severity, "WorkerDict", 4990.0)


def with_faults(*faults: Fault) -> LifeView:
    return replace(VIEW, faults=faults)


STUCK = replace(VIEW, waited_s=160.0)
FIRES = {
    silent.NAME: replace(VIEW, waited_s=160.0, heard_s=155.0),
    stalled.NAME: STUCK,
    ended_early.NAME: replace(VIEW, ended="wandb's summary"),
    killed.NAME: replace(VIEW, gone=GONE),
    actor_died.NAME: with_faults(fault("actor_died", actor_class="WorkerDict", pid=21)),
    crashed.NAME: with_faults(fault("exception", exception="KeyError", text="'x'", file="a.py", line=3)),
    node_died.NAME: with_faults(fault("node_died", host="gpu-9")),
    engine_dead.NAME: with_faults(fault("engine_dead", backend="vllm")),
    npu_error.NAME: with_faults(fault("npu_error", code=107000)),
    collective_timeout.NAME: with_faults(fault("collective_timeout", backend="nccl", rank=3, seq=9)),
    device_oom.NAME: with_faults(fault("device_oom", rank=3, phase="gen")),
    job_ended.NAME: replace(VIEW, job={"job": "7", "state": "TIMEOUT"}),
    host_oom.NAME: with_faults(fault("host_oom", victim="WorkerDict")),
    blind.NAME: replace(VIEW, unseen=("train.log: gone",), unseen_s=60.0),
    finished.NAME: replace(VIEW, is_over=True),
}
NEAR_MISS = {
    silent.NAME: replace(VIEW, waited_s=160.0, heard_s=79.0),
    stalled.NAME: replace(VIEW, waited_s=149.9),
    ended_early.NAME: replace(VIEW, step=200, ended="wandb's summary"),
    killed.NAME: replace(VIEW, gone={**GONE, "exit": "code 0"}),
    actor_died.NAME: with_faults(fault("actor_died", unavailable=1, severity="warning")),
    crashed.NAME: with_faults(fault("exception", severity="warning", exception="KeyError")),
    node_died.NAME: replace(VIEW, job={"state": "RUNNING"}),
    engine_dead.NAME: with_faults(fault("killed", signal="SIGKILL")),
    npu_error.NAME: with_faults(fault("device_oom", device="npu")),
    collective_timeout.NAME: with_faults(fault("npu_error", code=107000)),
    device_oom.NAME: with_faults(fault("exception", exception="RuntimeError", text="out of luck")),
    job_ended.NAME: replace(VIEW, job={"job": "7", "state": "COMPLETED"}),
    host_oom.NAME: replace(VIEW, gone=GONE),
    blind.NAME: replace(VIEW, unseen=("train.log: gone",), unseen_s=59.9),
    finished.NAME: VIEW,
}


def title(rule: LifeRule, view: LifeView) -> str:
    (said,) = rule.diagnose(view)
    return said.title


@pytest.mark.parametrize("rule", LIFE_RULES, ids=lambda rule: rule.NAME)
def test_every_rule_of_life_has_a_view_that_fires_it_and_a_near_miss(rule: LifeRule) -> None:
    (found,) = rule.diagnose(FIRES[rule.NAME])
    assert found.rule == rule.NAME
    assert found.title
    assert found.summary
    assert all(value for _, value in found.facts)
    assert all(found.evidence)
    assert rule.diagnose(NEAR_MISS[rule.NAME]) == ()


@pytest.mark.parametrize("rule", LIFE_RULES, ids=lambda rule: rule.NAME)
def test_of_a_run_that_is_well_nothing_is_said(rule: LifeRule) -> None:
    assert rule.diagnose(VIEW) == ()


@pytest.mark.parametrize("rule", [rule for rule in LIFE_RULES if rule.NAME not in {"blind", "finished"}])
def test_all_but_the_end_and_blindness_speak_of_the_run(rule: LifeRule) -> None:
    assert [found.subject for found in rule.diagnose(FIRES[rule.NAME])] == ["run"]


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("silent", "stalled"), ("stalled", "killed"), ("killed", "crashed"), ("actor_died", "crashed"),
        ("crashed", "engine_dead"), ("actor_died", "node_died"), ("crashed", "collective_timeout"),
        ("crashed", "device_oom"), ("killed", "host_oom"), ("actor_died", "host_oom"), ("killed", "job_ended"),
        ("engine_dead", "device_oom"), ("ended_early", "killed"),
    ],
)  # fmt: skip
def test_the_stronger_evidence_leads(weaker: str, stronger: str) -> None:
    names = [rule.NAME for rule in LIFE_RULES]
    assert names.index(weaker) < names.index(stronger)


# -------------------------------------------------------------------------------------------------- late
def test_a_stall_becomes_critical_at_three_times_what_is_allowed() -> None:
    (late,) = stalled.diagnose(replace(STUCK, waited_s=449.0))
    (very_late,) = stalled.diagnose(replace(STUCK, waited_s=450.0))
    assert (late.severity, very_late.severity) == ("warning", "critical")


def test_a_stall_names_the_phase_where_the_log_tells_one() -> None:
    assert title(stalled, replace(STUCK, stage=Stage("gen", 0.0, ""))).startswith("stuck in gen: no progress for 160 s")
    assert title(stalled, STUCK) == "stuck: no progress for 160 s after step 12 of 200"
    assert title(stalled, replace(STUCK, step=-1)) == "stuck: no progress for 160 s since its start"


def test_a_stall_says_who_still_prints_and_not_who_has_stopped() -> None:
    printing = (Printing("vLLMHttpServer", 9, "GET /metrics", 4995.0), Printing("TaskRunner", 2, "step:12", 4840.0))
    (found,) = stalled.diagnose(replace(STUCK, printing=printing))
    assert dict(found.facts)["Still printing"] == "vLLMHttpServer, 5 s ago: GET /metrics"


def test_a_stall_says_what_may_be_done_without_the_run() -> None:
    (found,) = stalled.diagnose(replace(STUCK, stage=Stage("reward", 0.0, ""), trainer="pid 7 on gpu-1"))
    assert any("py-spy dump" in line and "pid 7 on gpu-1" in line for line in found.advice)
    assert any("reward service" in line for line in found.advice)


def test_it_is_silent_too_when_it_was_never_so_quiet_though_the_step_is_not_late() -> None:
    assert silent.diagnose(replace(VIEW, waited_s=400.0, heard_s=299.0, allowed=Allowance(3600.0, ""))) == ()
    assert len(silent.diagnose(replace(VIEW, waited_s=400.0, heard_s=300.0, allowed=Allowance(3600.0, "")))) == 1


def test_no_run_is_silent_before_lines_that_tell_of_nothing_would_have_been_told() -> None:
    short = replace(VIEW, waited_s=12.0, heard_s=12.0, allowed=Allowance(10.0, ""))
    assert silent.diagnose(short) == ()
    (found,) = stalled.diagnose(short)
    assert found.evidence == ("no line that tells of progress has come since",)
    longer = replace(short, waited_s=15.0, heard_s=15.0)
    assert stalled.diagnose(longer) == ()
    assert title(silent, longer) == "silent: no line for 15 s after step 12 of 200"


def test_a_line_that_was_cut_at_two_lengths_is_quoted_once() -> None:
    text = "CUDA out of memory. " + 30 * "Tried to allocate "
    view = with_faults(
        fault("device_oom", exception="torch.OutOfMemoryError", text=text[:280]),
        fault("device_oom")._replace(excerpt=f"torch.OutOfMemoryError: {text[:310]}…"),
    )
    (found,) = device_oom.diagnose(view)
    assert [line[:40] for line in found.evidence] == ["torch.OutOfMemoryError: CUDA out of memo"]


@pytest.mark.parametrize("rule", [silent, stalled])
def test_what_is_not_judged_is_not_late(rule: LifeRule) -> None:
    assert rule.diagnose(replace(FIRES[rule.NAME], waited_s=None)) == ()


# -------------------------------------------------------------------------------------------------- deaths
def test_a_process_that_is_gone_is_told_with_how_it_ended() -> None:
    def said(exit_: str, **more: str | float) -> str:
        return title(killed, replace(VIEW, gone={**GONE, "exit": exit_, **more}))

    assert said("signal 9") == "ray::TaskRunner (pid 7) ended with signal 9, at step 12 of 200"
    assert said("") == "ray::TaskRunner (pid 7) has disappeared, at step 12 of 200"


def test_a_crash_leads_with_the_exception_and_says_where() -> None:
    (found,) = crashed.diagnose(
        with_faults(
            fault("child_failed", exit_code=1, rank=0),
            fault("exception", exception="KeyError", text="'x'", file="a.py", line=3, function="f", task="W.t", pid=9),
        )
    )
    assert found.title == "crashed: KeyError: 'x', at step 12 of 200"
    assert found.evidence[:3] == ("KeyError: 'x'", "at a.py:3 in f", "in W.t (pid 9)")


def test_a_child_that_failed_is_named_by_its_rank_where_one_is_known() -> None:
    view = with_faults(fault("child_failed", exit_code=-9), fault("child_failed", exit_code=-9, rank=3))
    assert title(crashed, view) == "crashed: rank 3 ended with code -9, at step 12 of 200"


def test_ranks_that_waited_are_told_together() -> None:
    faults = [fault("collective_timeout", backend="hccl", rank=rank, seq=9) for rank in (0, 1, 2, 5)]
    (found,) = collective_timeout.diagnose(with_faults(*faults))
    assert found.title == "HCCL timeout: ranks 0-2, 5 waited, at step 12 of 200"
    assert dict(found.facts)["SeqNum"] == "9 (4×)"
    assert found.scope == (("rank", "0"), ("rank", "1"), ("rank", "2"), ("rank", "5"))


def test_memory_of_a_device_is_advised_on_by_phase() -> None:
    (found,) = device_oom.diagnose(FIRES[device_oom.NAME])
    assert "gpu_memory_utilization" in found.advice[0]


def test_a_death_before_the_first_step_says_so() -> None:
    assert title(killed, replace(VIEW, step=-1, gone=GONE)).endswith("ended with code 1, before its first step")


@pytest.mark.parametrize("state", ["TIMEOUT", "CANCELLED", "PREEMPTED", "DEADLINE", "BOOT_FAIL", "REVOKED"])
def test_what_the_scheduler_ended_is_no_fault_of_the_run(state: str) -> None:
    assert title(job_ended, replace(VIEW, job={"job": "7", "state": state})).startswith("job 7 ended by the scheduler")


@pytest.mark.parametrize(
    "view",
    [
        replace(VIEW, ended="wandb's summary"),
        replace(VIEW, gone={**GONE, "exit": "code 0"}),
        replace(VIEW, job={"state": "COMPLETED"}),
    ],
)
def test_each_sign_of_the_end_tells_that_it_came_early(view: LifeView) -> None:
    assert title(ended_early, view) == "ended at step 12 of 200, without an error"
    assert ended_early.diagnose(replace(view, planned=None)) == ()
