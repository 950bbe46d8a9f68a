"""How busy cards are, and in which phase they are not.

A step's seconds tell when in it each phase was: they follow one another, validation and checkpoint last, and the step
ends when its line arrives.  Samples of validation and saving do not count: cards may rest then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median

from verlwatch.core.cards._card import Card
from verlwatch.core.phases import PHASES
from verlwatch.core.rules import Idle

OVER_S, OVER_STEPS = 600.0, 5
"""So long at least a card must have been idle on the whole."""
BUSY = 50.0
"""Percent under which a card counts as idle."""
STILL_IDLE = 55.0
_PEERS_BUSY = 70.0
_KEPT = 60
_FADE = 0.9
_APART = frozenset(phase.name for phase in PHASES if phase.apart)
_SLACK_S = 3.0

Window = tuple[int, float, float]
"""Step, its seconds, mean utilisation."""


class Usage:
    """Utilisation of the cards of one run, step by step."""

    def __init__(self) -> None:
        self._cards: dict[tuple[str, str], deque[Window]] = {}
        self._groups: dict[int, deque[Window]] = {}
        self._phases: dict[int, dict[str, list[float]]] = {}

    def step(self, step: int, now: float, seconds: Mapping[str, float], members: Mapping[int, Sequence[Card]]) -> None:
        """A step has ended at ``now``: places the samples since the one before in its phases."""
        spans = _spans(now, seconds)
        long_s = sum(end - begin for begin, end, name in spans if name not in _APART)
        for number, cards in members.items():
            phases = self._phases.setdefault(number, {})
            for sums in phases.values():
                sums[:] = [_FADE * value for value in sums]
            means = []
            for card in cards:
                mean = _mean(card, spans, phases)
                if mean is not None:
                    means.append(mean)
                    self._cards.setdefault(card.key, deque(maxlen=_KEPT)).append((step, long_s, mean))
            if means:
                self._groups.setdefault(number, deque(maxlen=_KEPT)).append((step, long_s, median(means)))
        keys = {card.key for cards in members.values() for card in cards}
        self._cards = {key: windows for key, windows in self._cards.items() if key in keys}
        self._groups = {number: windows for number, windows in self._groups.items() if number in members}
        self._phases = {number: phases for number, phases in self._phases.items() if number in members}
        for cards in members.values():
            for card in cards:
                card.utilizations.clear()

    def idle(self, members: Mapping[int, Sequence[Card]], told: frozenset[str]) -> tuple[Idle, ...]:
        """Groups that are idle as a whole, and single cards that are while their group is busy."""
        found: list[Idle] = []
        for number, cards in members.items():
            group = _lately(self._groups.get(number, ()))
            if group is None:
                continue
            onset, over_s, mean = group
            phases = _by_phase(self._phases.get(number, {}))
            if mean < (STILL_IDLE if any(name.startswith("gpu idle") for name in told) else BUSY):
                hosts = dict.fromkeys(("host", card.host) for card in cards if card.host)
                found.append(Idle("", tuple(hosts), onset, mean, None, over_s, phases))
            elif mean >= _PEERS_BUSY:
                for card in cards:
                    alone = _lately(self._cards.get(card.key, ()))
                    if alone is not None and alone[2] < BUSY:
                        subject = f"idle {card.label}"
                        found.append(Idle(subject, card.scope, alone[0], alone[2], mean, alone[1], ()))
        return tuple(found)

    def forget(self) -> None:
        """Another attempt."""
        self.__init__()  # type: ignore[misc]


def _spans(now: float, seconds: Mapping[str, float]) -> list[tuple[float, float, str]]:
    """When each phase was, from the end backwards; validation and checkpoint come last."""
    inner = [(p.name, seconds[p.name]) for p in PHASES if p.name in seconds and not p.apart]
    apart = [(p.name, seconds[p.name]) for p in PHASES if p.name in seconds and p.apart]
    rest = seconds.get("step", 0.0) - sum(value for _, value in inner)
    order = [*inner, *([("", rest)] if rest > 0.0 else []), *apart]
    spans, end = [], now
    for name, value in reversed(order):
        spans.append((end - value, end, name))
        end -= value
    return spans


def _mean(card: Card, spans: Sequence[tuple[float, float, str]], phases: dict[str, list[float]]) -> float | None:
    """Mean utilisation of a card in this step's training; None where no sample tells."""
    apart = [(begin, end) for begin, end, name in spans if name in _APART]
    kept = []
    for at, value in card.utilizations:
        if any(begin - _SLACK_S <= at <= end + _SLACK_S for begin, end in apart):
            continue
        kept.append(value)
        name = next((name for begin, end, name in spans if begin < at <= end), None)
        if name:
            sums = phases.setdefault(name, [0.0, 0.0])
            sums[0] += 1.0
            sums[1] += value
    return sum(kept) / len(kept) if kept else None


def _lately(windows: Sequence[Window]) -> tuple[int, float, float] | None:
    """First step, seconds and mean of the last steps that are long enough together; None before there are."""
    over_s = total = 0.0
    for count, (step, seconds, mean) in enumerate(reversed(windows), 1):
        over_s += seconds
        total += seconds * mean
        if count >= OVER_STEPS and over_s >= OVER_S:
            return step, over_s, total / over_s
    return None


def _by_phase(sums: Mapping[str, Sequence[float]]) -> tuple[tuple[str, float, float], ...]:
    """Phases by what they waste, the worst first."""
    samples = sum(count for count, _ in sums.values())
    rows = [(name, total / count, count / samples) for name, (count, total) in sums.items() if count > 0.0]
    return tuple(sorted(rows, key=lambda row: (row[1] - 100.0) * row[2]))
