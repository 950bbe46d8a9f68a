"""The cards of a run as the rules see them: offsets become GB a step, and steps until a card is full."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from verlwatch.core.cards._card import Card
from verlwatch.core.cards._faults import SEEN_KINDS
from verlwatch.core.cards._groups import Group
from verlwatch.core.cards._offset import Change
from verlwatch.core.rules import Apart, CardFault, CardView, GroupFilling, Growth, MemoryView, gb
from verlwatch.core.rules.memory_divergence import TURN_ON

if TYPE_CHECKING:
    from verlwatch.core.cards._cards import Cards

FILLING_STEPS = 12
_FILLING_SURE = 10.0
_SETTLED = 5
_LARGEST_FACTOR = 3.0

COVERS_LOG = "memory that PyTorch's allocator holds, as each process prints it at the same stage of a step"
COVERS_CARD = "all memory in use on the card, whoever holds it"


def view_of(cards: Cards, step: int, now: float, told: frozenset[str]) -> MemoryView:
    """What the rules see at ``step``."""
    members = cards.members()
    labels = {number: cards.groups.label(group) for number, group in members.items()}
    step_s = cards.step_s
    views = tuple(
        _card(card, labels.get(number, ""), len(group), step_s) for number, group in members.items() for card in group
    )
    filling = (_filling(cards.groups.all[number], group, labels[number], step_s) for number, group in members.items())
    return MemoryView(
        run=cards.run,
        step=step,
        cards=views,
        told=told,
        filling=tuple(found for found in filling if found is not None),
        idle=cards.usage.idle(members, told),
        missing=(*_missing(cards), *cards.faults.of({"missing"}, now)),
        faults=cards.faults.of(SEEN_KINDS, now),
        step_s=step_s,
        covers=COVERS_LOG if any(card.offset.exact and card.pid for card in cards.cards.values()) else COVERS_CARD,
    )


def outcome(card: Card, change: Change) -> str:
    """In words how it ended that a card held other memory than its peers."""
    last = card.offset.trail[-1].step if card.offset.trail else change.onset
    offset = card.offset.now
    left = "what its peers hold" if change.before is None else "what it did before, beside its peers"
    near = f" ({gb(offset)} {'more' if offset > 0 else 'less'})" if offset is not None and abs(offset) >= 0.5 else ""  # noqa: PLR2004
    return f"{card.name} holds {left} again{near}, at step {last}"


def not_compared(has_cards: bool, processes: int) -> str:
    """Why ranks are not compared, and what to switch on; ``processes`` print their memory in the logs."""
    if has_cards:
        why = "each card is seen alone: no other does the same work at the same instants"
    elif processes:
        why = "only one process prints its memory, and verl does not print which of the ranks it is"
    else:
        why = "nothing tells the memory of the cards"
    return f"Ranks cannot be compared: {why}. {TURN_ON}"


def _card(card: Card, group: str, size: int, step_s: float | None) -> CardView:
    offset = card.offset
    change = offset.change
    now = offset.now
    apart = Apart(change.onset, change.before, now, _growth(card, step_s)) if change and now is not None else None
    return CardView(
        name=card.name,
        subject=card.subject or f"memory {card.label}",
        scope=card.scope,
        group=group,
        group_size=size,
        used_gb=card.used,
        total_gb=card.total,
        peers_gb=card.peers,
        offset_gb=offset.base if offset.base is not None and change is None else now,
        noise_gb=offset.noise,
        settled=offset.known >= _SETTLED,
        apart=apart,
        rank=card.rank,
        actor=card.actor,
    )


def _growth(card: Card, step_s: float | None) -> Growth | None:
    """How fast its offset grows, and when the card is full if all that grows is what it holds."""
    line = card.offset.slope()
    if line is None:
        return None
    per_step: float | None = line.gb
    per_s: float | None = line.gb / step_s if step_s else None
    if not card.offset.exact:  # its x are seconds, and not steps
        per_step, per_s = (line.gb * step_s if step_s else None), line.gb
    if line.gb <= 0.0 or card.total is None:
        return Growth(per_step, per_s, None, None)
    factor = _device_factor(card)
    used = (card.used or 0.0) if card.offset.exact else max(card.peak, card.last_peak)
    free = max(0.0, card.total - used)
    return Growth(per_step, per_s, _until(free, factor, per_step), _until(free, factor, per_s))


def _until(free: float, factor: float, growth: float | None) -> float | None:
    return free / (factor * growth) if growth else None


def _device_factor(card: Card) -> float:
    """How much more the device gives away than the allocator hands out: a log tells both."""
    used, points = card.used_points, card.offset.points
    count = min(len(used), len(points))
    if not card.offset.exact or count < 2:  # noqa: PLR2004 - a difference
        return 1.0
    grown = points[-1].offset - points[-count].offset
    return min(_LARGEST_FACTOR, max(1.0, (used[-1] - used[-count]) / grown)) if grown > 1.0 else 1.0


def _filling(group: Group, cards: Sequence[Card], label: str, step_s: float | None) -> GroupFilling | None:
    """The line along which the peaks of all cards climb; None where they do not, or not surely."""
    rows = list(group.peaks)[-FILLING_STEPS:]
    total = max((card.total or 0.0 for card in cards), default=0.0)
    if len(rows) < FILLING_STEPS or not total:
        return None
    xs, ys = [float(step) for step, _ in rows], [peak for _, peak in rows]
    x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x0) ** 2 for x in xs)
    slope = sum((x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True)) / spread if spread else 0.0
    rest = sqrt(sum((y - y0 - slope * (x - x0)) ** 2 for x, y in zip(xs, ys, strict=True)) / (len(xs) - 2))
    third = len(ys) // 3
    parts = [sum(ys[i * third : (i + 1) * third]) / third for i in range(3)]
    climbs = parts[2] - parts[1] >= 0.5 * (parts[1] - parts[0]) > 0.0
    if slope <= 0.0 or not climbs or slope * sqrt(spread) < _FILLING_SURE * max(rest, 0.1):
        return None
    used = max(max(card.peak, card.last_peak) for card in cards)
    free = max(0.0, total - max(used, ys[-1]))
    growth = Growth(slope, slope / step_s if step_s else None, free / slope, free / slope * step_s if step_s else None)
    hosts = tuple(dict.fromkeys(card.host for card in cards if card.host))
    return GroupFilling(label, len(cards), hosts, rows[0][0], max(used, ys[-1]), total, growth)


def _missing(cards: Cards) -> tuple[CardFault, ...]:
    """Cards that their host does not tell of any more."""
    told = {fault.scope for fault in cards.faults.of({"missing"}, float("-inf"))}
    found = []
    for key, _ in cards.lost():
        card = cards.cards.get(key)
        if card is not None and card.scope not in told:
            step = card.offset.trail[-1].step if card.offset.trail else 0
            found.append(CardFault(card.label, card.scope, "missing", "its host tells its other cards", step))
    return tuple(found)


def table_of(cards: Cards) -> list[dict[str, Any]]:
    """One row for each card by host, rank and index: what it holds in GB, how far it is from its group's median.

    ``gpu`` is None for a process that only a log tells of; ``strip`` are its last values, ``at`` the last instant.
    """
    labels = {number: cards.groups.label(members) for number, members in cards.members().items()}
    gone = {key for key, _ in cards.lost()}
    rows = [
        {
            "host": card.host,
            "gpu": None if card.key[1].startswith("pid ") else card.key[1],
            "rank": card.rank,
            "pid": card.pid,
            "actor": card.actor,
            "used_gb": card.used,
            "total_gb": card.total,
            "utilization": card.utilization,
            "power_w": card.values.get("power_w"),
            "temperature_c": card.values.get("temperature_c"),
            "offset_gb": card.offset.now if card.peers is not None else None,
            "group": labels.get(card.group),
            "strip": list(card.strip),
            "at": card.at,
            "missing": card.key in gone,
        }
        for card in cards.cards.values()
    ]
    return sorted(rows, key=lambda row: (row["host"], _order(row["rank"]), _order(row["gpu"]), row["pid"] or 0))


def _order(text: str | None) -> tuple[bool, int, str]:
    """Numbers before names, what is unknown last."""
    if text is None:
        return True, 0, ""
    head = text.split(",")[0].split(":")[0]
    return False, int(head) if head.isascii() and head.isdigit() else 1 << 30, text
