"""Runs that finish, end early, begin again, or share a directory."""

from __future__ import annotations

from tests.scenarios.scene import Scene, together

NOISE = (
    "Exception ignored in: <function _StatefulMultiProcessingDataLoaderIter.__del__ at 0x7fa10c2d5e40>",
    "Traceback (most recent call last):",
    '  File "/opt/venv/lib/python3.12/site-packages/torchdata/stateful_dataloader/stateful_dataloader.py", line 1314, '
    "in __del__",
    "    self._shutdown_workers()",
    "RuntimeError: DataLoader worker (pid 23711) is killed by signal: Killed.",
)


def clean_finish() -> Scene:
    """All steps are done; what is printed while everything shuts down sounds like a disaster."""
    scene = Scene("0.9", total=12).start().steps(1, 11)
    scene.wait(70).say("test_gen_batch meta info: {'eos_token_id': 2, 'validate': True, 'global_steps': 12}").wait(
        40
    ).say("validation generation end")
    scene.step(12, lost_s=110, testing=42.0, values={"val-core/openai/gsm8k/reward/mean@1": 0.625})
    scene.wait(1).say("'Final validation metrics: None'")
    scene.wait(2).say(*NOISE)
    scene.say("ERROR 03-02 11:02:18 [core_client.py:564] Engine core proc EngineCore_DP0 died unexpectedly, shutting "
              "down client.", who="vLLMHttpServer", pid=21610)  # fmt: skip
    scene.raw("(raylet) A worker died or was killed while executing a task by an unexpected system error.")
    return scene.wait(3).observe("process", pid=21044, state="gone", name="ray::TaskRunner", exit="").end(7200)


def finish_by_bar() -> Scene:
    """A release without a final validation: the bar is full and the last step printed."""
    return Scene("0.4", total=12).start().steps(1, 12).end(3600)


def ended_early_by_summary() -> Scene:
    """The data loader ran out: wandb's summary comes at step 9 of 30, and no error."""
    scene = Scene("0.6", total=30).start().steps(1, 9).wait(4)
    scene.say("wandb: Run history:", "wandb:      timing_s/gen ▅▄▃▃▂█▆▃▂", "wandb: ", "wandb: Run summary:")
    scene.say("wandb:      training/global_step 9", "wandb:      timing_s/gen 40.25", "wandb: ")
    scene.say("wandb: 🚀 View run math at: https://wandb.example/team/math/runs/k2")
    return scene.end(900)


def ended_early_by_process() -> Scene:
    """The process ends with code 0 at step 9 of 30."""
    scene = Scene("0.6", total=30).start().steps(1, 9).wait(5)
    return scene.observe("process", pid=21044, state="gone", name="ray::TaskRunner", exit="code 0").end(900)


def ended_early_by_job() -> Scene:
    """Slurm says that the job is completed, at step 9 of 30."""
    scene = Scene("0.6", total=30).start().steps(1, 9).wait(20)
    return scene.observe("job", job="730031", state="COMPLETED", exit="code 0").end(900)


def resume_same_file() -> Scene:
    """Killed at step 14, started again into the same log from the checkpoint of step 10."""
    scene = (
        Scene("0.9")
        .start()
        .steps(1, 14)
        .wait(20)
        .raw("train.sh: line 12: 20990 Killed                  python3 -m verl.trainer.main_ppo trainer.nnodes=1")
    )
    return scene.wait(900).resume(10, pid=31007).steps(11, 22)


def resume_other_file() -> Scene:
    """The same with a log of its own for the second start."""
    scene = (
        Scene("0.9")
        .start()
        .steps(1, 14)
        .wait(20)
        .raw("train.sh: line 12: 20990 Killed                  python3 -m verl.trainer.main_ppo trainer.nnodes=1")
    )
    scene.wait(900).log = "run-2.log"
    return scene.resume(10, pid=31007).steps(11, 22)


def restart_without_a_word() -> Scene:
    """A run that hangs is ended by hand, which no line tells, and started anew."""
    scene = Scene("0.9").start().steps(1, 14).chatter(400)
    scene.pid = 31007
    return scene.wait(200).start().steps(1, 12)


def preempted_and_queued_again() -> Scene:
    """The scheduler takes the nodes, queues the job again, and starts it three hours later."""
    scene = Scene("0.9").start().steps(1, 14).wait(20)
    scene.raw("slurmstepd: error: *** JOB 730031 ON gpu-node-07 CANCELLED AT 2026-03-02T11:02:18 DUE TO PREEMPTION ***")
    scene.wait(15).observe("job", job="730031", state="PREEMPTED", exit="signal 15")
    scene.wait(60).observe("job", job="730031", state="PENDING")
    scene.wait(10_800).observe("job", job="730031", state="RUNNING")
    return scene.wait(30).resume(10, pid=31007).steps(11, 16)


def two_runs() -> Scene:
    """Two logs of one directory: one run hangs, the other goes on and finishes."""
    stuck = Scene("0.9", log="alpha.log", pid=21044).start().steps(1, 9).chatter(300, running=3)
    going = Scene("0.4", total=16, log="beta.log", pid=40991).wait(25).start().steps(1, 16)
    return together(stuck, going)


SCENES = (
    clean_finish, finish_by_bar, ended_early_by_summary, ended_early_by_process, ended_early_by_job, resume_same_file,
    resume_other_file, preempted_and_queued_again, restart_without_a_word, two_runs,
)  # fmt: skip
