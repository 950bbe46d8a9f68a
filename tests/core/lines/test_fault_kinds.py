"""What goes wrong in a run, as the lines tell it: who, where, how bad, and what is only said to look like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from verlwatch.core.lines import (
    Fact,
    Kind,
    Line,
    Numbers,
    Take,
    actor_died,
    collective_timeout,
    crash,
    device_oom,
    engine_dead,
    exception,
    host_oom,
    nccl_warning,
    not_finite,
    npu_error,
    worker_died,
)
from verlwatch.core.lines._heads import bare
from verlwatch.core.types import Event, Record, Writer

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.25 GiB"
TIMEOUT = "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600015 milliseconds before timing out."
TASK = "ray::WorkerDict.{}() (pid=9120, ip=10.1.0.2, actor_id=b2, repr=<WorkerDict object>)"
FAULTS = (device_oom, host_oom, collective_timeout, npu_error, actor_died, worker_died, engine_dead, crash, not_finite)

Faults = Callable[..., list[Event]]


@pytest.fixture
def told(read: Callable[..., list[Record]]) -> Faults:
    def told(*lines: str) -> list[Event]:
        records = read("".join(f"{line}\n" for line in lines).encode())
        return [record for record in records if isinstance(record, Event)]

    return told


def one(events: list[Event]) -> Event:
    (event,) = events
    return event


def from_engine(text: str) -> Line:
    return Line(text, Writer("vLLMHttpServer", 7))


# ------------------------------------------------------------------------------------------------------------- heads
@pytest.mark.parametrize(
    ("text", "level", "rank"),
    [
        ("x: y", "", None),
        (
            "E0325 20:57:27.620000 2606 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] x: y",
            "E",
            None,
        ),
        ("torch/distributed/elastic/multiprocessing/api.py:826] x: y", "", None),
        ("E0526 16:36:24.875000 140417675919424 torch/distributed/elastic/multiprocessing/api.py:826] x: y", "E", None),
        ("[2024-05-08 08:47:31,877] torch.distributed.elastic.multiprocessing.api: [ERROR] x: y", "E", None),
        ("[rank3]: x: y", "", 3),
        ("[rank7]:[E419 10:42:29.858931807 ProcessGroupNCCL.cpp:616] x: y", "E", 7),
        ("[E ProcessGroupNCCL.cpp:1537] x: y", "E", None),
        ("(EngineCore_0 pid=6) (VllmWorker TP0 pid=8) ERROR 08-25 11:01:23 [loader.py:267] x: y", "E", None),
        ("[rank3]: (EngineCore_DP0 pid=12) x: y", "", None),
        ("INFO 05-09 00:49:33 metrics.py:455] x: y", "I", None),
        ("[2025-01-23 19:35:34 DP1 TP0] x: y", "", None),
        ("[2025-03-14 14:33:46,164 E 100032 231591] (raylet) node_manager.cc:113: x: y", "E", None),
    ],
)
def test_heads_of_libraries_are_taken_off_and_tell_level_and_rank(text: str, level: str, rank: int | None) -> None:
    assert bare(Line(text))[:3] == ("x: y", level, rank)


def test_what_tags_the_lines_of_nccl_and_the_errors_of_tests_comes_off() -> None:
    warning = "node0:13571:13590 [0] misc/socket.cc:49 NCCL WARN x"
    assert bare(Line(f"[0] {warning}")).text == warning
    assert bare(Line("E   torch.OutOfMemoryError: x")).text == "torch.OutOfMemoryError: x"
    for text in ("[0] x", "E   x", "E   the Error"):
        assert bare(Line(text)).text == text


def test_the_blanks_of_a_row_stay_behind_a_head() -> None:
    assert bare(Line("ERROR 05-12 01:48:42 [core.py:72]     run()")).text == "    run()"


def test_the_rank_within_an_engine_is_none_of_the_run() -> None:
    assert bare(from_engine("[rank0]: x")).rank is None
    assert bare(Line("[rank0]: x", Writer("WorkerDict", 7))).rank == 0


# -------------------------------------------------------------------------------------------------- how bad, and who
@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        ([OOM], "critical"),
        ([f"[Rank 2] Watchdog caught collective operation timeout: {TIMEOUT}"], "critical"),
        (["[ERROR] 2026-01-26-03:28:30 (PID:7, Device:0, RankID:1) ERR00100 PTA call acl api failed"], "critical"),
        (["A worker died or was killed while executing a task by an unexpected system error."], "warning"),
        (["WARN: rank 1 grad_norm is not finite: nan"], "warning"),
        (["node3:71:72 [2] misc/socket.cc:49 NCCL WARN Connection closed"], "warning"),
        (["EngineCore encountered a fatal error."], "critical"),
        (["Received sigquit from a child proces. It usually means the child failed."], "critical"),
        (
            ["(raylet) Raylet is terminated. Termination is unexpected. Possible reasons include: (1) SIGKILL"],
            "critical",
        ),
        (
            [
                "E0526 16:36:24.875000 140417675919424 torch/x/api.py:826] failed (exitcode: -11) "
                "local_rank: 0 (pid: 7) of binary: python"
            ],
            "critical",
        ),
        (["Fatal Python error: Aborted"], "critical"),
        (["*** SIGSEGV received at time=1741087711 on cpu 3 ***"], "critical"),
        (["*** SIGTERM received at time=1741087711 on cpu 3 ***"], "warning"),
        (["libgomp: Thread creation failed: Resource temporarily unavailable"], "warning"),
        (["x.sh: line 3: 71 Killed                  python3 -m verl.trainer.main_ppo"], "critical"),
        (["x.sh: line 3: 71 Terminated              python3 -m verl.trainer.main_ppo"], "warning"),
        (["Segmentation fault (core dumped)"], "warning"),
        (["failed (exitcode: -9) local_rank: 3 (pid: 71) of binary: python"], "critical"),
        (["slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-04-13T11:02:18 DUE TO TIME LIMIT ***"], "critical"),
        (["srun: error: n1: task 0: Killed"], "critical"),
        (["srun: error: n1: task 0: Terminated"], "warning"),
        (["The node with node id: 0a1b2c3d4e5f60718293 has been marked dead because of heartbeats"], "critical"),
        (["Error executing job with overrides: []"], "critical"),
        (["Traceback (most recent call last):", "ValueError: no"], "warning"),
        (["[rank1]: Traceback (most recent call last):", "[rank1]: ValueError: no"], "critical"),
        ([TASK.format("update_actor"), "ValueError: no"], "critical"),
        (["RUN FAILED: RayTaskError(ValueError) " + TASK.format("update_actor"), "ValueError: no"], "critical"),
        (["FATAL: ActorDiedError The actor died unexpectedly before finishing this task."], "critical"),
    ],
)
def test_a_fault_says_how_bad_it_is(told: Faults, lines: list[str], severity: str) -> None:
    event = one(told(*lines))
    assert (event.name, event.severity) == ("fault", severity)


def test_a_command_that_was_killed_is_told_without_its_arguments(told: Faults) -> None:
    event = one(told("x.sh: line 3: 71 Killed                  API_KEY=canary python3 -m verl --key canary"))
    assert "canary" not in repr(event)
    assert event.attributes["program"] == "python3"


@pytest.mark.parametrize(("exit_type", "severity"), [("SYSTEM_ERROR", "critical"), ("INTENDED_USER_EXIT", "warning")])
def test_an_actor_that_was_meant_to_end_is_less_bad(told: Faults, exit_type: str, severity: str) -> None:
    lines = (
        "The actor died unexpectedly before finishing this task.",
        "\tname: aBcDeFWorkerDict_2:3",
        f"The actor is dead because its worker process has died. Worker exit type: {exit_type} Worker exit detail: x",
    )
    event = one(told(*lines))
    assert event.severity == severity
    assert event.attributes == {
        "class": "actor_died",
        "name": "aBcDeFWorkerDict_2:3",
        "node": 2,
        "local_rank": 3,
        "exit_type": exit_type,
        "text": "x",
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Raylet is terminated: ip=10.0.0.3, id=0a1b2c3d4e5f60718293. Termination is unexpected. x",
            ["10.0.0.3", "0a1b2c3d4e5f60718293"],
        ),
        ("Raylet is terminated: ip=10.0.0.3", ["10.0.0.3", None]),
        ("Raylet is terminated: ip=10.0.0.3. Termination is unexpected.", ["10.0.0.3", None]),
        ("Raylet is terminated. Termination is unexpected.", [None, None]),
    ],
)
def test_a_raylet_that_is_gone_is_a_node_that_died(told: Faults, text: str, found: list[str | None]) -> None:
    event = one(told(f"(raylet) {text}"))
    assert event.attributes["class"] == "node_died"
    assert [event.attributes.get(name) for name in ("ip", "node_id")] == found


def test_a_raylet_that_was_meant_to_end_is_no_fault(told: Faults) -> None:
    assert told("(raylet) Raylet is terminated. Termination is graceful.") == []


def test_an_actor_whose_owner_crashed_tells_how(told: Faults) -> None:
    reason = "The actor is dead because its owner has died. Owner Id: 01 Owner worker exit type: SYSTEM_ERROR "
    lines = (
        "The actor died unexpectedly before finishing this task.",
        "\tpid: 7",
        f"{reason}Worker exit detail: crashed.",
    )
    assert one(told(*lines)).attributes == {
        "class": "actor_died",
        "pid": 7,
        "exit_type": "SYSTEM_ERROR",
        "text": "crashed.",
    }


@pytest.mark.parametrize(
    "lines",
    [
        ["[2025-03-22 01:05:31 TP4] Scheduler hit an exception: Traceback (most recent call last):", "ValueError: x"],
        ["[2025-03-22 01:05:31 TP4] TpModelWorkerClient hit an exception: Traceback (most recent call last):"],
        ["[2025-03-22 01:05:31 TP4] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"],
        [f"[2025-03-22 01:05:31 TP4] {OOM}"],
        ["[2025-03-22 01:05:31 TP4] Traceback (most recent call last):", "ValueError: x"],
    ],
)
def test_a_fault_of_sglang_tells_of_which_shard_it_is(told: Faults, lines: list[str]) -> None:
    assert one(told(*lines)).attributes["shard"] == "TP4"


def test_the_writer_is_not_taken_for_the_one_that_failed(told: Faults) -> None:
    assert one(told(f"(WorkerDict pid=5, ip=10.0.0.2) {OOM}")).attributes == {
        "class": "device_oom",
        "device": "cuda",
        "gpu": 0,
        "tried_gb": 2.5,
        "total_gb": 79.25,
    }


# ------------------------------------------------------------------------------------------------- what is not meant
@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.NAME)
@pytest.mark.parametrize(
    "text",
    [
        f'If you see "{OOM}", lower the batch size',
        f'    raise RuntimeError("{OOM}")',
        f"I had read that [Rank 2] Watchdog caught collective operation timeout: {TIMEOUT}",
        "He wrote: A worker died or was killed while executing a task by an unexpected system error.",
        "then EngineCore encountered a fatal error.",
        "the doc says Memory on the node (IP: 10.0.0.1, ID: ab) was 1.00GB / 2.00GB (0.500000)",
        "my log: WARN: rank 1 grad_norm is not finite: nan",
        "what does terminate called after throwing an instance of 'x' mean?",
        "so The actor died unexpectedly before finishing this task. Why?",
    ],
)
def test_an_error_quoted_in_a_sentence_is_no_fault(kind: Kind, text: str) -> None:
    assert kind.parse(Line(text)) is None


@pytest.mark.parametrize("name", ["AgentLoopWorker", "RewardLoopWorker", "RewardManager", "compute_reward_async"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (device_oom, OOM),
        (exception, "Traceback (most recent call last):"),
        (exception, TASK.format("update_actor")),
        (not_finite, "WARN: grad_norm is not finite: nan"),
        (engine_dead, "EngineCore encountered a fatal error."),
        (crash, "Fatal Python error: Aborted"),
        (collective_timeout, f"[Rank 2] Watchdog caught collective operation timeout: {TIMEOUT}"),
        (nccl_warning, "node3:71:72 [2] misc/socket.cc:49 NCCL WARN Connection closed"),
    ],
)
def test_workers_that_print_model_output_have_no_faults_of_devices_and_engines(
    name: str,
    kind: Kind,
    text: str,
) -> None:
    assert kind.parse(Line(text, Writer(name, 7))) is None
    assert kind.parse(Line(text, Writer("WorkerDict", 7))) is not None


def test_what_an_engine_calls_information_is_no_fault() -> None:
    text = (
        "05-12 01:48:43 [core_client.py:564] Engine core proc EngineCore_DP1 died unexpectedly, shutting down client."
    )
    assert engine_dead.parse(from_engine(f"INFO {text}")) is None
    assert engine_dead.parse(from_engine(f"ERROR {text}")) is not None


# ---------------------------------------------------------------------------------------------------- what a cut hides
def test_a_size_without_its_unit_is_left_out() -> None:
    said = device_oom.parse(Line(OOM.removesuffix(" GiB").removesuffix("5"), cut=True))
    assert said is not None
    assert said.attributes == {"class": "device_oom", "device": "cuda", "gpu": 0, "tried_gb": 2.5}


@pytest.mark.parametrize("cut", [True, None])
def test_a_number_at_the_end_of_a_cut_line_is_left_out(*, cut: bool | None) -> None:
    progress = "[PG 0 Rank 2] Timeout at NCCL work: 8, last enqueued NCCL work: 9, last completed NCCL work: 7"
    said = collective_timeout.parse(Line(progress, cut=cut))
    call = "RuntimeError: f:build/x.ts:479 NPU function error: call aclnnCopy failed, error code is 107000"
    report = npu_error.parse(Line(call, cut=cut))
    assert report is not None
    assert (said is None, "error_code" in report.close().attributes) == ((True, False) if cut else (False, True))


def test_a_row_without_its_end_names_no_place_and_no_memory() -> None:
    raised = exception.parse(Line("Traceback (most recent call last):"))
    assert raised is not None
    assert raised.take(Line('  File "/opt/x.py", line 4', cut=True), None) is Take.TAKEN
    assert raised.close() is None
    report = host_oom.parse(Line("Memory on the node (IP: 10.0.0.1, ID: ab) was 9.50GB / 10.00GB (0.950000)"))
    assert isinstance(report, host_oom.Report)
    report.take(Line("PID\tMEM(GB)\tCOMMAND"), None)
    report.take(Line("4711\t5.2", cut=True), None)
    assert "largest_gb" not in report.close().attributes


# -------------------------------------------------------------------------------------------------------------- blocks
def test_the_largest_consumer_is_the_largest_of_all_rows(told: Faults) -> None:
    rows = [f"{pid}\t{gb}\tray::Worker{pid}" for pid, gb in ((11, "2.50"), (12, "30.25"), (13, "4.00"))]
    head = "Task was killed due to the node running low on memory."
    memory = "Memory on the node (IP: 10.0.0.1, ID: ab) was 9.50GB / 10.00GB (0.950000), Top 10 memory users:"
    said = one(told(head, memory, "PID\tMEM(GB)\tCOMMAND", *rows)).attributes
    assert (said["largest_pid"], said["largest_gb"], said["largest_command"]) == (12, 30.25, "ray::Worker12")


def test_a_second_report_is_another_fault(told: Faults) -> None:
    memory = "Memory on the node (IP: 10.0.0.{}, ID: ab) was 9.50GB / 10.00GB (0.950000)"
    assert [event.attributes["ip"] for event in told(memory.format(1), memory.format(2))] == ["10.0.0.1", "10.0.0.2"]


def test_another_error_of_the_same_device_is_another_report(told: Faults) -> None:
    error = "[ERROR] 2026-01-26-03:28:30 (PID:7, Device:{}, RankID:1) ERR00100 PTA call acl api failed"
    assert [event.attributes["gpu"] for event in told(error.format(0), error.format(1))] == [0, 1]


def test_the_innermost_exception_is_told_with_its_task_and_phase(told: Faults) -> None:
    lines = (
        "Traceback (most recent call last):",
        '  File "main.py", line 42, in main',
        f"ray.exceptions.RayTaskError(ValueError): {TASK.format('actor_rollout_compute_log_prob')}",
        "an unrelated row of the same process",
        '  File "actor.py", line 7, in compute_log_prob',
        "    return self.f(x)",
        "ValueError: shapes differ",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        TASK.format("actor_rollout_compute_log_prob"),
        '  File "base.py", line 99, in func',
        "RuntimeError: outer",
        "what follows is no part of it",
    )
    assert one(told(*lines)).attributes == {
        "class": "exception",
        "exception": "ValueError",
        "text": "shapes differ",
        "file": "actor.py",
        "line": 7,
        "function": "compute_log_prob",
        "task": "WorkerDict.actor_rollout_compute_log_prob",
        "phase": "old_log_prob",
        "pid": 9120,
        "ip": "10.1.0.2",
    }


@pytest.mark.parametrize(
    ("method", "phase"),
    [
        ("actor_rollout_generate_sequences", "gen"),
        ("ref_compute_ref_log_prob", "ref"),
        ("ref_compute_log_prob", "ref"),
        ("actor_rollout_ref_update_actor", "update_actor"),
        ("critic_compute_values", "values"),
        ("critic_update_critic", "update_critic"),
        ("actor_rollout_save_checkpoint", "save_checkpoint"),
        ("actor_rollout_init_model", None),
    ],
)
def test_a_task_belongs_to_the_phase_of_its_method(told: Faults, method: str, phase: str | None) -> None:
    assert one(told(TASK.format(method))).attributes.get("phase") == phase


def test_a_traceback_that_python_ignores_is_no_fault(told: Faults) -> None:
    lines = ("Exception ignored in: <function f at 0x7f>", "Traceback (most recent call last):", "ValueError: no")
    event = one(told(*lines))
    assert (event.name, event.severity) == ("exception", "info")


def test_a_traceback_of_code_that_is_no_file_is_no_fault(told: Faults) -> None:
    lines = (
        "Traceback (most recent call last):",
        '  File "<string>", line 3, in solve',
        "ZeroDivisionError: division by zero",
    )
    event = one(told(*(f"(TaskRunner pid=1) {line}" for line in lines)))
    assert (event.name, event.severity) == ("exception", "info")


def test_two_tracebacks_by_themselves_are_two(told: Faults) -> None:
    header = "Traceback (most recent call last):"
    events = told(header, "ValueError: a", header, "KeyError: b")
    assert [event.attributes["exception"] for event in events] == ["ValueError", "KeyError"]


def test_a_fault_that_ends_a_traceback_is_told_beside_it(told: Faults) -> None:
    died = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
    header = "Traceback (most recent call last):"
    assert [event.attributes["class"] for event in told(header, OOM)] == ["device_oom", "exception"]
    assert [event.attributes["class"] for event in told(header, died, "\tpid: 9")] == ["exception", "actor_died"]


def test_an_engine_is_told_with_the_exception_it_died_of(told: Faults) -> None:
    lines = (
        "[2025-03-22 01:05:31 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "scheduler.py", line 1748, in run',
        "ValueError: not enough pages",
    )
    said = one(told(*lines)).attributes
    assert (said["process"], said["exception"], said["line"]) == ("Scheduler", "ValueError", 1748)


def test_what_lines_say_in_between_is_left_alone() -> None:
    for block in (
        exception.parse(Line("Traceback (most recent call last):")),
        crash.parse(Line("terminate called recursively")),
    ):
        assert block is not None
        assert not isinstance(block, Numbers | Fact)
        assert block.take(Line("step:1 - a/b:1"), None) is Take.IGNORED


# ------------------------------------------------------------------------------------------------------------- details
@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("N3c1016DistBackendErrorE", "c10::DistBackendError"),
        ("N5boost10wrapexceptINS_6system12system_errorEEE", "boost::wrapexcept"),
        ("St13runtime_error", "St13runtime_error"),
        ("N99xE", "xE"),
    ],
)
def test_the_name_of_a_type_is_made_readable(mangled: str, name: str) -> None:
    said = crash.parse(
        Line(f"[2025-03-14 14:33:46,164 E 1 2] logging.cc:113: Unhandled exception: {mangled}. what(): x")
    )
    assert isinstance(said, Fact)
    assert said.attributes["exception"] == name


def test_a_device_number_that_is_garbage_is_left_out() -> None:
    said = nccl_warning.parse(Line("h:1:2 [32735] include/alloc.h:243 NCCL WARN Cuda failure 'driver shutting down'"))
    assert said is not None
    assert "gpu" not in said.attributes


def test_a_header_with_ray_in_the_same_row_is_a_header() -> None:
    said = exception.parse(Line("Traceback (most recent call last): in ray::core"))
    assert said is not None
    assert said.close() is None


def test_tracebacks_of_ranks_that_share_one_output_stay_apart(told: Faults) -> None:
    rows = ("Traceback (most recent call last):", '  File "/a.py", line 1{}, in f', "    x()", "ValueError: {}")
    events = told(*(f"[rank{rank}]: {row.format(rank)}" for row in rows for rank in (0, 3)))
    assert [event.attributes for event in events] == [
        {
            "class": "exception",
            "rank": rank,
            "exception": "ValueError",
            "text": str(rank),
            "file": "/a.py",
            "line": 10 + rank,
            "function": "f",
        }
        for rank in (0, 3)
    ]
    assert {event.origin.writer.pid for event in events} == {0}
