"""How long before the limit a leak is told, how often memory that does not leak is, and what the intervals are worth.

Memory in percent of what there is, limit 95, one value a step.  Leaks begin at step 120 with half in use; noise is
AR(1) with 0.6 carried over.  What is told is what `core.outlook._approach` tells, from its second step on.

    python benchmarks/forecasts.py [--runs 200] [--leaks 20] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from math import exp, inf, sqrt
from statistics import median
from time import perf_counter

from verlwatch.core.outlook._approach import Approach
from verlwatch.core.outlook._forecast import Lead

LIMIT = 95.0
BEGINS = 120
STEPS = 400
Made = Callable[[random.Random], Sequence[float]]


def ar(chance: random.Random, steps: int, scale: float, carried: float) -> list[float]:
    """Noise of this standard deviation, of which a share carries over."""
    now, values = 0.0, []
    for _ in range(steps):
        now = carried * now + chance.gauss(0.0, scale * sqrt(1 - carried * carried))
        values.append(now)
    return values


def walk(chance: random.Random, low: float, high: float, scale: float) -> list[float]:
    """A random walk between two walls."""
    now, values = chance.uniform(low, high), []
    for _ in range(STEPS):
        now = min(max(now + chance.gauss(0.0, scale), low), high)
        values.append(now)
    return values


def course(of: Callable[[int], float], scale: float = 0.3, carried: float = 0.6) -> Made:
    """A course with noise on it."""
    return lambda chance: [of(step) + rest for step, rest in enumerate(ar(chance, STEPS, scale, carried), 1)]


QUIET: dict[str, Made] = {
    "AR(1) 0.6, sd 1, at 80": course(lambda _: 80.0, 1.0, 0.6),
    "AR(1) 0.9, sd 1, at 80": course(lambda _: 80.0, 1.0, 0.9),
    "AR(1) 0.95, sd 2, at 80": course(lambda _: 80.0, 2.0, 0.95),
    "AR(1) 0.9, sd 1, at 90": course(lambda _: 90.0, 1.0, 0.9),
    "random walk of 0.3 a step, 50 to 85": lambda chance: walk(chance, 50.0, 85.0, 0.3),
    "random walk of 0.5 a step, 50 to 85": lambda chance: walk(chance, 50.0, 85.0, 0.5),
    "random walk of 1 a step, 50 to 85": lambda chance: walk(chance, 50.0, 85.0, 1.0),
    "saw-tooth of 10 in 25 steps, from 75": course(lambda step: 75.0 + 0.4 * (step % 25)),
    "validation takes 15 for a step in 25": course(lambda step: 75.0 + (15.0 if step % 25 == 0 else 0.0)),
    "grows from 50 to 80 and slows down": course(lambda step: 50.0 + 30.0 * (1 - exp(-step / 30))),
    "jumps from 60 to 85": course(lambda step: 60.0 if step < STEPS // 2 else 85.0),
}
"""Memory that does not reach the limit."""


def first_told(values: Iterable[float]) -> tuple[int, Lead] | None:
    """The first step at which the limit is foreseen, and what is said then."""
    series = Approach()
    for step, value in enumerate(values, 1):
        series.add(step, value, LIMIT, inf)
        if series.lead is not None:
            return step, series.lead
    return None


def leaks(rate: float, scale: float, count: int, seed: int) -> tuple[list[int], int]:
    """Leads of so many leaks, 0 for one that was not told; and how often the interval held the truth."""
    leads, held = [], 0
    for number in range(count):
        chance = random.Random(f"{seed}/{rate}/{scale}/{number}")
        steps = BEGINS + number + int(60 / rate)
        noise = ar(chance, steps, scale, 0.6)
        values = [50.0 + rate * max(0, step - BEGINS - number) + noise[step - 1] for step in range(1, steps + 1)]
        full = next(step for step, value in enumerate(values, 1) if value >= LIMIT)
        told = first_told(values[: full - 1])
        leads.append(full - told[0] if told else 0)
        held += bool(told and told[1].steps.low - 1 <= full - told[0] <= told[1].steps.high + 1)
    return sorted(leads), held


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="runs of each kind that does not leak (200)")
    parser.add_argument("--leaks", type=int, default=20, help="leaks of each rate and noise (20)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    sys.stdout.write(
        f"{'leak, % a step':>15} {'noise':>6} {'steps to go':>12}  lead: least, median, most; interval holds\n"
    )
    for rate in (0.1, 0.3, 1.0, 3.0):
        for scale in (0.0, 0.3, 1.0):
            leads, held = leaks(rate, scale, given.leaks, given.seed)
            text = f"{leads[0]:>5} {median(leads):>6.0f} {leads[-1]:>6}  {held}/{given.leaks}"
            sys.stdout.write(f"{rate:>15} {scale:>6} {(LIMIT - 50) / rate:>12.0f}  {text}\n")
            sys.stdout.flush()
    sys.stdout.write(f"\n{'not leaking':>40}  told, of {given.runs} runs of {STEPS} steps\n")
    began, steps = perf_counter(), 0
    for name, made in QUIET.items():
        told = sum(first_told(made(random.Random(f"{given.seed}/{n}"))) is not None for n in range(given.runs))
        steps += given.runs * STEPS
        sys.stdout.write(f"{name:>40}  {told:>4} ({told / given.runs:.1%})\n")
        sys.stdout.flush()
    sys.stdout.write(f"\n{1e6 * (perf_counter() - began) / steps:.0f} microseconds a step, less after the first word\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
