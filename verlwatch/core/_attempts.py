"""Which attempt of a run a step belongs to, and whether it has been seen before.

A run is started, dies, resumes; console and JSONL tell the same steps in two places, one ahead of the other.  Each
writer of each source is followed by itself.  It *restarts* with a new generation (truncated file), as a new process in
the same source, with a resume line of its own, or with steps that go back.  Its first step with timing then decides, by
comparing with the attempts that are known:

* equal phase seconds (at the coarser precision): the same step seen again, so the writer belongs to that attempt; if
  its source has just left the current one by a restart, that attempt is the later of the two, whoever told it first;
* other seconds at a known step: a new attempt;
* a step not known yet: it continues the attempt, unless the writer restarted and nobody else has opened a new one.

Two attempts never have equal seconds in every phase, so these few numbers suffice; they are kept for RECALL steps.
Lines without timing (validation alone, other counters) move nothing.  A process that jumps ahead or goes back on its
own is believed when its next step goes on from there: one such line is model output or noise.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import isnan, nan
from typing import Any, NamedTuple

from verlwatch.core.phases import PHASES, STEP
from verlwatch.core.types import Writer

RECALL = 1024
FIRST = 16
"""The first steps of an attempt are kept as well: with them a log begins that is read later."""
MAX_ATTEMPTS = 8
SURE = 2
"""Steps after which a writer is known for one that tells of training."""
MAX_LEAP = 10_000
"""No run skips so many steps."""
MAX_VIEWS = 64
"""Writers that are followed; the one that has been there longest goes first."""
_SIGNED = (*(phase.name for phase in PHASES), STEP)
_COARSE = 0.00051  # half a unit of ``.3f``, and a little for binary fractions


class Place(NamedTuple):
    """Where a step belongs.

    ``current``: in the attempt that is the latest; ``began``: which begins with this step; ``echo``: another log, or
    the same one before, has told this step already.
    """

    attempt: int
    current: bool
    began: bool
    echo: bool


@dataclass(slots=True)
class _Attempt:
    number: int
    last_step: int = -1
    steps: dict[int, bytes] = field(default_factory=dict)
    """The seconds of its last steps, each as `_packed`: a log has thousands."""

    def matches(self, step: int, signature: array[float]) -> bool | None:
        """Whether ``step`` was seen with the same seconds; None when it cannot be told."""
        known = self.steps.get(step)
        if known is None:
            return None
        both = zip(_unpacked(known), signature, strict=True)
        pairs = [(a, b) for a, b in both if not (isnan(a) or isnan(b))]
        return all(abs(a - b) <= _COARSE for a, b in pairs) if pairs else None

    def remember(self, step: int, signature: array[float]) -> None:
        known = self.steps.get(step)
        if known is None:
            self.steps[step] = _packed(signature)
            if len(self.steps) > RECALL:
                del self.steps[next(islice(self.steps, FIRST, None))]  # the oldest of the others
        else:
            both = zip(_unpacked(known), signature, strict=True)
            self.steps[step] = _packed(array("d", [b if isnan(a) else a for a, b in both]))
        self.last_step = max(self.last_step, step)


@dataclass(slots=True)
class _View:
    """What one writer of a source has shown so far.  ``undecided`` until a step with timing tells its attempt.

    ``doubted`` is a step out of line that waits for the next one to go on from it, ``told`` counts those with timing.
    """

    generation: int
    last_step: int = -1
    attempt: int = 0
    undecided: bool = True
    restarted: bool = False
    doubted: int = -1
    told: int = 0


Voice = tuple[str, int, str]
"""Source, pid and ip: who speaks."""


class Attempts:
    """The attempts of one run, as far as they are still needed to place a step: the last MAX_ATTEMPTS."""

    def __init__(self) -> None:
        self._views: dict[Voice, _View] = {}
        self._resumed: dict[Voice, None] = {}
        """Who has said that training begins or goes on, and no step yet."""
        self._attempts: dict[int, _Attempt] = {1: _Attempt(1)}

    @property
    def current(self) -> int:
        """Number of the latest attempt; the first is 1."""
        return max(self._attempts)

    def restarted(self, source: str, writer: Writer) -> None:
        """A line of this very writer says that training has begun or resumed."""
        voice = (source, *writer[1:])
        view = self._views.get(voice)
        if view is None:
            self._resumed[voice] = None
            if len(self._resumed) > MAX_VIEWS:
                del self._resumed[next(iter(self._resumed))]
        elif view.last_step >= 0:
            view.undecided = view.restarted = True

    def place(
        self, source: str, generation: int, writer: Writer, step: int, seconds: Mapping[str, float]
    ) -> Place | None:
        """Finds the attempt of a step and remembers its seconds there; None if the line is not to be believed."""
        view = self._view(source, generation, writer, step)
        rival = 0 if view.told else self._rival(source, generation, writer)
        # where the trainer speaks with a prefix a line without one is somebody else's, and the reverse
        if rival and ((rival >= SURE and not writer.pid) or not self._goes_on(view, step)):
            return None
        if not seconds:
            number = self._presumed(view) if view.undecided else view.attempt
            return Place(number, number == self.current, began=False, echo=False)
        signature = _signature(seconds)
        if not view.undecided:
            back = self._goes_back(view, step, signature)
            if ((back and writer.pid) or step - view.last_step > MAX_LEAP) and not self._goes_on(view, step):
                return None
            view.restarted = back
            view.undecided = back or self._contradicts(view, step, signature)
        view.last_step, view.doubted = step, -1
        view.told += 1
        before = self.current
        if view.undecided:
            view.attempt = self._decide(view, step, signature)
            view.undecided = view.restarted = False
        attempt = self._attempts.get(view.attempt)
        began, echo = self.current > before, False
        if attempt is not None:
            began = began or (view.attempt == 1 and attempt.last_step < 0)
            echo = step in attempt.steps
            attempt.remember(step, signature)
        return Place(view.attempt, view.attempt == self.current, began, echo)

    def is_current(self, source: str, writer: Writer) -> bool:
        """Whether what ``writer`` says now in ``source`` is about the current attempt."""
        own = self._views.get((source, *writer[1:]))
        if own is None:  # another process is believed only while no trainer is known in this source
            return not (
                writer.pid and any(s == source and pid and known.told for (s, pid, _), known in self._views.items())
            )
        return own.attempt in {0, self.current}

    def is_past(self, source: str, writer: Writer) -> bool:
        """Whether ``writer`` has told the steps of an attempt that is over."""
        own = self._views.get((source, *writer[1:]))
        return own is not None and own.attempt not in {0, self.current}

    def _view(self, source: str, generation: int, writer: Writer, step: int) -> _View:
        voice = (source, *writer[1:])
        view = self._views.get(voice)
        if view is None:
            earlier = [known for (known_source, *_), known in self._views.items() if known_source == source]
            attempt = max((known.attempt for known in earlier), default=0)
            # training may go on in a log of its own, as with every job of a Ray session
            goes_on = voice in self._resumed and not earlier and self._attempts[self.current].last_step >= 0
            view = self._views[voice] = _View(generation, attempt=attempt, restarted=attempt > 0 or goes_on)
            self._resumed.pop(voice, None)
            if len(self._views) > MAX_VIEWS:
                del self._views[next(iter(self._views))]
        elif generation > view.generation:
            # the same process that goes on counting has had its log rotated; anything else began a new file
            if not (writer.pid and step > view.last_step):
                view.undecided = view.restarted = True
            view.generation = generation
        return view

    @staticmethod
    def _goes_on(view: _View, step: int) -> bool:
        """Whether a step out of line is believed: the one before was out of line too, and this one goes on from it."""
        believed = 0 <= view.doubted < step <= view.doubted + MAX_LEAP
        view.doubted = step
        return believed

    def _presumed(self, view: _View) -> int:
        """The attempt of a line without timing (validation before training) that comes before the decision."""
        return self.current + (view.restarted and view.attempt == self.current)

    def _goes_back(self, view: _View, step: int, signature: array[float]) -> bool:
        return step < view.last_step or (step == view.last_step and self._contradicts(view, step, signature))

    def _contradicts(self, view: _View, step: int, signature: array[float]) -> bool:
        """Whether another source has told other seconds of this step in the attempt that the writer is thought in."""
        attempt = self._attempts.get(view.attempt)
        return attempt is not None and attempt.matches(step, signature) is False

    def _decide(self, view: _View, step: int, signature: array[float]) -> int:
        current, *earlier = sorted(self._attempts.values(), key=lambda attempt: -attempt.number)
        seen = current.matches(step, signature)
        if seen:
            return current.number
        left_current = view.restarted and view.attempt == current.number
        begins = view.restarted and view.attempt in {0, current.number}
        for attempt in earlier:
            if attempt.matches(step, signature):
                return self._promote(attempt) if left_current else attempt.number
        joins = seen is None and (not begins or current.last_step < 0)
        return current.number if joins else self._begin()

    def _rival(self, source: str, generation: int, writer: Writer) -> int:
        """How many steps a writer has told in a source that speaks with a prefix where this one does not, or so."""
        return max(
            (
                known.told
                for (other, pid, _), known in self._views.items()
                if other == source and known.generation == generation and bool(pid) != bool(writer.pid)
            ),
            default=0,
        )

    def _promote(self, earlier: _Attempt) -> int:
        """An attempt that another source told of too early turns out to be the later one."""
        old, earlier.number = earlier.number, self.current + 1
        self._attempts[earlier.number] = self._attempts.pop(old)
        for view in self._views.values():
            if view.attempt == old:
                view.attempt = earlier.number
        return earlier.number

    def _begin(self) -> int:
        number = self.current + 1
        self._attempts[number] = _Attempt(number)
        if len(self._attempts) > MAX_ATTEMPTS:
            del self._attempts[min(self._attempts)]
        return number

    def recall(self, rows: Iterable[tuple[int, int, Mapping[str, float]]]) -> None:
        """Fills in (attempt, step, seconds) that a store has kept: the part that `state` leaves out."""
        for number, step, seconds in rows:
            attempt = self._attempts.get(number)
            if attempt is not None:
                attempt.remember(step, _signature(seconds))

    def state(self) -> dict[str, Any]:
        """JSON-safe, without the steps: those are in the store's table of values (see `recall`)."""
        return {
            "attempts": {str(number): attempt.last_step for number, attempt in self._attempts.items()},
            "resumed": [list(voice) for voice in self._resumed],
            "views": [
                [*voice, v.generation, v.last_step, v.attempt, v.undecided, v.restarted, v.doubted, v.told]
                for voice, v in self._views.items()
            ],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Attempts:
        """The inverse of `state`."""
        self = cls()
        self._attempts = {int(n): _Attempt(int(n), last_step) for n, last_step in state["attempts"].items()}
        self._resumed = dict.fromkeys((source, pid, ip) for source, pid, ip in state["resumed"])
        self._views = {(source, pid, ip): _View(*rest) for source, pid, ip, *rest in state["views"]}
        return self


def _signature(seconds: Mapping[str, float]) -> array[float]:
    return array("d", [seconds.get(name, nan) for name in _SIGNED])


def _packed(signature: array[float]) -> bytes:
    """Which of the numbers are known, as bits, and those."""
    known = [(1 << i, value) for i, value in enumerate(signature) if not isnan(value)]
    return sum(bit for bit, _ in known).to_bytes(2, "little") + array("d", [value for _, value in known]).tobytes()


def _unpacked(packed: bytes) -> list[float]:
    """The inverse of `_packed`."""
    bits, known = int.from_bytes(packed[:2], "little"), iter(array("d", packed[2:]))
    return [next(known) if bits >> i & 1 else nan for i in range(len(_SIGNED))]
