"""The file system of the checkpoints will be full: one that does not fit ends the run, and is no checkpoint."""

from __future__ import annotations

from verlwatch.core.rules._ahead import CRITICAL_S, CRITICAL_STEPS, Room, gb, lasting
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis, Severity

NAME = "disk_forecast"
NEEDS = "`local_global_step_folder:` (verl ≥ 0.3) in the log, and verlwatch on a host that sees that directory"
TURN_ON = (
    "`runs[].checkpoint_dir` in the configuration, where the log names no absolute path; run the daemon, or an agent, "
    "on a host that mounts it"
)
SUBJECT = "checkpoint_disk"
FEW = 3
"""So many more, and people are told."""
SOON_S = 43_200.0
ADVICE = (
    "Free room there, or let verl keep fewer: trainer.max_actor_ckpt_to_keep and trainer.max_critic_ckpt_to_keep.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each file system that will soon have no room for a checkpoint, the next one first."""
    rooms = sorted(view.ahead.rooms, key=lambda room: room.steps)
    return tuple(_diagnosis(view, room) for room in rooms if room.fits <= FEW or room.steps * room.step_s <= SOON_S)


def _diagnosis(view: View, room: Room) -> Diagnosis:
    steps = round(room.steps)
    until = f"about {steps} steps" + (f", about {lasting(steps * room.step_s)}" if room.step_s > 0.0 else "")
    if room.fits == 0:
        what = f"the next checkpoint does not fit, in {until}"
    else:
        what = f"room for {room.fits} more {'checkpoint' if room.fits == 1 else 'checkpoints'}, {until}"
    free = f"{gb(room.free_gb)} of {gb(room.total_gb)}"
    each = f"{gb(room.each_gb)}" + (f", {gb(room.lump_gb)} at once" if room.lump_gb > room.each_gb else "")
    return Diagnosis(
        rule=NAME,
        run=view.run,
        subject=SUBJECT,
        severity=_severity(room),
        onset=view.step,
        step=view.step,
        ratio=1.0 + 1.0 / (1.0 + room.fits),
        before=room.total_gb,
        after=room.free_gb,
        cost_s=0.0,
        summary=f"{room.path} has {free} free; a checkpoint every {room.every:.0f} steps takes {each}: {what}",
        evidence=(
            f"{room.path}: {free} free",
            f"{room.seen} checkpoints, one every {room.every:.0f} steps, took {each} each; whoever else writes "
            "there counts too",
        ),
        advice=ADVICE,
        scope=room.scope,
        title=f"disk of the checkpoints: {what} ({free} free)",
        facts=(("Free", free), ("A checkpoint takes", each), ("Room for", what), ("Directory", room.path)),
    )


def _severity(room: Room) -> Severity:
    near = room.steps <= CRITICAL_STEPS or 0.0 < room.steps * room.step_s <= CRITICAL_S
    return "critical" if room.fits == 0 or near else "warning"
