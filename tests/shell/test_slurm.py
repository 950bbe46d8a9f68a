"""What Slurm says of a job is read as it means it, and what changes is told."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import VirtualClock
from tests.fakes.slurm import FakeSlurm
from verlwatch.config import Config
from verlwatch.core.life._evidence import Evidence
from verlwatch.core.types import NOBODY, Event, Extract, Origin
from verlwatch.shell import slurm
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.observers.slurm import Slurm
from verlwatch.shell.slurm import Job, SlurmError, ask, expand, job_of, read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

START, END = 1_790_000_000.0, 1_790_086_400.0


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return FakeSlurm(tmp_path / "slurm", monkeypatch)


# ---------------------------------------------------------------------------------------------------- asking
def test_a_job_that_runs_is_read_with_its_log_its_nodes_and_its_limit(cluster: FakeSlurm) -> None:
    cluster.job("4711")
    assert ask("4711") == Job(
        job="4711",
        name="verl-grpo",
        state="RUNNING",
        time_limit_s=86_400.0,
        started_at=START,
        ends_at=END,
        nodes="gpu-node-[01-02]",
        batch_host="gpu-node-01",
        logs=("/data/run7/slurm-4711.out",),
    )


@pytest.mark.parametrize(
    ("state", "code", "exit_code", "signal"),
    [
        ("COMPLETED", "0:0", 0, 0),
        ("FAILED", "1:0", 1, 0),
        ("FAILED", "0:53", 0, 53),
        ("TIMEOUT", "0:15", 0, 15),
        ("OUT_OF_MEMORY", "0:125", 0, 125),
        ("NODE_FAIL", "0:0", 0, 0),
        ("CANCELLED", "0:9", 0, 9),
        ("CANCELLED,COMPLETING", "0:15", 0, 15),
    ],
)
def test_how_a_job_ended_is_read(cluster: FakeSlurm, state: str, code: str, exit_code: int, signal: int) -> None:
    cluster.job("4711", JobState=state, ExitCode=code, Reason="TimeLimit")
    job = ask("4711")
    assert (job.state, job.is_over, job.exit_code, job.signal) == (state.partition(",")[0], True, exit_code, signal)
    assert job.reason == "TimeLimit"


def test_names_and_paths_may_hold_blanks_and_what_looks_like_other_keys(cluster: FakeSlurm) -> None:
    cluster.job(
        "4711", JobName="my run JobState=FAILED", StdOut="/data/my runs/a=b JobState=x.out", StdErr="/data/err out"
    )
    job = ask("4711")
    assert (job.name, job.state) == ("my run JobState=FAILED", "RUNNING")
    assert job.logs == ("/data/my runs/a=b JobState=x.out", "/data/err out")


def test_patterns_that_slurm_has_left_in_a_file_name_are_filled_in(cluster: FakeSlurm) -> None:
    cluster.job("4711", StdOut="logs/%x-%j-%6j-%u-%N-%%.out", StdErr="/dev/null", BatchHost="gpu-node-01.example.org")
    assert ask("4711").logs == ("/data/run7/logs/verl-grpo-4711-004711-alice-gpu-node-01-%.out",)


def test_a_task_of_an_array_that_waits_has_the_log_that_it_will_have(cluster: FakeSlurm) -> None:
    task = {
        "ArrayJobId": "4711",
        "ArrayTaskId": "3",
        "StdOut": "/data/4711_4294967294.log",
        "StdErr": "/data/%A_%a.err",
    }
    cluster.job("4711_3", task | {"JobId": "4711", "JobState": "PENDING", "BatchHost": "", "NodeList": ""})
    job = ask("4711_3")
    assert (job.job, job.logs) == ("4711_3", ("/data/4711_3.log", "/data/4711_3.err"))
    assert (job.started_at, job.ends_at, job.nodes, job.batch_host) == (None, None, "", "")


def test_an_array_is_several_jobs_and_those_are_named(cluster: FakeSlurm) -> None:
    tasks = [{"JobId": str(4712 + task), "ArrayJobId": "4711", "ArrayTaskId": str(task)} for task in (1, 2)]
    cluster.job("4711", {"ArrayJobId": "4711", "ArrayTaskId": "3-9%2", "JobState": "PENDING"}, *tasks)
    assert trouble("4711") == "job 4711 is several jobs; name one of them: 4711_1, 4711_2"
    cluster.job("4720", ArrayJobId="4720", ArrayTaskId="1-9", JobState="PENDING")
    assert trouble("4720") == "job 4720 is several jobs; name one of them, such as 4720_1"


def test_a_job_without_files_of_its_own_has_no_log(cluster: FakeSlurm) -> None:
    cluster.job("4711", BatchFlag="0")
    assert ask("4711").logs == ()


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("1-00:00:00", 86_400.0), ("02:30:00", 9_000.0), ("05:00", 300.0), ("UNLIMITED", None), ("Partition_Limit", None)],
)
def test_time_limits_are_read_in_seconds(cluster: FakeSlurm, limit: str, seconds: float | None) -> None:
    cluster.job("4711", TimeLimit=limit, EndTime="Unknown")
    job = ask("4711")
    assert (job.time_limit_s, job.ends_at) == (seconds, None)


def test_local_times_are_read_where_slurm_does_not_do_as_asked() -> None:
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(START))
    assert (
        job_of(read(f"JobId=1 JobName=x\n   JobState=RUNNING\n   StartTime={text} EndTime=N/A")[0]).started_at == START
    )


def trouble(job: str, timeout_s: float = 5.0) -> str:
    with pytest.raises(SlurmError) as caught:
        ask(job, timeout_s)
    return str(caught.value)


def test_what_slurm_does_not_tell_is_told_with_what_to_do(cluster: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = "{}: give the right one (`squeue --me` shows those that run); if it ended some minutes ago, name its log"
    assert trouble("99").startswith("Slurm knows no job " + unknown.format("99"))
    cluster.job("4711")
    assert trouble("4711_9").startswith("Slurm knows no job " + unknown.format("4711_9"))
    cluster.slow(30)
    assert trouble("4711", 0.3) == "scontrol does not answer within 0.3 s; is the controller of Slurm up?"
    cluster.slow(0)
    cluster.down()
    assert trouble("4711") == ("scontrol: slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    monkeypatch.setenv("PATH", "/nowhere")
    assert trouble("4711") == "scontrol is not found: this host has no Slurm, or its programs are not in $PATH"


@pytest.mark.parametrize(
    "values",
    [
        {"ExitCode": "²:³"},
        {"ExitCode": f"{'9' * 5000}:0"},
        {"Restarts": "¹"},
        {"EndTime": "²" * 3},
        {"TimeLimit": f"{'9' * 5000}:00:00"},
        {"ArrayTaskId": "3"},
        {"HetJobId": "4712"},
    ],
)
def test_garbage_is_told_as_what_cannot_be_read(cluster: FakeSlurm, values: dict[str, str]) -> None:
    cluster.job("4711", **values)
    assert trouble("4711") == "scontrol says of job 4711 what cannot be read; name its log with --log"


def test_what_a_wrapper_of_scontrol_has_started_holds_up_nobody(cluster: FakeSlurm) -> None:
    (cluster.folder / "bin/scontrol").write_text("#!/bin/sh\nsleep 60 & wait\n")
    begun = time.monotonic()
    assert trouble("4711", 0.2).startswith("scontrol does not answer within 0.2 s")
    assert time.monotonic() - begun < 5


def test_an_answer_without_end_is_none(cluster: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verlwatch.shell._program.MOST_BYTES", 1 << 20)
    (cluster.folder / "bin/scontrol").write_text("#!/bin/sh\nexec yes\n")
    assert trouble("4711") == "scontrol printed more than 1 MiB: that is no job"


@pytest.mark.parametrize(
    ("nodes", "hosts"),
    [
        ("node[001-003,7],gpu-a", ("node001", "node002", "node003", "node7", "gpu-a")),
        ("gpu-a", ("gpu-a",)),
        ("", ()),
        ("rack[1-2]n[09-10]", ("rack1n09", "rack1n10", "rack2n09", "rack2n10")),
        ("a[x-y]b,c", ("ax-yb", "c")),
        ("n[1-1000000000]", ("n1", "n2", "n3")),
    ],
)
def test_lists_of_nodes_are_expanded(nodes: str, hosts: tuple[str, ...]) -> None:
    assert expand(nodes, 3 if "1000000000" in nodes else slurm.MOST_NODES) == hosts


@pytest.mark.parametrize("text", ["", "x", "4711.batch", "4711_", "4711 2", "-1", "4711_[1-3]", "\uff11"])
def test_what_cannot_be_a_job_is_refused(text: str) -> None:
    assert not slurm.is_job_id(text)


# ---------------------------------------------------------------------------------------------------- the observer
def configured(job: str = "4711") -> Config:
    return Config.model_validate({"runs": [{"name": "run7", "logs": ["/logs/a.log"], "slurm_job": job}]})


@asynccontextmanager
async def observing(config: Config, clock: VirtualClock, inbox: Inbox) -> AsyncIterator[Slurm]:
    observer = Slurm(inbox, clock, config)
    task = asyncio.ensure_future(observer.run())
    try:
        await clock.parked(1)
        yield observer
    finally:
        task.cancel()
        await asyncio.wait({task})


async def told(inbox: Inbox) -> list[dict[str, Any]]:
    """What has been offered since the last call."""
    events = []
    for item in await inbox.get(timeout_s=0.0) or []:
        assert isinstance(item, Extract)
        assert (item.source, item.run) == ("slurm", "run7")
        for event in item.records:
            assert isinstance(event, Event)
            assert event.name == "job"
            events.append({"severity": event.severity, "at": event.at, **event.attributes})
    return events


async def test_what_changes_in_a_job_is_told_and_nothing_else(cluster: FakeSlurm) -> None:
    clock, inbox = VirtualClock(), Inbox()
    cluster.job("4711", JobState="PENDING", Reason="Priority", BatchHost="", NodeList="")
    async with observing(configured(), clock, inbox):
        job = {"job": "4711", "name": "verl-grpo", "restarts": 0, "time_limit_s": 86_400.0}
        waiting = job | {"state": "PENDING", "reason": "Priority", "severity": "info", "at": 1_000_000.0}
        assert await told(inbox) == [waiting]
        cluster.job("4711")
        await clock.advance(29.0)
        assert await told(inbox) == []
        await clock.advance(1.0)
        where = {"nodes": "gpu-node-[01-02]", "batch_host": "gpu-node-01", "started_at": START}
        runs = job | where | {"state": "RUNNING", "ends_at": END, "severity": "info", "at": 1_000_030.0}
        assert await told(inbox) == [runs]
        await clock.advance(30.0)
        assert await told(inbox) == []
        cluster.job("4711", JobState="TIMEOUT", Reason="TimeLimit", ExitCode="0:15")
        await clock.advance(30.0)
        over = {"state": "TIMEOUT", "reason": "TimeLimit", "exit_code": 0, "signal": 15}
        assert await told(inbox) == [runs | over | {"exit": "signal 15", "severity": "critical", "at": 1_000_090.0}]


@pytest.mark.parametrize(
    ("state", "severity"),
    [
        ("COMPLETED", "info"),
        ("CANCELLED", "warning"),
        ("FAILED", "critical"),
        ("OUT_OF_MEMORY", "critical"),
        ("NODE_FAIL", "critical"),
    ],
)
async def test_an_end_is_as_severe_as_it_is(cluster: FakeSlurm, state: str, severity: str) -> None:
    clock, inbox = VirtualClock(), Inbox()
    cluster.job("4711", JobState=state)
    async with observing(configured(), clock, inbox):
        assert [(one["state"], one["severity"]) for one in await told(inbox)] == [(state, severity)]


async def test_a_job_that_is_queued_again_after_its_end_is_told(cluster: FakeSlurm) -> None:
    clock, inbox = VirtualClock(), Inbox()
    cluster.job("4711", JobState="NODE_FAIL")
    async with observing(configured(), clock, inbox):
        cluster.job("4711", JobState="PENDING", Restarts="1")
        await clock.advance(30.0)
        assert [(one["state"], one["restarts"]) for one in await told(inbox)] == [("NODE_FAIL", 0), ("PENDING", 1)]


async def test_a_controller_that_is_away_is_told_in_the_status_and_asked_again(cluster: FakeSlurm) -> None:
    clock, inbox = VirtualClock(), Inbox()
    cluster.job("4711")
    cluster.down()
    async with observing(configured(), clock, inbox) as observer:
        assert list(observer.notices()) == [
            "scontrol: slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
        ]
        assert await told(inbox) == []
        cluster.down(is_down=False)
        await clock.advance(30.0)
        assert list(observer.notices()) == []
        assert [one["state"] for one in await told(inbox)] == ["RUNNING"]


async def test_a_job_that_slurm_has_forgotten_is_asked_for_no_more(cluster: FakeSlurm) -> None:
    clock, inbox = VirtualClock(), Inbox()
    cluster.job("4711", JobState="COMPLETED")
    async with observing(configured(), clock, inbox) as observer:
        cluster.forget("4711")
        await clock.advance(30.0)
        assert list(observer.notices()) == []
        cluster.job("4711", JobState="FAILED")
        await clock.advance(60.0)
        assert [one["state"] for one in await told(inbox)] == ["COMPLETED"]


async def test_a_job_that_is_unknown_from_the_start_stands_in_the_status(cluster: FakeSlurm) -> None:
    assert cluster.folder.exists()
    clock, inbox = VirtualClock(), Inbox()
    async with observing(configured(), clock, inbox) as observer:
        (notice,) = observer.notices()
        assert notice.startswith("Slurm knows no job 4711")


async def test_another_job_is_taken_up_at_a_reload(cluster: FakeSlurm) -> None:
    clock, inbox = VirtualClock(), Inbox()
    cluster.job("4711")
    cluster.job("4712", JobState="PENDING")
    async with observing(configured(), clock, inbox) as observer:
        observer.reconfigure(configured("4712"))
        await clock.until(lambda: len(inbox) == 2)
        assert [one["job"] for one in await told(inbox)] == ["4711", "4712"]


async def test_an_answer_that_takes_long_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verlwatch.shell.observers.slurm.PATIENCE_S", 0.02)
    clock, inbox = VirtualClock(), Inbox()
    answers: list[str] = []

    def slowly(job: str) -> Job:
        time.sleep(0.2)
        answers.append(job)
        return Job(job, "late", "RUNNING")

    observer = Slurm(inbox, clock, configured(), slowly)
    task = asyncio.ensure_future(observer.run())
    await clock.parked(1)
    assert (answers, len(inbox)) == ([], 0)
    while not answers:
        await asyncio.sleep(0.01)
    await clock.advance(2.0)
    assert [one["name"] for one in await told(inbox)] == ["late"]
    task.cancel()
    await asyncio.wait({task})


@pytest.mark.parametrize("state", sorted(slurm.ENDED))
def test_a_state_that_ends_a_job_here_ends_it_for_the_life_of_its_run(state: str) -> None:
    evidence = Evidence()
    said = {"job": "7", "state": state}
    evidence.hear(Event(Origin("slurm", 0, 0, NOBODY, "slurm"), "job", said), 5.0, is_current=True)
    assert evidence.is_end
