"""A message as a real incident writes it, for trying out a receiver."""

from __future__ import annotations

from dataclasses import replace

from verlwatch.core.types import Message

SAMPLE_AT = 1_767_225_600.0
_RECENT = (
    99.0, 97.4, 141.5, 101.0, 98.2, 96.9, 136.8, 97.7, 102.3, 99.6, 100.4, 96.1,
    98.8, 139.0, 99.1, 97.3, 103.0, 98.5, 96.6, 100.9, 97.8, 142.2, 99.9, 394.0,
)  # fmt: skip
"""As the sparkline shows them."""


def sample_message(at: float = SAMPLE_AT, link: str = "") -> Message:
    """What a slow generation phase looks like, marked as a test; ``at`` in epoch seconds.

    Each second has an incident of its own, so that no channel takes it for one that it knows.
    """
    incident = f"sample-{int(at)}"
    return Message(
        incident=incident,
        reason="opened",
        run="example-run",
        rule="phase_spike",
        phase="gen",
        severity="warning",
        title="TEST example-run: gen took ×3.94 at step 120: 394 s instead of 100 s",
        summary="This is a test of the receiver, nothing is wrong. Generation took ×3.94 the time its tokens explain.",
        onset_step=120,
        step=120,
        ratio=3.94,
        before=100.0,
        after=394.0,
        facts=(
            ("Since step", "120"),
            ("At step", "120"),
            ("Ratio at equal work", "×3.94"),
            ("Baseline", "100 s"),
            ("Took", "394 s"),
            ("Lost so far", "294 s, 0.65 GPU-hours"),
            ("Likely cause", "a straggler, or another job on the host (a guess from one step)"),
            ("Configured", "rollout.gpu_memory_utilization = 0.6, rollout.max_num_seqs = 256"),
        ),
        evidence=(
            "step 120: gen 394 s, expected 100 s for its work",
            "adds 294 s to a step of 253 s (+116%)",
        ),
        advice=(
            "If it stays: compare rollout.gpu_memory_utilization and the longest response with the steps before.",
            "Known? verlwatch silence add --run=example-run --phase=gen --for=2h, "
            f"or until it grows: verlwatch accept {incident}",
        ),
        sparkline="▁▁▂▁▁▁▂▁▁▁▁▁▁▂▁▁▁▁▁▁▁▂▁█",
        opened_at=at,
        at=at,
        link=link,
        recent=_RECENT,
    )


def sample_end(message: Message) -> Message:
    """The end of `sample_message`'s incident, for a channel where it would stay open."""
    title = "TEST example-run: gen is back to normal since step 121 (was ×3.94 for 1 step, baseline 100 s)"
    return replace(message, reason="resolved", closed_as="resolved", title=title, advice=())
