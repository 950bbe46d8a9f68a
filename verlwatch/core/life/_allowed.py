"""How long a run may go without progress: what its own steps, validations and checkpoints took says so.

A step may take FACTOR times the 95th percentile of the last steps.  Steps are taken as the log times them or as they
arrived, whichever is longer: what is printed late is not late.  Validation and checkpoint come on top where one has
begun or is due, with the longest that it took so far.  Before the run has a past of its own, limits of the
configuration hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, gcd
from typing import Any

from verlwatch.core.phases import PHASES
from verlwatch.core.rules import Allowance
from verlwatch.core.settings import Patience
from verlwatch.core.words import duration

FACTOR = 2.5
FEW = 5
"""Fewer steps than these have no percentile: FEW_FACTOR times the longest is allowed then."""
FEW_FACTOR = 4.0
LATELY_FACTOR = 1.5
LEAST_S = 10.0
"""No run is called stuck in less time than this, however short its steps are."""
KEPT = 128
AT_ONCE, MOST_TOGETHER = 0.1, 8
"""A step that comes within this share of its own seconds has come at once with the one before."""
QUANTILE = 0.95
_APART = tuple(phase.name for phase in PHASES if phase.apart)
_FREQUENCY = {"testing": "trainer.test_freq", "save_checkpoint": "trainer.save_freq"}


class OwnPace:
    """The steps of a run, as far as they say how long the next one may take."""

    def __init__(self) -> None:
        self.steps: deque[float] = deque(maxlen=KEPT)
        """Seconds from step to step, without validation and checkpoint."""
        self._p95 = 0.0  # kept, since it is asked for with every line
        self.apart: dict[str, deque[tuple[int, float]]] = {name: deque(maxlen=8) for name in _APART}
        """Of validations and checkpoints: the step and the seconds."""
        self._first = -1
        """The first step of all."""
        self._lately = (0.0, 0.0)
        """Seconds of the last two, late ones too."""
        self._was_late = False
        self._together: deque[int] = deque([1], maxlen=16)
        """How many steps have come at once, lately: a log that is written in blocks tells of the next ones together."""

    def take(
        self, step: int, step_s: float, apart: Mapping[str, float], arrived_s: float | None, *, was_late: bool = False
    ) -> None:
        """A step of ``step_s`` seconds, and what it took ``apart``; ``arrived_s`` after the one before.

        None for what came when nobody watched.  One that ``was_late`` is no measure of the next, two in a row are.
        """
        self._first = step if self._first < 0 else min(self._first, step)
        for name in self.apart.keys() & apart.keys():
            self.apart[name].append((step, apart[name]))
        if arrived_s is not None:
            follows = arrived_s < AT_ONCE * step_s
            self._together.append(min(self._together[-1] + 1, MOST_TOGETHER) if follows else 1)
            gap, allowed = max(0.0, arrived_s - sum(apart.values())), self.usual_s
            step_s = max(step_s, min(gap, allowed) if allowed else gap)
        if step_s > 0.0 and not (was_late and not self._was_late):
            self.steps.append(step_s)
            self._p95 = quantile(self.steps, QUANTILE)
        self._lately = (self._lately[-1], step_s)
        self._was_late = was_late

    def allowance(
        self,
        step: int,
        stage: str,
        config: Mapping[str, str | int | float],
        patience: Patience,
        planned: int | None = None,
    ) -> Allowance:
        """How long the step after ``step`` may take in this ``stage``; verl validates and saves at the last one."""
        if stage in {"start", "loading"}:
            return Allowance(patience.start_s if stage == "start" else patience.loading_s, f"the limit for {stage}")
        seconds = self.usual_s
        if not seconds:
            if stage == "validation":
                return Allowance(patience.first_validation_s, "the limit for the first validation")
            return Allowance(patience.first_step_s, "the limit for the first step")
        why = self._why()
        for name, word in (("testing", "validation"), ("save_checkpoint", "checkpoint")):
            ahead = range(step + 1, step + 1 + max(self._together))
            if not (stage == word or any(self._is_due(name, one, config, planned) for one in ahead)):
                continue
            longest = max((took for _, took in self.apart[name]), default=None)
            if longest is None and stage == "validation" and name == "save_checkpoint":
                continue  # it comes after the validation: what it may take does not excuse that one
            seconds += patience.first_validation_s if longest is None else FACTOR * longest
            why += f", and {'the limit for the first' if longest is None else f'{FACTOR:g}× its longest'} {word}"
        return Allowance(max(seconds, LEAST_S), why)

    @property
    def usual_s(self) -> float:
        """Seconds that a step by itself may take; 0 while there is none.

        Where two steps in a row took longer, that is the pace now: a slowdown, which others tell, is no stall.
        """
        if len(self.steps) < FEW:
            return FEW_FACTOR * max(self.steps, default=0.0)
        return max(FACTOR * self._p95, LATELY_FACTOR * min(self._lately))

    def _why(self) -> str:
        if len(self.steps) < FEW:
            return f"{FEW_FACTOR:g}× the longest of its few steps, {duration(max(self.steps))}"
        if self.usual_s > FACTOR * self._p95:
            return f"{LATELY_FACTOR:g}× its last steps, {duration(min(self._lately))}"
        return f"{FACTOR:g}× the 95th percentile of its steps, {duration(self._p95)}"

    def _is_due(self, name: str, step: int, config: Mapping[str, str | int | float], planned: int | None) -> bool:
        """Whether a validation or checkpoint comes with ``step``, by the configuration or by when they came so far."""
        every = config.get(_FREQUENCY[name])
        if isinstance(every, int):
            return every > 0 and (step % every == 0 or step == planned)
        past = [at for at, _ in self.apart[name]]
        if not past:
            return False
        if step == planned:
            return True
        if len(past) > 1:
            return (step - past[-1]) % max(1, past[-1] - past[-2]) == 0
        # one alone: it comes every so many steps, and did not come so many steps before
        return gcd(past[0], step) > past[0] - self._first

    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `restore`."""
        return {
            "steps": [round(value, 3) for value in self.steps],
            "first": self._first,
            "lately": [*self._lately, self._was_late],
            "together": list(self._together),
            "apart": {name: [list(one) for one in past] for name, past in self.apart.items()},
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes up where it was."""
        self.steps.extend(data["steps"])
        self._p95 = quantile(self.steps, QUANTILE) if self.steps else 0.0
        self._first = data["first"]
        *lately, self._was_late = data["lately"]
        self._lately = lately[0], lately[1]
        self._together = deque(data["together"], maxlen=self._together.maxlen)
        for name, past in data["apart"].items():
            self.apart[name].extend((step, took) for step, took in past)


def quantile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least ``share`` of all do not exceed."""
    ordered: Sequence[float] = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
