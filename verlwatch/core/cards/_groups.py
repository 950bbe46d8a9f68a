"""Which cards are compared with each other: those that do the same work.

Cards of one configured group, or of one size, begin as a group.  Known actors part it: a card of a critic is no peer of
one that runs the policy.  Where actors do not tell, memory does, once the cards have been seen over a few steps:

* Cards that go up and down together belong together (`alike`); a pool that moves at other times, or stands still, is
  another group.
* Of those, two cards or more that agree with each other and are far from the rest are another pool as well, as the
  stages of a pipeline are.  A single one is what is to be told.

Until then only a single card that is far from all others is told.  Later a card's group stays what it is: what leaves
it is to be told.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from math import sqrt
from statistics import median
from typing import NamedTuple

from verlwatch.core.cards._card import Card, Key

LEARN_STEPS, LEARN_INSTANTS = 3, 20
FEW = 16
"""So many groups may be without cards until they are forgotten."""
_KEPT = 48
_LONG = 60
"""Instants after which it is learned without steps."""
_GAP_GB, _GAP_SHARE = 4.0, 0.1
_TOGETHER, _ODD_PLACES, _ODD_GB, _ODD_SHARE = 0.6, 0.25, 2.0, 0.1
_ASKED = 6
"""So many cards of a pool are compared with one more: jitter makes one of them look strange."""
_UNUSED_GB = 1.0
_NEAR = 0.5

Patterns = Sequence[tuple[str, Sequence[str]]]
"""Name of a group -> patterns of its cards, as ``node-3:*`` or ``*:7`` (host:gpu)."""


class Group:
    """Cards that are compared; ``known``: that they do the same work has been seen, or is configured."""

    def __init__(self, number: int, name: str = "") -> None:
        self.number = number
        self.name = name
        self.known = bool(name)
        self.peaks: deque[tuple[int, float]] = deque(maxlen=24)
        """Step, and the most that its cards held in it (the median of them)."""
        self._seen: list[dict[Key, float]] = []
        self._stride, self._instants, self._steps = 1, 0, 0

    def see(self, values: Mapping[Key, float]) -> None:
        """An instant, while it is being learned; thinned out where steps are long."""
        if self.known:
            return
        if self._instants % self._stride == 0:
            self._seen.append(dict(values))
        self._instants += 1
        if len(self._seen) >= _KEPT:
            self._seen, self._stride = self._seen[::2], 2 * self._stride

    def stepped(self) -> None:
        """A step has gone by."""
        self._steps += 1

    @property
    def is_learned(self) -> bool:
        """Whether enough was seen to tell who does the same work."""
        enough = self._steps >= LEARN_STEPS or (not self._steps and self._instants >= _LONG)
        return not self.known and enough and len(self._seen) >= LEARN_INSTANTS

    def pools(self, members: Sequence[Card]) -> list[list[Card]]:
        """The cards that do the same work, the largest pool first; what was seen is let go."""
        seen, self._seen, self.known = self._seen, [], True
        rows = {card.key: [values.get(card.key) for values in seen] for card in members}
        pools: list[list[Card]] = []
        for card in members:
            mine = rows[card.key]
            fitting = [pool for pool in pools if any(alike(mine, rows[peer.key]) for peer in pool[:_ASKED])]
            pools = [pool for pool in pools if pool not in fitting]
            pools.append([*(peer for pool in fitting for peer in pool), card])
        return sorted((part for pool in pools for part in _levels(pool, rows)), key=len, reverse=True)


class Groups:
    """The groups of one run."""

    def __init__(self, patterns: Patterns = ()) -> None:
        self.all: dict[int, Group] = {}
        self._patterns = patterns
        self._next = 0

    def of(self, cards: Iterable[Card]) -> dict[int, list[Card]]:
        """Members by group; a card that holds nothing, and never did beside others, belongs to none."""
        members: dict[int, list[Card]] = defaultdict(list)
        kinds: Counter[_Kind] | None = None
        for card in cards:
            if card.group < 0 and (card.used or 0.0) < _UNUSED_GB:
                continue
            if card.group not in self.all:
                if kinds is None:
                    kinds = Counter(map(_kind, (other for other in cards if other.group in self.all)))
                card.group = self._place(card, kinds).number
                kinds[_kind(card)] += 1
            members[card.group].append(card)
        if len(self.all) > 2 * len(members) + FEW:
            self.all = {number: group for number, group in self.all.items() if number in members or group.name}
        return members

    def part(self, members: Sequence[Card]) -> list[Card]:
        """Parts a group where actors, or what was seen of it, tell of several; the cards whose peers are others now."""
        group = self.all[members[0].group]
        if group.name:
            return []
        pools = _by_actor(members)
        if len(pools) > 1:
            pools.sort(key=len, reverse=True)
        elif group.is_learned:
            pools = group.pools(members)
        else:
            return []
        for pool in pools[1:]:
            new = self._begin()
            new.known = group.known
            for card in pool:
                card.group = new.number
        return list(members) if len(pools) > 1 else []

    def configure(self, patterns: Patterns, cards: Iterable[Card]) -> list[Card]:
        """Takes other patterns; the cards that are of another group by them are placed anew."""
        self._patterns = patterns
        moved = [
            card for card in cards if card.group in self.all and self.all[card.group].name != self._configured(card)
        ]
        for card in moved:
            card.group = -1
        return moved

    def begin(self) -> None:
        """Another attempt: what the cards do is to be learned anew."""
        names = {number: group.name for number, group in self.all.items()}
        self.all = {number: Group(number, name) for number, name in names.items()}

    def label(self, members: Sequence[Card]) -> str:
        """The configured name, the actor all share, or how many they are."""
        name = self.all[members[0].group].name
        actors = {card.actor for card in members}
        actor = actors.pop() if len(actors) == 1 else None
        return name or actor or f"{len(members)} cards"

    def state(self) -> dict[str, list[str | int]]:
        """JSON-safe; the inverse of `restore`."""
        return {str(number): [group.name, int(group.known)] for number, group in self.all.items()}

    def restore(self, data: Mapping[str, Sequence[str | int]]) -> None:
        """The inverse of `state`; what a group that was still learned had seen is gone."""
        for number, (name, known) in data.items():
            group = self.all[int(number)] = Group(int(number), str(name))
            group.known = bool(known)
            self._next = max(self._next, int(number) + 1)

    def _place(self, card: Card, kinds: Mapping[_Kind, int]) -> Group:
        """Its group: of those that have cards like it the one that has most of them.  A look at each would be long."""
        name = self._configured(card)
        if name:
            return next((g for g in self.all.values() if g.name == name), None) or self._begin(name)
        peers: Counter[int] = Counter()
        for kind, count in kinds.items():
            if not self.all[kind.group].name and _are_peers(kind, _kind(card)):
                peers[kind.group] += count
        return self.all[peers.most_common(1)[0][0]] if peers else self._begin()

    def _configured(self, card: Card) -> str:
        place = ":".join(card.key)
        return next((name for name, patterns in self._patterns if any(fnmatchcase(place, p) for p in patterns)), "")

    def _begin(self, name: str = "") -> Group:
        group = self.all[self._next] = Group(self._next, name)
        self._next += 1
        return group


Row = Sequence[float | None]


def alike(one: Row, other: Row) -> bool:
    """Whether two cards go up and down together, or hold rows of the same shape whatever lies between them."""
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    if len(both) < LEARN_INSTANTS // 2:
        return True
    mine, theirs = [a for a, _ in both], [b for _, b in both]
    return _correlation(mine, theirs) >= _TOGETHER or _same_shape(sorted(mine), sorted(theirs))


def _same_shape(mine: Sequence[float], theirs: Sequence[float]) -> bool:
    apart = [a - b for a, b in zip(mine, theirs, strict=True)]
    middle = median(apart)
    most = max(_ODD_GB, _ODD_SHARE * (theirs[-1] - theirs[0]))
    return sum(abs(value - middle) > most for value in apart) <= _ODD_PLACES * len(apart)


def _correlation(mine: Sequence[float], theirs: Sequence[float]) -> float:
    a0, b0 = sum(mine) / len(mine), sum(theirs) / len(theirs)
    aa, bb = sum((a - a0) ** 2 for a in mine), sum((b - b0) ** 2 for b in theirs)
    if min(aa, bb) < len(mine) * _ODD_GB**2:  # they stand still
        return 0.0
    return sum((a - a0) * (b - b0) for a, b in zip(mine, theirs, strict=True)) / sqrt(aa * bb)


def _levels(pool: list[Card], rows: Mapping[Key, Row]) -> list[list[Card]]:
    """Parts a pool at the widest gap between its cards' levels, if there are two cards or more on each side."""
    known = {card.key: [value for value in rows[card.key] if value is not None] for card in pool}
    ranked = sorted(pool, key=lambda card: _middle(known[card.key]))
    levels = [_middle(known[card.key]) for card in ranked]
    gaps = [(levels[i + 1] - levels[i], i + 1) for i in range(1, len(levels) - 2)]
    if not gaps:
        return [pool]
    gap, at = max(gaps)
    spread = max(levels[at - 1] - levels[0], levels[-1] - levels[at])
    total = max(card.total or 0.0 for card in pool)
    if gap < max(_GAP_GB, _GAP_SHARE * total) or spread > gap / 2:
        return [pool]
    return [ranked[:at], ranked[at:]]


def _middle(values: Sequence[float]) -> float:
    """The mean: how often a card was up differs little, and there is no level between its phases."""
    return sum(values) / len(values) if values else 0.0


def _by_actor(members: Sequence[Card]) -> list[list[Card]]:
    """Cards by what runs on them, as far as it is known; an actor in common makes them one pool."""
    pools: list[tuple[set[str], list[Card]]] = []
    for card in members:
        if card.actor is None:
            continue
        actors, cards = set(card.actor.split(",")), [card]
        for pool in [pool for pool in pools if pool[0] & actors]:
            pools.remove(pool)
            actors, cards = actors | pool[0], [*pool[1], *cards]
        pools.append((actors, cards))
    return [cards for _, cards in pools]


class _Kind(NamedTuple):
    """What cards have in common that may be peers, and the group that they are of."""

    group: int
    actor: str | None
    total_gb: int
    exact: bool


def _kind(card: Card) -> _Kind:
    return _Kind(card.group, card.actor, round(card.total or 0.0), card.offset.exact)


def _share_work(one: _Kind, other: _Kind) -> bool:
    if one.actor is None or other.actor is None:
        return True
    return not set(one.actor.split(",")).isdisjoint(other.actor.split(","))


def _are_peers(one: _Kind, other: _Kind) -> bool:
    return _share_work(one, other) and one[2:] == other[2:]


def is_lone(card: Card, cards: Sequence[Card]) -> bool:
    """Whether a card is far from all others, which are near each other."""
    return all(abs(other.offset.lately()) < _NEAR * card.limit for other in cards if other is not card)
