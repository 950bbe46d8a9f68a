"""A card that holds other memory than its peers, at the same instants, ever since it was first seen beside them."""

from __future__ import annotations

from verlwatch.core.rules._memory_view import CardView, MemoryView, gb, of_card, sentence
from verlwatch.core.types import Diagnosis

NAME = "memory_divergence"
NEEDS = "GPU memory of two cards or more that do the same work, at the same instants"
TURN_ON = (
    "Sample the GPUs (`gpu:` in the configuration; extra `nvml`, or nvidia-smi), or let every rank print its memory: "
    "`RAY_DEDUP_LOGS=0` with `VERL_LOGGING_LEVEL=DEBUG`, or read Ray's worker files"
)
ADVICE = (
    "Compare what the card runs with its peers: nvidia-smi on its host, other processes on it, the layout of ranks "
    "(tensor_model_parallel_size, device mesh), parameters that were not sharded.",
)
REMARK_GB, STILL_GB = 0.5, 0.3
"""A spread worth a remark, and the one from which on it is none any more."""
SUBJECT = "memory spread"


def diagnose(view: MemoryView) -> tuple[Diagnosis, ...]:
    """One diagnosis for each card far from its peers; a remark for a group that is spread a little."""
    found = [_diagnosis(view, card) for card in view.cards if card.apart is not None and card.apart.before is None]
    groups = dict.fromkeys(card.group for card in view.cards)
    remarks = (_remark(view, group, [card for card in view.cards if card.group == group]) for group in groups)
    return (*found, *(remark for remark in remarks if remark is not None))


def _diagnosis(view: MemoryView, card: CardView) -> Diagnosis:
    apart = card.apart
    if apart is None:
        raise ValueError(f"{card.name} is not apart from its peers")
    offset, peers = apart.offset, card.peers_gb or 0.0
    than = f"{gb(abs(offset))} {'more' if offset > 0 else 'less'} than its peers"
    evidence = [f"{view.covers}; median of {card.group_size} cards ({card.group})"]
    facts = (
        ("Since step", str(apart.onset)),
        ("At step", str(view.step)),
        ("Holds", f"{gb(peers + offset)}" + (f" of {gb(card.total_gb)}" if card.total_gb else "")),
        ("Peers hold", gb(peers)),
        *((("Where", where),) if (where := places(card)) else ()),
    )
    return of_card(
        NAME,
        view,
        card.subject,
        card.scope,
        "warning",
        apart.onset,
        f"{card.name} holds {gb(peers + offset)} while its peers hold {gb(peers)}: {than} since step {apart.onset}",
        before=peers,
        after=peers + offset,
        evidence=tuple(evidence),
        advice=ADVICE,
        facts=facts,
    )


def places(card: CardView) -> str:
    """Host, card and rank, as far as they are known."""
    found = dict(card.scope)
    rank = f"rank {found['rank']}" if "rank" in found else "rank unknown"
    gpu = f"GPU {found['gpu']}" if "gpu" in found else ""
    host = f"host {found['host']}" if "host" in found else ""
    return sentence((host, gpu, rank, card.actor or ""))


def _remark(view: MemoryView, group: str, cards: list[CardView]) -> Diagnosis | None:
    """One for the whole group, where no card is told of by itself."""
    known = [(card.offset_gb, card.name) for card in cards if card.settled and card.offset_gb is not None]
    if len(known) < 2 or len(known) < len(cards) or any(card.apart for card in cards):  # noqa: PLR2004 - a spread
        return None
    (low, lowest), (high, highest) = min(known), max(known)
    spread = high - low
    subject = f"{SUBJECT} of {group}"
    noise = max(card.noise_gb for card in cards)
    if spread < (STILL_GB if subject in view.told else max(REMARK_GB, 4 * noise)):
        return None
    title = f"the memory of {group} is spread over {gb(spread)}: {highest} holds most, {lowest} least"
    hosts = tuple(dict.fromkeys(pair for card in cards for pair in card.scope if pair[0] == "host"))
    return of_card(
        NAME,
        view,
        subject,
        hosts,
        "info",
        max(view.step, 0),
        title,
        after=spread,
        evidence=(f"{view.covers}; {highest} {high:+.2g} GB, {lowest} {low:+.2g} GB from the median",),
        facts=(("At step", str(view.step)), ("Spread", gb(spread))),
    )
