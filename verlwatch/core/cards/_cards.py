"""The GPUs of one run: samples and log lines in, what rules see of the cards out.

`Cards.hear` takes events (`gpu_sample`, `gpu_fault`, `gpu_source`; of logs `gpu_memory`, `rank`, `checkpoint`,
`validation`), `stepped` each step of the run, `tick` the time that passes.  What holds is asked for with `view`, which
`MEMORY_RULES` read.

**Invariant:** samples are lossy.  None is waited for longer than a few periods, those that come later are counted, and
a restart goes on from what was known about a minute before (`state`, at most 256 bytes a card and little for a group).
Method: `_offset` (one card against its peers), `_instants`, `_rows`, `_groups`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median, median_low
from typing import Any

from verlwatch.core.cards._card import Card, Key, finite
from verlwatch.core.cards._faults import Faults
from verlwatch.core.cards._groups import Groups, Patterns, is_lone
from verlwatch.core.cards._idle import Usage
from verlwatch.core.cards._instants import AHEAD_S, Instants
from verlwatch.core.cards._offset import SOON, Pair
from verlwatch.core.cards._openings import Openings
from verlwatch.core.cards._rows import Reading, Rows
from verlwatch.core.cards._smi import SmiRows
from verlwatch.core.cards._view import not_compared, table_of, view_of
from verlwatch.core.rules import MEMORY_RULES, MemoryView, asked
from verlwatch.core.types import Diagnosis, Event

STATE_VERSION = 1
CHECKPOINT_S = 60.0
PACE_S = 8.0
"""Instants nearer to each other are not all judged: cards change phase up to 5 s apart."""
MOST_INSTANTS = 12
"""A window is a step, but not fewer instants than tell something; so many where no steps come."""
FORGET_S = 3600.0
MISSING_PERIODS = 9
MAX_CARDS, MAX_SOURCES = 4096, 16
HEARD = frozenset({"gpu_sample", "gpu_memory", "gpu_fault", "gpu_source", "rank", "checkpoint", "validation"})
_LATE_STEPS, _SAMPLED_S, _BUSY_S = 3.0, 600.0, 3600.0


class Cards(Openings):
    """All that is known of one run's cards.  ``groups`` are those that the configuration names (see `Groups`)."""

    def __init__(self, run: str, groups: Patterns = ()) -> None:
        super().__init__()
        self.run = run
        self.cards: dict[Key, Card] = {}
        self.sources: dict[str, int] = {}
        """What samples come from (nvml, nvidia-smi, log …), and how many cards each tells of."""
        self.known_ranks: dict[int, str] = {}
        """By pid."""
        self.is_timed = True
        """Whether ``now`` is when things arrive."""
        self.groups = Groups(groups)
        self.faults = Faults()
        self.usage = Usage()
        self._instants: Instants[Key] = Instants()
        self._rows, self._smi = Rows(), SmiRows()
        self._judged_at = self._sampled_at = self._saved_at = float("-inf")
        self._busy_since: float | None = None
        self._gone, self._by_log = 0, False
        self.troubles: dict[str, str] = {}
        """Rule that raises -> why."""
        self._stepped_at: float | None = None
        self._step_s: deque[float] = deque(maxlen=9)

    # ------------------------------------------------------------------------------------------------ in
    def hear(self, event: Event, step: int, now: float) -> bool:
        """Takes an event; ``step`` is the last one printed (-1: none).  False: it is none of GPUs."""
        if event.name not in HEARD:
            return False
        self._step = max(self._step, step)
        match event.name:
            case "gpu_sample":
                self._sample(event, now)
            case "gpu_memory":
                if now - self._sampled_at > _SAMPLED_S:
                    self._log(list(self._rows.hear(event, self._step, now if self.is_timed else 0.0)), now)
            case "gpu_fault":
                scope = dict(event.scope)
                self.faults.hear(event, self.cards.get((scope.get("host", ""), scope.get("gpu", ""))), self._step, now)
                self.changed = True
            case "gpu_source":
                self._source(event.attributes)
            case "rank":
                self._rank(event)
            case "checkpoint" | "validation":
                self._busy_since = None if event.attributes.get("what") == "generated" else now
        return True

    def stepped(self, step: int, now: float, seconds: Mapping[str, float]) -> None:
        """A step has ended: ``seconds`` are its judged phases, as `steps.read` gives them."""
        follows = self.is_timed and self._stepped_at is not None and step > self._step
        took = now - (self._stepped_at or 0.0) if follows else 0.0
        steps = max(1, step - self._step) if self._step >= 0 else 1
        long_s = took / steps if took > 0.0 else seconds.get("step", 0.0)
        if long_s > 0.0:
            self._step_s.append(long_s)
        self._step, self._stepped_at, self._busy_since = step, now, None
        self._judge(now)
        members = self.members()
        self._close(members, self._enough)
        self.usage.step(step, now, seconds, members)
        for number, cards in members.items():
            peaks = [card.peak for card in cards if card.peak > 0.0]
            if peaks:
                self.groups.all[number].peaks.append((step, median(peaks)))
            self.groups.all[number].stepped()
            for card in cards:
                card.last_peak, card.peak = card.peak, card.used or 0.0
                self._accept(card)

    def tick(self, now: float) -> None:
        """Lets time pass: instants that a host left open, cards that are gone."""
        if self.is_timed and not self._by_log and self._instants.turn(now):
            self._judged_at = float("-inf")
            for card in self.cards.values():
                card.at = None
        self._judge(now)
        for key, _ in self._instants.lost(int(FORGET_S / self._instants.period)):
            self._forget(key)

    def _forget(self, key: Key) -> None:
        self._instants.forget(key)
        self.faults.forget(key)
        self.cards.pop(key, None)

    def _has_room(self, now: float) -> bool:
        """Whether one card more can be taken; one of which nothing was heard for long makes room."""
        if len(self.cards) < MAX_CARDS:
            return True
        longest = min(self.cards.values(), key=lambda card: card.at or 0.0)
        if now - (longest.at or 0.0) < FORGET_S:
            return False
        self._forget(longest.key)
        return True

    def tune(self, groups: Patterns) -> None:
        """Takes other configured groups."""
        self._regrouped(self.groups.configure(groups, self.cards.values()))

    def begin(self) -> None:
        """Another attempt: processes and their memory are new, cards and their groups are not."""
        self._rows.forget()
        self.usage.forget()
        self.known_ranks.clear()
        self._step, self._stepped_at, self._busy_since = -1, None, None
        for key, card in list(self.cards.items()):
            if card.offset.exact:
                del self.cards[key]
                continue
            card.begin()
        self.groups.begin()
        self.changed = True

    # ------------------------------------------------------------------------------------------------ out
    @property
    def can_compare(self) -> bool:
        """Whether any card has peers that are seen at the same instants; `not_compared` says why none has."""
        return any(len(cards) > 1 for cards in self.members().values())

    @property
    def not_compared(self) -> str:
        """Why ranks cannot be compared, and what to switch on; empty where they are."""
        return "" if self.can_compare else not_compared(bool(self.cards), self._rows.processes)

    @property
    def late(self) -> int:
        """Samples that came too late to be compared."""
        return self._instants.late

    @property
    def step_s(self) -> float | None:
        """Seconds of a step, None before one is known."""
        return median(self._step_s) if self._step_s else None

    @property
    def _enough(self) -> int:
        """Instants of a window at least: steps nearly as short as the time between two are seen at one place only."""
        step_s = self.step_s
        return SOON if step_s is None or step_s >= 1.5 * max(PACE_S, self._instants.period) else MOST_INSTANTS

    def view(self, step: int, now: float, told: frozenset[str] = frozenset()) -> MemoryView:
        """What the rules see; ``told`` are the subjects of open incidents."""
        return view_of(self, step, now, told)

    def diagnose(self, step: int, now: float, told: frozenset[str] = frozenset()) -> tuple[Diagnosis, ...]:
        """What holds of the cards, by every rule."""
        self.changed = False
        return tuple(asked(MEMORY_RULES, self.view(step, now, told), self.troubles))

    def members(self) -> dict[int, list[Card]]:
        """Cards by group."""
        return self.groups.of(self.cards.values())

    def lost(self) -> list[tuple[Key, float]]:
        """Cards that their host leaves out, and their last instant."""
        return self._instants.lost(MISSING_PERIODS)

    def table(self) -> list[dict[str, Any]]:
        """One row for each card, for eyes: what is unknown is None (see `_view.table_of`)."""
        return table_of(self)

    # ------------------------------------------------------------------------------------------------ state
    def due(self, now: float) -> bool:
        """Whether it is time to keep the state again; asking says that it is done."""
        if not self.cards or 0.0 <= now - self._saved_at < CHECKPOINT_S:
            return False
        self._saved_at = now
        return True

    def state(self) -> dict[str, Any]:
        """JSON-safe; what is in the windows is not kept, it comes again."""
        return {
            "cards": [card.state() for card in self.cards.values()],
            "groups": self.groups.state(),
            "faults": self.faults.state(),
            "sources": self.sources,
            "step_s": [round(value, 2) for value in self._step_s],
            "step": self._step,
            "by_log": self._by_log,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self.cards = {card.key: card for card in map(Card.from_state, data["cards"])}
        self.groups.restore(data["groups"])
        self.faults.restore(data["faults"])
        self.sources = dict(data["sources"])
        self._step_s.extend(data["step_s"])
        self._step, self._by_log = data["step"], data["by_log"]

    # ------------------------------------------------------------------------------------------------ samples
    def _source(self, said: Mapping[str, str | int | float]) -> None:
        name, cards = str(said.get("source", "")), said.get("cards")
        if name in self.sources or len(self.sources) < MAX_SOURCES:
            self.sources[name] = cards if isinstance(cards, int) else 0

    def _sample(self, event: Event, now: float) -> None:
        """A sample of a card; rows of nvidia-smi in a log count while nobody samples."""
        scope, said, at = dict(event.scope), event.attributes, event.at
        key = (scope.get("host", ""), scope.get("gpu", ""))
        if "gpu" not in scope:
            place = self._smi.place(event, now) if now - self._sampled_at > _SAMPLED_S else None
            if place is None:
                return
            key, at, self._by_log = place[:2], place[2], True
        else:
            if self._by_log:  # what logs told of the same cards is not compared any more
                self.cards, self._instants, self._by_log = {}, Instants(), False
            self._sampled_at = now
            if self.is_timed and at is not None and at > now + AHEAD_S:
                return
        if at is None or (key not in self.cards and not self._has_room(now)):
            return
        card = self.cards.get(key) or self.cards.setdefault(key, Card(key))
        value = finite(said, "used_gb")
        at = self._instants.add(key, at, value, now)
        if at is not None and (card.at is None or at > card.at):
            card.take(at, value, said, self.known_ranks)
            self.faults.see(card, self._step, now)
        self._judge(now)

    def _judge(self, now: float) -> None:
        for at, values in self._instants.ready(now):
            if at - self._judged_at < PACE_S:
                continue
            self._judged_at = at
            busy = self._busy_since is not None and 0.0 <= now - self._busy_since < _BUSY_S
            members = self.members()
            for number, cards in members.items():
                present = [card for card in cards if card.key in values]
                self.groups.all[number].see({card.key: values[card.key] for card in present})
                if len(present) > 1:
                    self._compare(number, present, values, at, busy=busy)
                for card in present:
                    card.strip.append(values[card.key])
            gone = len(self.lost())
            self.changed, self._gone = self.changed or gone != self._gone, gone
            if self._stepped_at is None or now - self._stepped_at > _LATE_STEPS * (self.step_s or 0.0):
                self._close(members, MOST_INSTANTS)

    def _compare(self, number: int, cards: Sequence[Card], used: Mapping[Key, float], at: float, *, busy: bool) -> None:
        values = [used[card.key] for card in cards]
        middle = median_low(values)  # one that a card held: of two phases there is no mean
        step = self._step + 1 if self._step >= 0 else 0
        found = []
        for i, card in enumerate(cards):
            card.peers = values[1 - i] if len(values) == 2 else middle  # noqa: PLR2004
            if busy:  # rank 0 gathers a checkpoint: what it holds then is no news
                continue
            card.offset.see(Pair(at, step, values[i], card.peers))
            change = card.offset.soon(card.limit, self._enough)
            if change is not None and (len(cards) > 2 or values[i] > card.peers):  # noqa: PLR2004
                found.append((card, change))
        known = self.groups.all[number].known
        for card, change in found:
            if known or (self._enough == SOON and is_lone(card, cards)):
                self._open(card, change, self._enough)

    def _close(self, members: Mapping[int, Sequence[Card]], least: int) -> None:
        """Ends the windows that have so many instants."""
        for number, cards in members.items():
            exact, known = cards[0].offset.exact, self.groups.all[number].known
            for card in cards:
                if card.offset.window(1 if exact else least):
                    self._point(card, tells=exact or known, of_two=len(cards) == 2)  # noqa: PLR2004
            if exact:
                continue
            self._regrouped(self.groups.part(cards))

    # ------------------------------------------------------------------------------------------------ logs
    def _rank(self, event: Event) -> None:
        rank, writer = event.attributes.get("rank"), event.origin.writer
        if not isinstance(rank, int) or not writer.pid:
            return
        if writer.pid in self.known_ranks or len(self.known_ranks) < MAX_CARDS:
            self.known_ranks[writer.pid] = str(rank)
        card = self.cards.get((writer.ip, f"pid {writer.pid}"))
        if card is not None:
            card.rank = str(rank)

    def _log(self, readings: Sequence[Reading], now: float) -> None:
        for reading in readings:
            card = self.cards.get(reading.key)
            if card is None and not self._has_room(now):
                continue
            if card is None:
                card = self.cards[reading.key] = Card(reading.key, exact=True)
                card.rank = self.known_ranks.get(reading.pid)
            if card.offset.trail and reading.x != card.offset.trail[-1].x and card.offset.window(1):
                self._point(card)
            card.read(reading, now)
            instants = 1 if reading.at_once else SOON
            change = card.offset.soon(card.limit, instants)
            if change is not None:
                self._open(card, change, instants)
        if readings:
            self._by_log, self.sources["log"] = True, len(self.cards)
