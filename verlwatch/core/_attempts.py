"""Which attempt of a run a step belongs to, and whether it has been seen before.

A run is started, dies, resumes; console and JSONL tell the same steps in two places, one ahead of the other.  Each
source is followed by itself: it *restarts* with a new generation (truncated file), a new process of the writer, a step
that goes back, or a resume line.  Its first step with timing then decides, by comparing with the current attempt:

* equal phase seconds (at the coarser precision): the same step seen again, so the source belongs to that attempt;
* other seconds at a known step: a new attempt;
* a step not known yet: it continues the attempt, unless the source restarted and nobody else has opened a new one.

Two attempts never have equal seconds in every phase, so these few numbers suffice; they are kept for RECALL steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, NamedTuple

from verlwatch.core.phases import PHASES, STEP
from verlwatch.core.types import Writer

RECALL = 1024
MAX_LEAP = 10_000
"""No run skips so many steps; a line that says so is model output or noise, unless the next one goes on from there."""
_SIGNED = (*(phase.name for phase in PHASES), STEP)
_COARSE = 0.00051  # half a unit of ``.3f``, and a little for binary fractions


class Place(NamedTuple):
    """Where a step belongs: its attempt, whether it is the current one, and whether the attempt has just begun."""

    attempt: int
    current: bool
    began: bool


@dataclass(slots=True)
class _Attempt:
    number: int
    last_step: int = -1
    steps: dict[int, array[float]] = field(default_factory=dict)

    def matches(self, step: int, signature: array[float]) -> bool | None:
        """Whether ``step`` was seen with the same seconds; None when it cannot be told."""
        known = self.steps.get(step)
        if known is None:
            return None
        pairs = [(a, b) for a, b in zip(known, signature, strict=True) if not (isnan(a) or isnan(b))]
        return all(abs(a - b) <= _COARSE for a, b in pairs) if pairs else None

    def remember(self, step: int, signature: array[float]) -> None:
        known = self.steps.get(step)
        if known is None:
            self.steps[step] = signature
            if len(self.steps) > RECALL:
                del self.steps[next(iter(self.steps))]  # the first one told: steps come in order
        else:
            for i, value in enumerate(signature):
                if isnan(known[i]):
                    known[i] = value
        self.last_step = max(self.last_step, step)


@dataclass(slots=True)
class _View:
    """What one source has shown so far.  ``undecided`` until a step with timing tells which attempt it is in."""

    generation: int
    writer: Writer
    last_step: int = -1
    attempt: int = 0
    undecided: bool = True
    restarted: bool = False
    leap: int = -1


class Attempts:
    """The attempts of one run, as far as they are still needed to place a step: the current one and the one before."""

    def __init__(self) -> None:
        self._views: dict[str, _View] = {}
        self._attempts: dict[int, _Attempt] = {1: _Attempt(1)}

    @property
    def current(self) -> int:
        """Number of the latest attempt; the first is 1."""
        return max(self._attempts)

    @property
    def last_step(self) -> int:
        """Latest step of the current attempt, -1 before the first."""
        return self._attempts[self.current].last_step

    def restarted(self, source: str, generation: int, writer: Writer) -> None:
        """A line of this source says that training has begun or resumed."""
        view = self._view(source, generation, writer)
        if view.last_step >= 0:
            view.undecided = view.restarted = True

    def place(
        self, source: str, generation: int, writer: Writer, step: int, seconds: Mapping[str, float]
    ) -> Place | None:
        """Finds the attempt of a step and remembers its seconds there; None if the step is not plausible."""
        view = self._view(source, generation, writer)
        if self._leaps(view, step):
            return None
        signature = _signature(seconds)
        if not view.undecided and self._goes_back(view, step, signature):
            view.undecided = view.restarted = True
        view.last_step = step
        began = False
        if view.undecided and seconds:
            before = self.current
            view.attempt = self._decide(view, step, signature)
            view.undecided = view.restarted = False
            began = self.current > before
        number = self._presumed(view) if view.undecided else view.attempt
        attempt = self._attempts.get(number)
        if attempt is not None:
            began = began or (number == 1 and attempt.last_step < 0 and bool(seconds))
            attempt.remember(step, signature)
        return Place(number, number == self.current, began)

    def is_current(self, source: str) -> bool:
        """Whether what ``source`` says now is about the current attempt."""
        view = self._views.get(source)
        return view is None or view.attempt in {0, self.current}

    def _view(self, source: str, generation: int, writer: Writer) -> _View:
        view = self._views.get(source)
        if view is None:
            view = self._views[source] = _View(generation, writer)
        elif generation > view.generation or (writer.pid and view.writer.pid and writer[1:] != view.writer[1:]):
            view.generation, view.writer = generation, writer
            view.undecided = view.restarted = True
        elif writer.pid:
            view.writer = writer
        return view

    def _leaps(self, view: _View, step: int) -> bool:
        """Whether the step lies implausibly far ahead of what its source told last."""
        if view.undecided or step - view.last_step <= MAX_LEAP or 0 < step - view.leap <= MAX_LEAP < view.leap:
            return False
        view.leap = step
        return True

    def _presumed(self, view: _View) -> int:
        """The attempt of a line without timing (validation before training) that comes before the decision."""
        return self.current + (view.restarted and view.attempt == self.current)

    def _goes_back(self, view: _View, step: int, signature: array[float]) -> bool:
        if step < view.last_step:
            return True
        attempt = self._attempts.get(view.attempt)
        return step == view.last_step and attempt is not None and attempt.matches(step, signature) is False

    def _decide(self, view: _View, step: int, signature: array[float]) -> int:
        current = self._attempts[self.current]
        match current.matches(step, signature):
            case True:
                return current.number
            case None:
                joins = not view.restarted or view.attempt < current.number
                if joins or current.last_step < 0:
                    return current.number
            case False:
                earlier = self._attempts.get(current.number - 1)
                if earlier is not None and earlier.matches(step, signature):
                    return earlier.number
        return self._begin()

    def _begin(self) -> int:
        number = self.current + 1
        self._attempts[number] = _Attempt(number)
        self._attempts.pop(number - 2, None)
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
            "views": {
                source: [
                    v.generation,
                    list(v.writer),
                    v.last_step,
                    v.attempt,
                    v.undecided,
                    v.restarted,
                    v.leap,
                ]
                for source, v in self._views.items()
            },
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Attempts:
        """The inverse of `state`."""
        self = cls()
        self._attempts = {int(n): _Attempt(int(n), last_step) for n, last_step in state["attempts"].items()}
        self._views = {
            source: _View(generation, Writer(*writer), *rest)
            for source, (generation, writer, *rest) in state["views"].items()
        }
        return self


def _signature(seconds: Mapping[str, float]) -> array[float]:
    return array("d", [seconds.get(name, nan) for name in _SIGNED])
