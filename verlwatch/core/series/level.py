"""A lasting change: the likelihood ratio of a shift that began m steps ago, for many m at once.

Idea.  If the level moved m steps ago by any amount, the last m whitened scores all lean the same way.  For each of a
ladder of window lengths m their weighted sum is compared with how large such sums are *in this very series* when
nothing happens; the largest of these likelihood ratios is the evidence.  A shift of 10 % hides in the noise of single
steps and is plain in the sum of eight.

Formulas.
    A shift that began m steps ago looks like (1, 1-phi, 1-phi, ...) in AR(1) innovations, hence
    N_m = c_first + (1-phi) sum(rest),  D_m = 1 + (1-phi)^2 (m-1),  c = score clipped at +-3,
    L_m = N_m^2 / (2 D_m V_m (1 + D_m i) s),  alarm when max L_m >= h = H + SLOPE ln(1e-4 / rate);
    V_m is the *long-run variance*, the mean of N_m^2 / D_m this series showed so far, learned at eight lengths;
    i is the variance of the baseline over that of an innovation, s = 1 + (EARLY / steps seen)^2.
    The median residual of the latest steps must be at least 5 %, and the scores within the window must not vary more
    than noise does (then it is noise, not a level).  Three steps in a row far out need no statistics.
    Onset: the step that best splits the last residuals into nearer to the old and nearer to the new level.

Trade-off.  V_m is what keeps the false-alarm budget in series whose noise wanders; there it costs delay.  The clip
ignores how slow a slow step was (the spike channel's task) and so needs three steps at least.

Measured on generated series (docs/DETECTION.md): for one false alarm per 10,000 steps asked of a series this channel
raises 0.4 to 0.6 where the noise is as modelled, 0.7 to 1.0 where phi is 0.7 to 0.9.  +25 % is told after 3 steps
(p90 4 to 6), +10 % after 3 in noise of 2 %, after 10 to 15 in noise of 5 % with phi 0.4.

References: Basseville and Nikiforov, Detection of Abrupt Changes (1993), ch. 2.4; Romano et al., Fast Online
Changepoint Detection, JMLR 24 (2023), on why all m matter; Newey and West, Econometrica 55 (1987), on V_m.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect
from collections.abc import MutableSequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import Any, ClassVar, Self

from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._channel import Alarm, Kind, Seen, caution
from verlwatch.core.series._state import fields_of

WINDOWS = (3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96)
SCALES = (1, 2, 4, 8, 16, 32, 64, 128)  # where the long-run variance is learned
KEEP = 144  # steps back that a window, its onset or a scale can reach
AT_WINDOWS = itemgetter(*(-m for m in WINDOWS))
BETWEEN = tuple((m, bisect(SCALES, m) - 1, m / SCALES[bisect(SCALES, m) - 1] - 1.0) for m in WINDOWS)

UNIT, FINE = 1000.0, 1e-4  # scores and residuals are kept as integers: exact sums, short state
H, SLOPE = 8.6, 1.15
CLIP = 3.0
PRIOR_V = (1.0, 1.0, 1.1, 1.3, 1.5, 1.6, 1.6, 1.6)
GATE, LATEST = 0.05, 6  # smallest shift worth telling, log units, and in how many steps it must show
FREEZE, THAW = 4.0, 150  # evidence at which learning stops, for at most so many steps
EARLY = 16.0
ENOUGH, GROSS, GROSS_SIGMA = 3, math.log(1.25), 5.0  # so many steps, each so far out, need no statistics
V_LEAST, V_JUMP = 0.9, 8.0
V_YOUNG, V_FULL = 30, 1500
REFRESH, YOUNG = 32, 64  # steps between two looks at what changes slowly; more often while the series is young


_PAST = ("sums", "residuals", "steps")


def _nothing() -> MutableSequence[int]:
    """A past in which all scores were zero; an array takes a fifth of a list's memory."""
    return array("q", bytes(8 * (KEEP + 1)))


@dataclass(slots=True)
class Level:
    """Detector of lasting shifts in either direction.

    ``sums`` are cumulated scores, ``residuals`` and ``steps`` belong to its entries; -1 is the latest step, and
    ``filled`` says how many are real.  N_m is (1 - phi) times the latest sum minus ``anchors[-m]``; ``weights`` turn
    it into L_m, and below ``least`` it is not worth looking.
    """

    KIND: ClassVar[Kind] = "level"
    FALSE_ALARMS: ClassVar[float] = 1.0
    DELAY: ClassVar[tuple[float, int]] = (1.25, 5)

    rate: float
    sums: MutableSequence[int] = field(default_factory=_nothing)
    residuals: MutableSequence[int] = field(default_factory=_nothing)
    steps: MutableSequence[int] = field(default_factory=_nothing)
    filled: int = 0
    long_run: list[float] = field(default_factory=lambda: list(PRIOR_V))
    calibrated: int = 0
    weights: list[float] = field(default_factory=lambda: [0.0] * len(WINDOWS))
    least: list[float] = field(default_factory=lambda: [0.0] * len(WINDOWS))
    phi: float = 0.0
    age: int = 0
    gross: int = 0
    frozen: int = 0
    anchors: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._anchor()

    @property
    def suspects(self) -> bool:
        """Evidence of a shift is there, and has not been for very long."""
        return 0 < self.frozen <= THAW

    def update(self, seen: Seen, baseline: Baseline) -> Alarm | None:
        """Add a step and look whether a shift within the last steps explains them much better than none."""
        score, residual, before = seen.score, seen.residual, self.sums[-1]
        total = before + int(UNIT * (CLIP if score > CLIP else max(score, -CLIP)))
        self.sums.append(total)
        self.anchors.append(before - self.phi * total)
        self.residuals.append(int(residual / FINE))
        self.steps.append(seen.step)
        self.filled += 1
        if not self.age % (REFRESH if self.age > YOUNG else 8):
            self._refresh(baseline)
        self.age += 1
        evidence, window = self._evidence()
        self.frozen = self.frozen + 1 if evidence >= FREEZE and self._shows(window) else 0
        self.gross = self.gross + 1 if residual >= GROSS and residual >= GROSS_SIGMA * baseline.sd else 0
        if self.gross == ENOUGH:
            return self._alarm(ENOUGH)
        if self.frozen and evidence >= self._enough(window, baseline):
            return self._alarm(window)
        return None

    def learn(self, seen: Seen, age: int, baseline: Baseline) -> None:
        """Learn how large N_m^2 / D_m is here, each time at another length, from the window that ends at that step."""
        del seen, baseline
        self.calibrated += 1
        i = self.calibrated % len(SCALES)
        m = SCALES[i]
        if age + m > self.filled:
            return
        omf = 1.0 - self.phi
        n = (omf * self.sums[-1 - age] - self.anchors[-age - m]) / UNIT
        old, new = self.long_run[i], n * n / (1.0 + omf * omf * (m - 1))
        top = V_JUMP * old if old > V_LEAST else V_JUMP * V_LEAST
        gain = len(SCALES) / (min(self.calibrated, V_FULL) + V_YOUNG + 2 * m)
        self.long_run[i] = old + gain * (min(top, new) - old)

    def rebase(self) -> None:
        """Begin with an empty window."""
        self.sums, self.residuals, self.steps = _nothing(), _nothing(), _nothing()
        self.filled = self.gross = self.frozen = 0
        self._anchor()

    def state(self) -> dict[str, Any]:
        """Everything, exactly; of the past what can still be reached."""
        return fields_of(self) | {name: list(getattr(self, name)[-KEEP - 1 :]) for name in _PAST}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Inverse of :meth:`state`."""
        return cls(**state | {name: array("q", state[name]) for name in _PAST})

    def _anchor(self) -> None:
        phi = self.phi
        self.anchors = [before - phi * total for before, total in pairwise(self.sums)]

    def _evidence(self) -> tuple[float, int]:
        """The largest L_m, and its m."""
        top = (1.0 - self.phi) * self.sums[-1]
        best, window = 0.0, 0
        rows = zip(WINDOWS, AT_WINDOWS(self.anchors), self.weights, self.least, strict=True)
        for m, anchor, weight, least in rows:
            lean = top - anchor
            if lean > least or lean < -least:
                likelihood = lean * lean * weight
                if likelihood > best:
                    best, window = likelihood, m
        return best, window

    def _shows(self, window: int) -> bool:
        """Whether the bare residuals agree: as large as worth telling, and on the same side as the scores."""
        shift = FINE * median(self.residuals[-min(window, LATEST) :])
        return abs(shift) >= GATE and (shift > 0.0) == (self.sums[-1] > self.sums[-1 - window])

    def _enough(self, window: int, baseline: Baseline) -> float:
        """The evidence that is enough, in a window as restless as this one."""
        h = (H + SLOPE * math.log(1e-4 / self.rate)) * caution(self.rate, baseline.learned)
        return h * self._unrest(window)

    def _unrest(self, window: int) -> float:
        """Variance of the scores within the window, the first one apart, if it is above the expected one."""
        scores = [(b - a) / UNIT for a, b in pairwise(self.sums[-window:])]
        mean = sum(scores) / len(scores)
        return max(1.0, (sum((x - mean) ** 2 for x in scores) + 3.0) / (len(scores) + 2.0))

    def _alarm(self, window: int) -> Alarm:
        """Where the change began, by the residuals, and how large it is."""
        recent = self.residuals[-min(window + 16, self.filled) :]
        rough = sorted(recent[-window:])[window // 2] or 1
        best, total, count = -1.0, 0.0, 1
        for n, residual in enumerate(reversed(recent), 1):
            total += max(-0.5, min(0.5, residual / rough - 0.5))
            if total > best:
                best, count = total, n
        return Alarm("level", self.steps[-count], FINE * median(recent[-count:]), count)

    def _refresh(self, baseline: Baseline) -> None:
        """Weights of the windows, and room in the lists: what changes slowly."""
        self.phi = baseline.phi
        omf2 = (1.0 - self.phi) ** 2
        unsure = baseline.leverage / baseline.shock
        scale = 0.5 / (UNIT * UNIT * (1.0 + (EARLY / (baseline.learned + 12)) ** 2))
        gate = UNIT * min(0.6 * GATE / baseline.sigma, 1.5)
        v, largest = self.long_run, V_LEAST
        self.weights, self.least = [], []
        for m, i, part in BETWEEN:
            d = 1.0 + omf2 * (m - 1)
            largest = max(largest, v[i] + part * (v[i + 1] - v[i]))  # never falls with the length of the window
            self.weights.append(scale / (d * largest * (1.0 + d * unsure)))
            self.least.append(gate * d)
        for past in (self.sums, self.residuals, self.steps):
            del past[: -KEEP - 1]
        self._anchor()
