"""What published detectors reach on the same series: `python benchmarks/detection/peers.py [--only ewma,adwin]`.

Each is shown the log seconds as they are (``raw``) and what is left of them once verlwatch's own baseline has explained
the work and taken out the autocorrelation (``adjusted``): the second says what the channels are worth, the first what
one gets without the rest.  Both are counted in standard deviations: ``raw`` those of 50 steps of the run, ``adjusted``
those of the baseline, after an alarm those of the next 50 steps.  What accumulates sees adjusted values cut off at
three.  The first three steps after a start are left out, and an alarm counts only if the series became slower: the same
favours that the watch gets.

One limit of each, `LIMITS`, is set so that undisturbed series of another seed raise one alarm in 10,000 steps;
``--calibrate`` finds them anew.

ADWIN, Page-Hinkley and KSWIN are river's, PELT is that of ruptures: it sees the whole series before it speaks, so its
delays mean nothing, and what it finds says how much there is to be found.

Cells are detected % / median delay in steps; ``quiet`` and ``growth`` are false alarms per 10,000 steps.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib import import_module
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from benchmarks.detection import adapter, score
from benchmarks.detection._published import MAD, REFERENCE, TESTS
from benchmarks.detection.generate import series
from verlwatch.core.phases import phase as phase_of
from verlwatch.core.series._baseline import Baseline

ruptures: Any = import_module("ruptures")  # it carries no types
WARM_UP, START, LAG = 3, 16, 12
CLIP = 3.0
SHORTEST = 3  # steps of a segment that PELT may find
KINDS = ("null", "growth", "spike_x3", "shift_10", "shift_25", "shift_100", "drift", "noise_x3", "stalls")


# --------------------------------------------------------------------------------------- what they are shown
class Log:
    """Log seconds, as they are."""

    reference: tuple[float, float] | None = None

    def __init__(self, phase: str) -> None:
        del phase

    def take(self, step: int, seconds: float, tokens: float, longest: float) -> float | None:
        """The value of a step; None while there is none."""
        del step, tokens, longest
        return math.log(seconds)


class Adjusted:
    """What the baseline of verlwatch leaves: innovations in their own standard deviations, learned from late."""

    reference: tuple[float, float] | None = (0.0, 1.0)

    def __init__(self, phase: str) -> None:
        known = phase_of(phase)
        self.baseline = Baseline(known.tokens, known.longest)
        self.first: list[tuple[float, float, float]] = []
        self.pending: deque[Any] = deque()

    def take(self, step: int, seconds: float, tokens: float, longest: float) -> float | None:
        """The value of a step; None while there is none."""
        row = (math.log(seconds), tokens, longest)
        if self.baseline.ready:
            return self._judge(step, *row)
        self.first.append(row)
        if len(self.first) == START:
            self.baseline.begin(*map(list, zip(*self.first, strict=True)))
            for back, old in enumerate(reversed(self.first)):
                self._judge(step - back, *old)
        return None

    def _judge(self, step: int, y: float, tokens: float, longest: float) -> float:
        baseline = self.baseline
        seen = baseline.judge(step, y, *baseline.relative(tokens, longest), 0.0)
        self.pending.append(seen)
        if len(self.pending) > LAG:
            baseline.learn(self.pending.popleft())
        return seen.score


SHOWN: Mapping[str, Callable[[str], Log | Adjusted]] = {"raw": Log, "adjusted": Adjusted}


PELT = "pelt"
LIMITS: Mapping[tuple[str, str], float] = {
    ("rolling z", "raw"): 6.4,
    ("rolling z", "adjusted"): 11.6,
    ("ewma", "raw"): 8.64,
    ("ewma", "adjusted"): 3.93,
    ("cusum", "raw"): 257.0,
    ("cusum", "adjusted"): 9.23,
    ("page-hinkley", "raw"): 94.0,
    ("page-hinkley", "adjusted"): 7.85,
    ("adwin", "raw"): 23.7,
    ("adwin", "adjusted"): 0.755,
    ("kswin", "raw"): 3.59,
    ("kswin", "adjusted"): 2.95,
    ("pelt", "raw"): 211.0,
    ("pelt", "adjusted"): 10.7,
}
"""By test and what it is shown: one false alarm per 10,000 undisturbed steps."""


class Peer:
    """A test as a detector of one series."""

    def __init__(self, name: str, shown: str, limit: float, phase: str) -> None:
        self.kind, self.limit = TESTS[name], limit
        self.front = SHOWN[shown](phase)
        self.clip = CLIP if shown == "adjusted" and self.kind.sums else math.inf
        self.test = self.kind.make(limit)
        self.reference = self.front.reference
        self.learning: list[float] = []
        self.since = 0

    def update(
        self, step: int, seconds: float, tokens: float, max_len: float, restart: bool
    ) -> Iterable[tuple[str, int, float]]:
        """See `score.Detector`."""
        self.since = 1 if restart else self.since + 1
        if self.since <= WARM_UP:
            return ()
        x = self.front.take(step, seconds, tokens, max_len)
        if x is None:
            return ()
        if self.reference is None:
            self.learning.append(x)
            if len(self.learning) == REFERENCE:
                self.reference, self.learning = _reference(self.learning), []
            return ()
        middle, sd = self.reference
        count = self.test.update(max(-self.clip, min(self.clip, (x - middle) / sd)))
        if not count:
            return ()
        if self.kind.sums:
            self.test, self.reference = self.kind.make(self.limit), None
        return (("level", step - count + 1, 0.0),)


class Pelt:
    """Killick's PELT (2012) of ruptures: the best segmentation in hindsight, ``limit`` the penalty of a segment.

    A rise is told with the third of its steps: fewer make no segment.
    """

    def __init__(self, shown: str, limit: float, phase: str) -> None:
        self.limit = limit
        self.front = SHOWN[shown](phase)
        self.clip = CLIP if shown == "adjusted" else math.inf
        self.steps: list[int] = []
        self.values: list[float] = []
        self.since = 0

    def update(
        self, step: int, seconds: float, tokens: float, max_len: float, restart: bool
    ) -> Iterable[tuple[str, int, float]]:
        """Nothing is said before the end."""
        self.since = 1 if restart else self.since + 1
        x = self.front.take(step, seconds, tokens, max_len) if self.since > WARM_UP else None
        if x is not None:
            self.steps.append(step)
            self.values.append(max(-self.clip, min(self.clip, x)))
        return ()

    def finish(self) -> list[tuple[int, str, int, float]]:
        """The rises among the change points."""
        middle, sd = self.front.reference or _reference(self.values[:REFERENCE])
        values = (np.array(self.values) - middle) / sd
        ends = ruptures.KernelCPD(kernel="linear", min_size=SHORTEST).fit(values).predict(pen=self.limit)
        means = [(a, float(values[a:b].mean())) for a, b in pairwise([0, *ends])]
        rises = [self.steps[b] for (_, old), (b, new) in pairwise(means) if new > old]
        return [(onset + SHORTEST - 1, "level", onset, 0.0) for onset in rises]


def _reference(values: Sequence[float]) -> tuple[float, float]:
    middle = median(values)
    return middle, max(1e-6, MAD * median(abs(x - middle) for x in values))


def make(name: str, shown: str, limit: float, phase: str, rate: float) -> score.Detector:
    """A peer as the scorer makes it; its limit stands for the rate."""
    del rate
    return Pelt(shown, limit, phase) if name == PELT else Peer(name, shown, limit, phase)


# ------------------------------------------------------------------------------------------------ calibration
def calibrated(peer: tuple[str, str], seed: int, count: int) -> float:
    """The smallest limit, to within 3 %, at which undisturbed series raise no more than one alarm in 10,000 steps."""
    name, shown = peer
    least, most = (2.0, 5000.0) if name == PELT else TESTS[name][1:3]
    while most / least > 1.03:
        limit = math.sqrt(least * most)
        alarms = sum(
            len(score.hear(make(name, shown, limit, phase, 1.0), _undisturbed(seed + number, phase)).alarms)
            for phase in score.PHASES
            for number in range(count)
        )
        if alarms > len(score.PHASES) * count * score.QUIET_STEPS / 1e4:
            least = limit
        else:
            most = limit
    return float(f"{most:.3g}")


@cache
def _undisturbed(seed: int, phase: str) -> Any:
    return series(seed, score.QUIET_STEPS, "null", phase)


# -------------------------------------------------------------------------------------------------- the table
def row(name: str, scored: Mapping[str, Any]) -> str:
    """One detector, as a row of a Markdown table."""
    quiet = [f"{scored['quiet'][kind]['per_10k']:.1f}" for kind in KINDS if kind in scored["quiet"]]
    told = [scored["faults"][kind]["both"] for kind in KINDS if kind in scored["faults"]]
    middle = ["" if cell["median"] is None or name.startswith(PELT) else f" / {cell['median']:g}" for cell in told]
    cells = [f"{100 * cell['detected']:.0f}{delay}" for cell, delay in zip(told, middle, strict=True)]
    return f"| {' | '.join((name, str(scored['us_per_update']), *quiet, *cells))} |"


def main() -> None:
    arguments = score.parser(__doc__)
    arguments.add_argument("--only", default=",".join((*TESTS, PELT)), help="some of the tests, with commas between")
    arguments.add_argument(
        "--calibrate", action="store_true", help="print LIMITS anew, from --null series of each phase"
    )
    args = arguments.parse_args()
    peers = [(name, shown) for name in args.only.split(",") for shown in SHOWN]
    if args.calibrate:
        with ProcessPoolExecutor(args.jobs) as pool:
            found = pool.map(partial(calibrated, seed=900_000_000 + args.seed, count=args.null), peers)
            for peer, limit in zip(peers, found, strict=True):
                print(f"    {peer}: {limit:g},".replace("'", '"'), flush=True)
        return
    print(f"| {' | '.join(('detector', 'µs', 'quiet', *KINDS[1:]))} |\n|{'---|' * (len(KINDS) + 2)}")
    makes: dict[str, score.Make] = {"verlwatch": adapter.make}
    makes |= {f"{name}, {shown}": partial(make, name, shown, LIMITS[name, shown]) for name, shown in peers}
    for name, maker in makes.items():
        plan = score.plan(maker, args.series, args.null, args.seed, args.rate, args.stress)
        print(row(name, score.score([job for job in plan if job.kind in KINDS], args.jobs)), flush=True)


if __name__ == "__main__":
    main()
