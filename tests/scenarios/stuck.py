"""Runs that hang, are slow, or cannot be seen."""

from __future__ import annotations

from tests.scenarios.scene import Scene

VALIDATION = (
    "test_gen_batch meta info: {'eos_token_id': 151645, 'pad_token_id': 151643, 'recompute_log_prob': False, "
    "'do_sample': False, 'validate': True, 'global_steps': 10}"
)


def stuck_at_zero() -> Scene:
    """The bar stands at 0, the workers print warnings now and then."""
    return Scene("0.6").start().chatter(3200)


def stuck_in_gen() -> Scene:
    """One request never ends: the engine's counters stay as they are."""
    return Scene("0.9").start().steps(1, 9).chatter(700, running=1)


def stuck_in_reward() -> Scene:
    """The engines are idle and their metrics are fetched for ever; the reward service does not answer."""
    scene = Scene("0.9").start().steps(1, 9).chatter(40, running=64).chatter(30, running=0)
    return scene.chatter(600)


def stuck_in_validation() -> Scene:
    """The second validation generates and does not come to its scores."""
    scene = Scene("0.9").start().steps(1, 4).wait(20).say(VALIDATION.replace("10", "5"))
    scene.wait(45).say("validation generation end").step(5, lost_s=65, testing=48.0).steps(6, 9)
    return scene.wait(71).say(VALIDATION).chatter(900)


def frozen_after_validation() -> Scene:
    """A validation is over and its step printed; the next step does not come."""
    scene = Scene("0.4").start().steps(1, 9).wait(70).say(VALIDATION).wait(40).say("validation generation end")
    scene.step(10, lost_s=110, testing=44.0, values={"val-core/openai/gsm8k/reward/mean@1": 0.41})
    return scene.chatter(600)


def slow_checkpoint() -> Scene:
    """Each fifth step saves for longer than the step itself took: so it did before."""
    scene = Scene("0.9").start()
    for first in (1, 6, 11, 16):
        scene.steps(first, first + 3).wait(69).say(f"local_global_step_folder: /ckpt/math/global_step_{first + 4}")
        scene.chatter(225 + first).step(first + 4, lost_s=294 + first, save_checkpoint=230.0 + first)
    return scene.steps(21, 24)


def slow_first_checkpoint() -> Scene:
    """Nothing is printed while the first checkpoint is saved for 12 min; and none came before."""
    scene = Scene("0.9").start().steps(1, 19).wait(69).say("local_global_step_folder: /ckpt/math/global_step_20")
    return scene.step(20, lost_s=69, save_checkpoint=720.0).steps(21, 24)


def quiet_start() -> Scene:
    """Large weights are loaded without a word for 25 min, and the first step takes 40 min."""
    scene = Scene("0.9").start(bar=False).wait(1500).say(
        "After building vllm rollout, memory allocated (GB): 3.50, memory reserved (GB): 3.75, device memory "
        "used/total (GB): 61.25/79.11", who="WorkerDict", pid=21399,
    )  # fmt: skip
    return scene.wait(60).bar(0).step(1, gen=2400.0).steps(2, 4)


def checkpoint_that_hangs() -> Scene:
    """Checkpoints took 60 s; this one is not done after 20 min."""
    scene = Scene("0.9").start()
    for first in (1, 6):
        scene.steps(first, first + 3).wait(69).say(f"local_global_step_folder: /ckpt/math/global_step_{first + 4}")
        scene.step(first + 4, lost_s=69, save_checkpoint=60.0)
    scene.steps(11, 14).wait(69).say("local_global_step_folder: /ckpt/math/global_step_15")
    return scene.chatter(1200)


def stall_that_recovers() -> Scene:
    """One step generates for 7 min and ends; those after it are as before."""
    scene = Scene("0.9").start().steps(1, 40).chatter(420, running=2)
    return scene.step(41, lost_s=420, gen=420.0).steps(42, 52)


def stall_that_recovers_early() -> Scene:
    """The same before there are baselines, and validated: the slow step is told once, as a stall."""
    scene = Scene("0.4").start().steps(1, 7).chatter(420, running=2)
    return scene.step(8, lost_s=420, gen=420.0).steps(9, 16)


def stall_that_lasts_on() -> Scene:
    """The steps after a stall are as slow as it was: a stall that ended, and then a slowdown."""
    scene = Scene("0.9").start().steps(1, 40).chatter(420, running=2)
    return scene.step(41, lost_s=420, gen=420.0).steps(42, 50, gen=410.0)


def silence() -> Scene:
    """No line comes any more from anywhere."""
    return Scene("0.9").start().steps(1, 12).end(900)


def silence_that_ends() -> Scene:
    """Nothing for 5 min, then the step that was due long ago."""
    return Scene("0.9").start().steps(1, 12).wait(300).step(13, lost_s=300, old_log_prob=236.0).steps(14, 20)


def blind() -> Scene:
    """The log cannot be read for 10 min; then all that was printed meanwhile is there, and then it hangs."""
    scene = Scene("0.9").start().steps(1, 9).row("run.log", "unreadable Permission denied")
    scene.wait(600).row("run.log", "readable").steps(10, 17, lost_s=600)
    return scene.chatter(500)


def blind_for_a_moment() -> Scene:
    """A log that is rotated away for half a minute is no matter."""
    scene = Scene("0.9").start().steps(1, 9).wait(20).row("run.log", "unreadable No such file or directory")
    return scene.wait(30).row("run.log", "readable").steps(10, 14, lost_s=50)


def blind_while_stuck() -> Scene:
    """A run that hangs, and then cannot be seen: what was told stands, nothing is added."""
    scene = Scene("0.9").start().steps(1, 9).chatter(300).row("run.log", "unreadable Stale file handle")
    return scene.wait(900).row("run.log", "readable").chatter(30).steps(10, 12, gen=38.0)


def bursts() -> Scene:
    """A block-buffered log: the lines of three steps arrive at once."""
    scene = Scene("0.4").start()
    for first in range(1, 46, 3):
        at = len(scene.rows)
        scene.steps(first, first + 2)
        late = [row for row in scene.rows[at:] if row[1] == "run.log"]
        scene.rows[at:] = [(scene.now, "run.log", late[-1][2])]
    return scene


SCENES = (
    stuck_at_zero, stuck_in_gen, stuck_in_reward, stuck_in_validation, frozen_after_validation, slow_checkpoint,
    slow_first_checkpoint, checkpoint_that_hangs, quiet_start, stall_that_recovers, stall_that_recovers_early,
    stall_that_lasts_on, silence, silence_that_ends, blind, blind_for_a_moment, blind_while_stuck, bursts,
)  # fmt: skip
