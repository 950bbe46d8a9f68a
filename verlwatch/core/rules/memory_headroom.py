"""All cards of a group fill up together: nobody differs from the others, and nobody has much room left."""

from __future__ import annotations

from verlwatch.core.rules._memory_view import GroupFilling, MemoryView, full, gb, of_card, rate
from verlwatch.core.types import Diagnosis

NAME = "memory_headroom"
NEEDS = "GPU memory of the cards over twelve steps or more, and their size"
TURN_ON = "Sample the GPUs (`gpu:` in the configuration; extra `nvml`, or nvidia-smi)"
ADVICE = (
    "Look at what grows on every rank: longer responses (response_length), micro batch sizes, caches; "
    "rollout.gpu_memory_utilization leaves room, param_offload and optimizer_offload make some.",
)
SOON_STEPS, SOON_S = 30.0, 1800.0
CRITICAL_STEPS = 5.0
LEAST_SHARE = 0.7
"""A card that is emptier is left alone, however it grows."""


def diagnose(view: MemoryView) -> tuple[Diagnosis, ...]:
    """One diagnosis for each group that is full soon if it goes on."""
    return tuple(_diagnosis(view, one) for one in view.filling if _is_soon(view, one))


def _is_soon(view: MemoryView, one: GroupFilling) -> bool:
    factor = 1.5 if _subject(one) in view.told else 1.0
    steps, seconds = one.growth.full_in_steps, one.growth.full_in_s
    soon = steps is not None and steps <= factor * SOON_STEPS
    return one.used_gb >= LEAST_SHARE * one.total_gb and (soon or (seconds is not None and seconds <= factor * SOON_S))


def _subject(one: GroupFilling) -> str:
    return f"memory of {one.group}"


def _diagnosis(view: MemoryView, one: GroupFilling) -> Diagnosis:
    steps = one.growth.full_in_steps
    ends = full(one.growth)
    title = (
        f"all {one.cards} cards of {one.group} fill up: {gb(one.used_gb)} of {gb(one.total_gb)}, "
        f"growing {rate(one.growth)}, full {ends}"
    )
    return of_card(
        NAME,
        view,
        _subject(one),
        tuple(("host", host) for host in one.hosts),
        "critical" if steps is not None and steps <= CRITICAL_STEPS else "warning",
        one.onset,
        title,
        before=one.used_gb,
        after=one.total_gb,
        evidence=(f"the peaks of each step have climbed along a line since step {one.onset}",),
        advice=ADVICE,
        facts=(
            ("At step", str(view.step)),
            ("Fullest card", f"{gb(one.used_gb)} of {gb(one.total_gb)}"),
            ("Growth", f"growing {rate(one.growth)}"),
            ("Full", ends),
            *((("Where", ", ".join(one.hosts)),) if one.hosts else ()),
        ),
    )
