"""Memory of each card over the steps: tracks for eyes, and whether the cards hold the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from verlwatch.core.statement import state
from verlwatch.report._model import Finding, MemoryPoint, MemoryTrack
from verlwatch.report._reading import Reading
from verlwatch.report._seen import Card, Points
from verlwatch.report._steps import Steps
from verlwatch.report._words import Words

REMARK_GB = 0.5
"""Cards that differ by less are equal."""
ALERT_GB, ALERT_SHARE = 2.0, 0.05
"""More than both, the second a share of the card, is too much where it lasts."""
LASTING = 3
"""Steps for which a difference must hold, where so many are seen."""
ACCUMULATES = "memory_accumulates"
"""Of a card that was with the others at first; where none was seen to be, it is ``memory_unequal``."""
NEARLY_FULL = 0.92
GROWTH_GB = 2.0
FEW = 2
_LEFT = "the difference was small before: something accumulates there"
_APART = "the shards are unequal, or something accumulates there"
_LITTLE = "a remark: little enough to be normal"
SHOWN = 1000
"""Points of a track."""


class At(NamedTuple):
    """What a card held at a moment of a step."""

    step: int
    gb: float


def tracks(reading: Reading, steps: Steps, words: Words) -> tuple[MemoryTrack, ...]:
    """A track per card: the most that it held in each step."""
    cards = sorted(reading.cards.known(), key=_order)
    return tuple(
        MemoryTrack(
            name_of(card),
            label_of(card, words),
            card.rank,
            card.host,
            card.kind,
            card.total_gb,
            tuple(_points(card, reading, steps)),
        )
        for card in cards
    )


def _order(card: Card) -> tuple[str, bool, int, int]:
    return (
        card.host,
        card.rank is None and card.gpu is None,
        card.rank if card.rank is not None else card.gpu or 0,
        card.pid,
    )


def name_of(card: Card) -> str:
    """Its rank where that is known, else the name that the log gives it."""
    return f"rank {card.rank}" if card.rank is not None else card.name or card.source.rpartition("/")[2]


def label_of(card: Card, words: Words) -> str:
    """The name with its host."""
    named = words("rank {rank}", rank=card.rank) if card.rank is not None else name_of(card)
    return f"{named} {card.host}" if card.host else named


def at_steps(points: Points, card: Card, reading: Reading, steps: Steps) -> list[At]:
    """Points with their steps; a file that shows no steps is laid along them in its order.

    So is what is told once a step: Ray prints the lines of several steps of a process together.
    """
    is_regular = points.count >= LASTING and abs(points.count - len(steps)) <= len(steps) // 50
    if not is_regular and (card.source in reading.step_sources or not reading.step_sources):
        last = steps.step[-1] if len(steps) else 0
        return [At(min(step, last), gb) for step, gb in zip(points.at, points.gb, strict=True)]
    count = len(steps)
    if not count or points.count == 1:
        return [At(0, gb) for gb in points.gb]
    stretch = 1.0 if abs(points.count - count) <= max(3, count // 50) else count / points.count
    return [At(steps.step[min(count - 1, int(i * points.every * stretch))], gb) for i, gb in enumerate(points.gb)]


def _points(card: Card, reading: Reading, steps: Steps) -> Iterator[MemoryPoint]:
    most: dict[int, tuple[float, str]] = {}
    for head, points in card.heads.items():
        for step, gb in at_steps(points, card, reading, steps):
            if step not in most or gb > most[step][0]:
                most[step] = gb, head
    every = max(1, -(-len(most) // SHOWN))
    ordered = sorted(most)
    for i in range(0, len(ordered), every):
        step = max(ordered[i : i + every], key=lambda s: most[s][0])
        yield MemoryPoint(step, *most[step])


def unequal(reading: Reading, steps: Steps, words: Words) -> Iterator[Finding]:
    """Cards that hold more than the others at the same moment of a step."""
    cards = sorted(reading.cards.known(), key=_order)
    worst: tuple[float, Finding] | None = None
    for head in dict.fromkeys(head for card in cards for head in card.heads):
        held = [(card, at_steps(card.heads[head], card, reading, steps)) for card in cards if head in card.heads]
        found = _of_moment(head, held, words) if len(held) > 1 else None
        if found is not None and (worst is None or found[0] > worst[0]):
            worst = found
    if worst is not None:
        yield worst[1]


def _of_moment(head: str, held: Sequence[tuple[Card, Sequence[At]]], words: Words) -> tuple[float, Finding] | None:
    """The card that is farthest above the others' median in the last steps that all of them show."""
    by_step: dict[int, dict[int, float]] = {}
    for i, (_, points) in enumerate(held):
        for step, gb in points:
            by_step.setdefault(step, {})[i] = gb
    common = sorted(step for step, cards in by_step.items() if len(cards) == len(held))
    if not common:
        return None
    last = by_step[common[-1]]
    who = max(last, key=last.__getitem__)

    def above(step: int) -> float:
        cards = by_step[step]
        return cards[who] - median([gb for i, gb in cards.items() if i != who])

    excess = above(common[-1])
    card, total = held[who][0], max((c.total_gb or 0.0 for c, _ in held), default=0.0)
    if excess <= REMARK_GB:
        return None
    alert = max(ALERT_GB, ALERT_SHARE * total)
    lasts = all(above(step) > alert for step in common[-LASTING:])
    is_alert = excess > alert and lasts
    usual = [gb for gb in map(above, common) if gb <= alert]
    has_left = is_alert and len(usual) >= LASTING
    begun = (median(usual) + alert) / 2 if has_left else alert / 2 if is_alert else REMARK_GB
    since = common[-1]
    for step in reversed(common):
        if above(step) <= begun:
            break
        since = step
    name = label_of(card, words)
    cause = _LEFT if has_left else _APART if is_alert else _LITTLE
    others = state("the other cards' median") if len(held) > FEW else state("the other card")
    return excess, Finding(
        ACCUMULATES if has_left else "memory_unequal",
        "memory",
        "warning" if is_alert else "info",
        "certain" if len(common) >= LASTING else "likely",
        words("{card} holds {gb} GB, the others {others} GB", card=name, gb=f"{last[who]:.1f}",
              others=f"{last[who] - excess:.1f}"),
        words("{card} is {excess} GB over {others} ({moment}, {kind}) since step {since}: {why}.",
              card=name, excess=f"{excess:.1f}", others=others,
              moment=head or state("any time"), kind=state(card.kind), since=since, why=state(cause)),
        tuple(
            words("{card}: {gb} GB at step {step}", card=label_of(held[i][0], words), gb=f"{gb:.1f}", step=common[-1])
            for i, gb in sorted(last.items())
        )[:16],
        "gen" if "rollout" in head or "generat" in head else "",
        since,
    )  # fmt: skip


def growing(reading: Reading, steps: Steps, words: Words) -> Iterator[Finding]:
    """Cards that hold ever more at the same moment of a step, and cards that are nearly full."""
    fullest: tuple[float, Card, At] | None = None
    grown: tuple[float, Card, str, At, At] | None = None
    for card in reading.cards.known():
        for head, points in card.heads.items():
            held = at_steps(points, card, reading, steps)
            if card.total_gb:
                top = max(held, key=lambda at: at.gb)
                if fullest is None or top.gb / card.total_gb > fullest[0]:
                    fullest = top.gb / card.total_gb, card, top
            more = _growth(held)
            if more is not None and (grown is None or more[0] > grown[0]):
                grown = more[0], card, head, more[1], more[2]
    if grown is not None:
        yield _grown(*grown, words)
    if fullest is not None and fullest[0] >= NEARLY_FULL:
        share, card, top = fullest
        yield Finding("memory_high", "memory", "warning", "certain",
            words("{card} is {share} full", card=label_of(card, words), share=f"{share:.0%}"),
            words("{gb} of {total} GB at step {step}: a longer batch may be one too many.", gb=f"{top.gb:.1f}",
                  total=f"{card.total_gb:.0f}", step=top.step), step=top.step)  # fmt: skip


def _grown(by: float, card: Card, head: str, first: At, last: At, words: Words) -> Finding:
    name = label_of(card, words)
    return Finding("memory_growing", "memory", "warning", "likely",
        words("memory of {card} has grown by {by} GB", card=name, by=f"{by:.1f}"),
        words("{card} held {first} GB at step {a} and {last} GB at step {b} ({moment}).", card=name, a=first.step,
              b=last.step, first=f"{first.gb:.1f}", last=f"{last.gb:.1f}", moment=head or state("any time")),
        step=first.step)  # fmt: skip


def _growth(held: Sequence[At]) -> tuple[float, At, At] | None:
    """By how much the last tenth is above the first tenth, where no step between is far above the last."""
    tenth = len(held) // 10
    if tenth < LASTING:
        return None
    first, last = (median([at.gb for at in part]) for part in (held[:tenth], held[-tenth:]))
    return (last - first, held[0], held[-1]) if last - first > GROWTH_GB else None
