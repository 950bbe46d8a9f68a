"""Runs that die, each in another way."""

from __future__ import annotations

from tests.scenarios.scene import Release, Scene

WORKER = "WorkerDict"
RAISED_IN = (
    "(pid={pid}, ip=10.3.0.7, actor_id=b2c9, repr=<verl.single_controller.ray.base.WorkerDict object at 0x7f3a>)"
)

WORKER_DIED = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the "
    "problem, check the logs for the dead worker. Lease ID: 0a Worker ID: a4 Node ID: a5 Worker IP address: 10.3.0.7 "
    "Worker port: 10074 Worker PID: {pid} Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits "
    "with a connection error code 2. End of file."
)


def running(release: Release = "0.9") -> Scene:
    """Nine steps, and half of the next one."""
    return Scene(release).start().steps(1, 9).wait(31)


def _driver(scene: Scene, task: str, innermost: str, *frames: str) -> Scene:
    """The driver's own end: the traceback of a task of a worker in that of the trainer."""
    where = RAISED_IN.format(pid=21399)
    return scene.raw(
        "Error executing job with overrides: ['algorithm.adv_estimator=grpo', 'trainer.nnodes=1']",
        "Traceback (most recent call last):",
        '  File "/opt/verl/trainer/main_ppo.py", line 42, in main',
        "    run_ppo(config)",
        f"ray.exceptions.RayTaskError({innermost.partition(':')[0].rpartition('.')[2]}): "
        "\x1b[36mray::TaskRunner.run()\x1b[39m "
        "(pid=21044, ip=10.3.0.7, actor_id=b1, repr=<main_ppo.TaskRunner object at 0x7f11>)",
        '  File "/opt/verl/trainer/ppo/ray_trainer.py", line 1190, in fit',
        "    actor_output = self.actor_rollout_wg.update_actor(batch)",
        f"\x1b[36mray::WorkerDict.{task}()\x1b[39m {where}",
        *frames,
        innermost,
        "",
        "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
    )


def host_oom() -> Scene:
    """Ray kills a worker for want of host memory: the victim is not the largest."""
    return _killed_for_memory(running())


def _killed_for_memory(scene: Scene) -> Scene:
    scene.raw(
        "\x1b[33m(raylet)\x1b[0m [2026-03-02 09:33:06,391 E 2110 2110] (raylet) node_manager.cc:3099: 1 Workers (tasks "
        "/ actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 5a5b5c, "
        "IP: 10.3.0.7) over the last time period. To see more information about the Workers killed on this node, use "
        "`ray logs raylet.out -ip 10.3.0.7`"
    )
    scene.wait(1.5).raw(
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "Memory on the node (IP: 10.3.0.7, ID: 5a5b5c) where the task (actor ID: 9e43, name=pQ2xRewardLoopWorker_0:1:"
        "RewardLoopWorker.__init__, pid=21702, memory used=9.50GB) was running was 478.25GB / 503.00GB (0.950795), "
        "which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: c9e16e) because it was the most "
        "recently scheduled task; to see more information about memory usage on this node, use `ray logs raylet.out "
        "-ip 10.3.0.7`. To see the logs of the worker, use `ray logs worker-c9e16e*out -ip 10.3.0.7. Top 10 memory "
        "users:",
        "PID\tMEM(GB)\tCOMMAND",
        "21399\t212.50\tray::WorkerDict.actor_rollout_generate_sequences",
        "21702\t9.50\tray::RewardLoopWorker",
    )
    return scene.end(3600)


def device_oom() -> Scene:
    """Rank 3 runs out of GPU memory in the backward pass; everybody else dies of that."""
    scene = running()
    scene.say(
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB. GPU 0 has a total capacity "
        "of 79.11 GiB of which 1.25 GiB is free. Process 771204 has 77.75 GiB memory in use. Of the allocated memory "
        "70.25 GiB is allocated by PyTorch, and 5.50 GiB is reserved by PyTorch but unallocated.",
        who=WORKER, pid=21402,
    )  # fmt: skip
    scene.wait(0.8)
    _driver(
        scene,
        "actor_rollout_update_actor",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB.",
        '  File "/opt/verl/workers/actor/dp_actor.py", line 281, in update_policy',
        "    loss.backward()",
    )
    scene.wait(1).raw(WORKER_DIED.format(pid=21403))
    return scene.end(3600)


def _watchdog(scene: Scene, rank: int, seq: int, *, hccl: bool = False) -> None:
    ms = 1_800_000 + 17 * rank
    if hccl:
        scene.say(
            f"[rank{rank}]:[E302 09:58:26.42802955{rank} compiler_depend.ts:574] [Rank {rank}] Watchdog caught "
            f"collective operation timeout: WorkHCCL(SeqNum={seq}, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for {ms} "
            "milliseconds before timing out.",
            who=WORKER,
            pid=21399 + rank,
        )
        return
    scene.say(
        f"[rank{rank}]:[E302 09:58:47.71469305{rank} ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=_ALLGATHER_BASE, NumelIn=442, NumelOut=884, "
        f"Timeout(ms)=1800000) ran for {ms} milliseconds before timing out.",
        who=WORKER,
        pid=21399 + rank,
    )


def nccl_timeout() -> Scene:
    """All ranks but one wait for a collective until the watchdog ends them; it was silent until then."""
    scene = running().wait(60)
    for rank in (0, 1, 3):
        scene.wait(0.25)
        _watchdog(scene, rank, 4937)
    scene.wait(1).say(
        "[2026-03-02 09:58:49,164 E 21399 23159] logging.cc:113: Unhandled exception: N3c1016DistBackendErrorE. "
        "what(): [PG 0 (default_pg) Rank 0] Process group watchdog thread terminated with exception: [Rank 0] Watchdog "
        "caught collective operation timeout: WorkNCCL(SeqNum=4937, OpType=_ALLGATHER_BASE, NumelIn=442, NumelOut=884, "
        "Timeout(ms)=1800000) ran for 1800000 milliseconds before timing out.",
        who=WORKER,
        pid=21399,
    )
    return scene.end(3600)


def hccl_timeout() -> Scene:
    """The same on Ascend."""
    scene = running().wait(60)
    for rank in (0, 2):
        scene.wait(0.25)
        _watchdog(scene, rank, 196, hccl=True)
    return scene.end(3600)


def nccl_timeout_after_a_stall() -> Scene:
    """A run hangs for half an hour; then the watchdog says why."""
    scene = Scene("0.9").start().steps(1, 12).chatter(1815)
    for rank in (0, 1, 3):
        scene.wait(0.25)
        _watchdog(scene, rank, 5120)
    return scene.end(3600)


def actor_died() -> Scene:
    """Ray misses a worker, and does not know why."""
    scene = running().raw(
        "Traceback (most recent call last):",
        '  File "/opt/verl/trainer/ppo/ray_trainer.py", line 1102, in fit',
        "    gen_batch_output = self.async_rollout_manager.generate_sequences(gen_batch)",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "\tclass_name: create_colocated_worker_cls.<locals>.WorkerDict",
        "\tactor_id: a60000000000000000000021",
        "\tpid: 21402",
        "\tname: k3Jd0aWorkerDict_0:3",
        "\tnamespace: 00000000-0000-0000-0000-000000000000",
        "\tip: 10.3.0.7",
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "
        "Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the "
        "process was killed by the OOM killer due to high memory usage.",
    )
    return scene.end(3600)


def engine_dead() -> Scene:
    """The core of vLLM dies of an assertion; the agent loop above it sees only that it is dead."""
    scene = running()
    head = "ERROR 03-02 09:48:42 [core.py:398]"
    scene.say(
        f"{head} EngineCore encountered a fatal error.",
        f"{head} Traceback (most recent call last):",
        f'{head}   File "/opt/vllm/v1/engine/core.py", line 389, in run_engine_core',
        f"{head}     engine_core.run_busy_loop()",
        f"{head} AssertionError: block table is full",
        who="EngineCore_DP0", pid=21633,
    )  # fmt: skip
    scene.wait(0.7).say(
        "ERROR 03-02 09:48:43 [api_router.py:72] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an "
        "issue. See stack trace (above) for the root cause.", who="vLLMHttpServer", pid=21610,
    )  # fmt: skip
    return scene.end(3600)


def python_error() -> Scene:
    """An exception of a worker, in the traceback of the trainer, in that of the driver."""
    scene = running("0.4")
    _driver(
        scene,
        "ref_compute_ref_log_prob",
        "KeyError: 'position_ids'",
        '  File "/opt/verl/workers/fsdp_workers.py", line 384, in compute_ref_log_prob',
        "    output = self.ref_policy.compute_log_prob(data)",
    )
    return scene.end(3600)


def error_at_start() -> Scene:
    """It never comes to a step: the workers cannot be built."""
    scene = Scene("0.9").start(bar=False).wait(12)
    _driver(
        scene,
        "actor_rollout_init_model",
        "ImportError: /opt/venv/lib/python3.12/site-packages/vllm/_C.abi3.so: undefined symbol: _ZNK3c1011StorageImpl",
        '  File "/opt/verl/workers/fsdp_workers.py", line 512, in init_model',
        "    from vllm import LLM",
    )
    return scene.end(7200)


def shell_killed() -> Scene:
    """The shell that started it says that it was killed."""
    scene = running().raw(
        "train.sh: line 12: 20990 Killed                  python3 -m verl.trainer.main_ppo trainer.nnodes=1"
    )
    return scene.end(3600)


def slurm_cancelled() -> Scene:
    """Somebody cancels the job."""
    scene = running().raw(
        "slurmstepd: error: *** STEP 730031.0 ON gpu-node-07 CANCELLED AT 2026-03-02T11:02:18 ***",
        "slurmstepd: error: *** JOB 730031 ON gpu-node-07 CANCELLED AT 2026-03-02T11:02:18 ***",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    )
    return scene.wait(2).raw("srun: error: gpu-node-07: task 0: Terminated").end(3600)


def slurm_time_limit() -> Scene:
    """The job runs into its time limit; Slurm itself is asked, too."""
    scene = running().raw(
        "slurmstepd: error: *** JOB 730031 ON gpu-node-07 CANCELLED AT 2026-03-02T11:02:18 DUE TO TIME LIMIT ***"
    )
    return scene.wait(11).observe("job", job="730031", state="TIMEOUT", exit="signal 15").end(3600)


def slurm_oom() -> Scene:
    """The memory limit of the job."""
    scene = running().raw(
        "slurmstepd: error: Detected 1 oom_kill event in StepId=730031.0. Some of the step tasks have been OOM Killed."
    )
    return scene.wait(1).raw("srun: error: gpu-node-07: task 0: Out Of Memory").end(3600)


def torchrun_child() -> Scene:
    """The report of torchrun of a child that was killed."""
    scene = running("0.4").raw(
        "E0302 11:02:17.620000 990 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed "
        "(exitcode: -9) local_rank: 3 (pid: 21402) of binary: /opt/venv/bin/python",
        "Traceback (most recent call last):",
        '  File "/opt/venv/bin/torchrun", line 8, in <module>',
        "    sys.exit(main())",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "============================================================",
        "verl.trainer.fsdp_sft_trainer FAILED",
        "------------------------------------------------------------",
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2026-03-02_11:02:17",
        "  host      : gpu-node-07",
        "  rank      : 3 (local_rank: 3)",
        "  exitcode  : -9 (pid: 21402)",
        "  error_file: <N/A>",
        "  traceback : Signal 9 (SIGKILL) received by PID 21402",
        "============================================================",
    )
    return scene.end(3600)


def node_died() -> Scene:
    """A node is gone, and with it its actors."""
    scene = running().raw(
        "\x1b[33m(raylet)\x1b[0m The node with node id: 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567 and address: 10.3.0.9 "
        "and node name: gpu-node-09 has been marked dead because the detector has missed too many heartbeats from it. "
        "This can happen when a \t(1) raylet crashes unexpectedly (OOM, etc.) ",
    )
    scene.wait(1).raw(
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "\tclass_name: create_colocated_worker_cls.<locals>.WorkerDict",
        "\tactor_id: a60000000000000000000029",
        "\tpid: 9402",
        "\tname: k3Jd0aWorkerDict_1:3",
        "\tip: 10.3.0.9",
        "The actor died because its node has died. Node Id: 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    )
    return scene.end(3600)


def native_crash() -> Scene:
    """A segmentation fault in a worker; Ray misses it."""
    scene = running()
    scene.say("*** SIGSEGV received at time=1772445738 on cpu 3 ***", who=WORKER, pid=21401)
    scene.say("Fatal Python error: Segmentation fault", "", who=WORKER, pid=21401)
    scene.wait(1).raw(WORKER_DIED.format(pid=21401))
    return scene.end(3600)


def killed_after_its_traceback() -> Scene:
    """The log tells the exception, the observer the exit, in either order: one incident, led by the exception."""
    scene = running().observe("process", pid=21044, state="gone", name="ray::TaskRunner", exit="code 1").wait(1)
    _driver(
        scene,
        "actor_rollout_update_actor",
        "ValueError: micro batch of size 0",
        '  File "/opt/verl/workers/actor/dp_actor.py", line 233, in update_policy',
        "    for data in micro_batches:",
    )
    return scene.end(3600)


def nan() -> Scene:
    """The gradient norm is nan in one step."""
    scene = Scene("0.9").start().steps(1, 11)
    return scene.step(12, values={"actor/grad_norm": float("nan")}).steps(13, 16)


def host_memory_leak() -> Scene:
    """Host memory grows by 1 % of what there is with each step, until Ray kills at 95 %."""
    scene = Scene("0.9").start()
    for step in range(1, 32):
        scene.step(step, {"perf/cpu_memory_used_gb": 503.0 * (0.65 + step / 100)})
    return _killed_for_memory(scene.wait(31))


SCENES = (
    host_oom, device_oom, nccl_timeout, hccl_timeout, nccl_timeout_after_a_stall, actor_died, engine_dead, python_error,
    error_at_start, shell_killed, slurm_cancelled, slurm_time_limit, slurm_oom, torchrun_child, node_died,
    native_crash, killed_after_its_traceback,
    nan, host_memory_leak,
)  # fmt: skip
