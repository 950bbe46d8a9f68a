"""A card whose memory moves away from its peers': at once, or bit by bit until it is full."""

from __future__ import annotations

from verlwatch.core.rules._memory_view import Apart, CardView, MemoryView, full, gb, of_card, rate, sentence
from verlwatch.core.rules.memory_divergence import places
from verlwatch.core.types import Diagnosis, Severity

NAME = "memory_offset_change"
NEEDS = "GPU memory of two cards or more that do the same work, at the same instants, over some steps"
TURN_ON = (
    "Sample the GPUs (`gpu:` in the configuration; extra `nvml`, or nvidia-smi), or let every rank print its memory: "
    "`RAY_DEDUP_LOGS=0` with `VERL_LOGGING_LEVEL=DEBUG`, or read Ray's worker files"
)
GROWS = (
    "Look at what this rank alone keeps: tensors held in lists or closures, growing caches, a reward or tool process "
    "on its card; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True if it is fragmentation.",
    "Save a checkpoint before the card is full; torch.cuda.memory._dump_snapshot on that rank shows what holds it.",
)
MOVED = (
    "Look at what began on that card at that step: another process (nvidia-smi), a worker that was started again, "
    "weights that were loaded twice.",
)
FELL = ("Look whether a process on that card has died or was not started again.",)
CRITICAL_STEPS, CRITICAL_S = 10.0, 1800.0
"""A card that is full so soon is critical."""


def diagnose(view: MemoryView) -> tuple[Diagnosis, ...]:
    """One diagnosis for each card whose offset is not what it was."""
    return tuple(
        _diagnosis(view, card, card.apart)
        for card in view.cards
        if card.apart is not None and card.apart.before is not None
    )


def _diagnosis(view: MemoryView, card: CardView, apart: Apart) -> Diagnosis:
    before, peers, growth = apart.before or 0.0, card.peers_gb or 0.0, apart.growth
    moved = apart.offset - before
    more = "more" if apart.offset > 0 else "less"
    by = "growing" if growth is not None and (growth.gb_per_s or growth.gb_per_step or 0.0) > 0 else "falling"
    grows = f"{by} {rate(growth)}" if growth is not None and rate(growth) else ""
    ends = full(growth) if growth is not None else ""
    title = sentence(
        (
            f"{card.name} holds {gb(apart.offset)} {more} than its peers since step {apart.onset}",
            grows,
            f"full {ends}" if ends else "",
        )
    )
    evidence = (
        f"{view.covers}; median of {card.group_size} cards ({card.group})",
        f"offset from its peers {before:+.2g} GB before step {apart.onset}, {apart.offset:+.3g} GB by now",
    )
    return of_card(
        NAME,
        view,
        card.subject,
        card.scope,
        _severity(apart),
        apart.onset,
        title,
        before=max(0.0, peers + before),
        after=max(0.0, peers + apart.offset),
        evidence=evidence,
        advice=GROWS if by == "growing" and grows else MOVED if moved > 0 else FELL,
        facts=_facts(view, card, apart, grows, ends),
    )


def _facts(view: MemoryView, card: CardView, apart: Apart, grows: str, ends: str) -> tuple[tuple[str, str], ...]:
    peers = card.peers_gb or 0.0
    held = gb(peers + apart.offset) + (f" of {gb(card.total_gb)}" if card.total_gb else "")
    rows = (
        ("Since step", str(apart.onset)),
        ("At step", str(view.step)),
        ("Holds", held),
        ("Peers hold", gb(peers)),
        ("Offset", f"{apart.offset:+.3g} GB ({apart.before or 0.0:+.2g} GB before)"),
        ("Growth", grows),
        ("Full", ends),
        ("Where", places(card)),
    )
    return tuple((label, value) for label, value in rows if value)


def _severity(apart: Apart) -> Severity:
    growth = apart.growth
    if growth is None:
        return "warning"
    soon = growth.full_in_steps is not None and growth.full_in_steps <= CRITICAL_STEPS
    return "critical" if soon or (growth.full_in_s is not None and growth.full_in_s <= CRITICAL_S) else "warning"
