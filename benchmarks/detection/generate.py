"""Series of phase seconds with the work behind them, and the truth about what was done to them.

A model, not fitted to real logs: trust the order of detectors more than absolute figures.

Physics.  A step's seconds are a fixed part, a part that grows with the tokens of the batch and, in generation, a part
that grows with its longest response, times noise that carries over from step to step (AR(1), Student's t).  Generation
now and then waits for a straggler.  The longest of N responses is drawn as the maximum of N lognormal lengths (Gumbel).
The first three steps after a start are slow.

Stresses break what a detector may assume: ``corr`` carries far more noise over, ``heavy`` draws it from a t with three
degrees of freedom and lets five times as many steps straggle, ``quad`` makes long responses cost more than in
proportion, ``wander`` lets the level walk.

The same seed gives the same series, whatever else is asked for: each part draws from a generator of its own.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rng = np.random.Generator

STRESSES = ("corr", "heavy", "quad", "wander")
WARM_UP = (2.6, 1.35, 1.06)
"""How much slower the first steps after a start are, about."""
ONSETS, EARLY_ONSETS = (260, 400), (25, 61)
DRIFT, SLIDE = 0.001, 0.004


class Physics(NamedTuple):
    """One phase: its share of a step, how its time grows, and from where its noise (sd, carried over) is drawn."""

    share: float
    tokens: float
    longest: float
    sd: tuple[float, float]
    phi: tuple[float, float]
    straggles: bool = False


PHYSICS: Mapping[str, Physics] = {
    "gen": Physics(0.50, 0.45, 0.45, (0.03, 0.07), (0.2, 0.6), straggles=True),
    "reward": Physics(0.06, 0.40, 0.10, (0.03, 0.06), (0.1, 0.4)),
    "old_log_prob": Physics(0.08, 0.90, 0.0, (0.012, 0.03), (0.1, 0.5)),
    "ref": Physics(0.08, 0.90, 0.0, (0.012, 0.03), (0.1, 0.5)),
    "adv": Physics(0.001, 0.50, 0.0, (0.1, 0.2), (0.0, 0.1)),
    "update_actor": Physics(0.28, 0.85, 0.0, (0.012, 0.03), (0.1, 0.5)),
}
"""What is in no share is a fixed cost.  The order is that of a step."""

LENGTHS: Mapping[str, Callable[[Array], Array]] = {
    "growth": lambda t: np.log(3.0) * 0.5 * (1.0 + np.tanh(6.0 * (t / len(t) - 0.5))),
    "jump": lambda t: np.where(t < len(t) // 2, 0.0, np.log(1.4)),
    "saw": lambda t: np.log(1.5) * (t % 120) / 120,
    "curriculum": lambda t: np.log(1.15) * (t // 250),
    "restarts": np.zeros_like,
}
"""Benign kinds: log of the usual response length over the steps; with ``restarts`` it stays and the run starts anew."""


class Fault(NamedTuple):
    """What is done to a series: ``factor(steps since the onset, sd of its noise, rng)`` times its seconds.

    ``lasts`` counts the changed steps (None: to the end), ``ratio`` is the true effect where there is one, ``within``
    the steps from the onset in which an alarm counts, ``again`` the steps to a second, lasting onset.
    """

    factor: Callable[[Array, float, Rng], Array]
    lasts: int | None = None
    ratio: float | None = None
    within: int = 300
    again: int | None = None
    early: bool = False


def _shift(ratio: float, lasts: int | None = None, within: int = 300, *, early: bool = False) -> Fault:
    """So much slower from the onset on."""
    return Fault(lambda t, _sd, _rng: np.where(t < (lasts or len(t)), ratio, 1.0), lasts, ratio, within, early=early)


def _stalls(t: Array, _sd: float, rng: Rng) -> Array:
    hit = rng.random(len(t)) < 0.15
    hit[0] = True
    return np.where(hit, 2.0, 1.0)


FAULTS: Mapping[str, Fault] = {
    "spike_x3": _shift(3.0, lasts=1, within=3),
    "stretch_x2": _shift(2.0, lasts=3, within=5),
    "shift_10": _shift(1.10),
    "shift_25": _shift(1.25),
    "shift_50": _shift(1.50),
    "shift_100": _shift(2.0),
    "drift": Fault(lambda t, _sd, _rng: 1.0 + DRIFT * (t + 1.0)),
    "slide": Fault(lambda t, _sd, _rng: 1.0 + SLIDE * (t + 1.0)),
    "noise_x3": Fault(lambda t, sd, rng: np.exp(rng.normal(0.0, math.sqrt(8.0) * sd, len(t)))),
    "stalls": Fault(_stalls),
    "recovery": _shift(1.5, lasts=100, within=100),
    "excursion": Fault(
        lambda t, _sd, _rng: np.select([t < 4, t >= 80], [4.0, 1.6], 1.0), lasts=4, ratio=4.0, within=4, again=80
    ),
    "early_25": _shift(1.25, early=True),
    "early_100": _shift(2.0, early=True),
}


@dataclass(frozen=True, slots=True)
class Series:
    """Seconds of one phase, with tokens and longest response of each step.

    ``onset`` is the first changed step and ``end`` the first one after the change; both are the length of the series
    where there is none.
    """

    phase: str
    kind: str
    seconds: Array
    tokens: Array
    longest: Array
    restart: NDArray[np.bool_]
    onset: int
    end: int


@dataclass(frozen=True, slots=True)
class Batches:
    """The work of a run: what each step had to do, and which steps came first after a start."""

    tokens: Array
    longest: Array
    mean: Array
    restart: NDArray[np.bool_]


def series(seed: int, steps: int, kind: str, phase: str, stresses: frozenset[str] = frozenset()) -> Series:
    """One series: ``kind`` is ``null``, one of `LENGTHS` or one of `FAULTS`.

    Raises:
        KeyError: If the phase, the kind or a stress is unknown.
    """
    if unknown := stresses - set(STRESSES):
        raise KeyError(f"no such stress: {', '.join(sorted(unknown))}; there are {', '.join(STRESSES)}")
    if kind not in FAULTS and kind not in LENGTHS and kind != "null":
        raise KeyError(f"no such kind: {kind}; there are null, {', '.join((*LENGTHS, *FAULTS))}")
    of_work, of_noise, of_fault = np.random.default_rng([seed, zlib.crc32(f"{kind} {phase}".encode())]).spawn(3)
    done = batches(of_work, steps, kind)
    scale = of_noise.uniform(30.0, 300.0)
    seconds, sd = phase_seconds(of_noise, phase, done, scale, stresses)
    fault = FAULTS.get(kind)
    onset = end = steps
    if fault is not None:
        onset = int(of_fault.integers(*(EARLY_ONSETS if fault.early else ONSETS)))
        end = steps if fault.lasts is None else onset + fault.lasts
        seconds[onset:] *= fault.factor(np.arange(steps - onset, dtype=np.float64), sd, of_fault)
    return Series(phase, kind, seconds, done.tokens, done.longest, done.restart, onset, end)


def batches(rng: Rng, steps: int, kind: str = "null") -> Batches:
    """The work of a run whose usual length wanders slowly; what a batch holds varies from step to step."""
    responses = float(rng.choice([512, 1024, 2048]))
    limit = float(rng.choice([4096, 8192, 16384]))
    spread = rng.uniform(0.45, 0.7)
    t = np.arange(steps, dtype=np.float64)
    usual = math.log(limit * rng.uniform(0.05, 0.12)) + np.cumsum(rng.normal(0.0, 0.0015, steps))
    # A month of a random walk would leave every limit: the length is drawn back to where it began.
    usual = usual if steps <= 2000 else usual[0] + ar1(rng, steps, 0.15, 0.9999)
    if kind in LENGTHS:
        usual = usual + LENGTHS[kind](t)
    mean = np.minimum(np.exp(usual + rng.normal(0.0, 0.04, steps)), 0.7 * limit)
    far = math.sqrt(2.0 * math.log(responses))
    longest = np.minimum(limit, mean * np.exp(spread * (far + (rng.gumbel(0.0, 1.0, steps) - 1.0) / far)))
    tokens = responses * (mean + rng.uniform(120.0, 400.0) * np.exp(rng.normal(0.0, 0.01, steps)))
    restart = np.zeros(steps, dtype=np.bool_)
    restart[0] = True
    if kind == "restarts":
        restart[rng.choice(np.arange(100, steps - 50), 4, replace=False)] = True
    return Batches(tokens, longest, mean, restart)


def phase_seconds(
    rng: Rng, phase: str, done: Batches, scale: float, stresses: frozenset[str] = frozenset()
) -> tuple[Array, float]:
    """Seconds of a phase of a run whose steps take about ``scale``, and the standard deviation of its noise."""
    physics = PHYSICS[phase]
    steps = len(done.tokens)
    sd, phi = rng.uniform(*physics.sd), rng.uniform(*physics.phi)
    strong = rng.uniform(0.7, 0.9)
    if "corr" in stresses:
        phi = strong
    tokens, longest = done.tokens / _usual(done.tokens), done.longest / _usual(done.longest)
    fixed = 1.0 - physics.tokens - physics.longest
    work = fixed + physics.tokens * tokens + physics.longest * longest
    if "quad" in stresses:
        work = work * (done.mean / _usual(done.mean)) ** (0.4 if physics.longest else 0.3)
    seconds = scale * physics.share * work * np.exp(ar1(rng, steps, sd, phi, 3 if "heavy" in stresses else 7))
    late, how = rng.random(steps), rng.pareto(3.0, steps)
    if physics.straggles:
        seconds = np.where(late < (0.05 if "heavy" in stresses else 0.01), 1.1 + 0.12 * how, 1.0) * seconds
    walk = np.cumsum(rng.normal(0.0, 0.002 if physics.longest else 0.001, steps))
    if "wander" in stresses:
        seconds = seconds * np.exp(walk)
    for start in np.flatnonzero(done.restart).tolist():
        slow = 1.0 + (np.array(WARM_UP) - 1.0) * rng.uniform(0.6, 1.4)
        seconds[start : start + len(slow)] *= slow[: steps - start]
    return seconds, sd


def ar1(rng: Rng, steps: int, sd: float, phi: float, freedom: int | None = None) -> Array:
    """AR(1) noise with this marginal standard deviation, its shocks from Student's t if ``freedom`` is given."""
    shocks = rng.standard_normal(steps)
    if freedom is not None:
        shocks = rng.standard_t(freedom, steps) * math.sqrt((freedom - 2.0) / freedom)
    shocks *= sd * math.sqrt(1.0 - phi * phi)
    last, path = rng.normal(0.0, sd), []
    for shock in shocks.tolist():
        last = phi * last + shock
        path.append(last)
    return np.array(path)


def _usual(values: Array) -> float:
    """The usual size of something before anything grew."""
    return float(np.median(values[:50]))
