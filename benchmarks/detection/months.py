"""Does the default budget keep its promise?  Alarms per month of runs in which nothing happens.

    python benchmarks/detection/months.py [--months 100] [--step-s 90] [--budget 1] [--stress corr] [--seed 35]

Each month is a run of 30 days as the engine of the daemon sees it: step lines with every phase, the step and its work,
validation every 25 steps and a checkpoint every 50, in runs whose responses lengthen and shorten slowly (see
generate.py).  What would have been told to people is counted: incidents, after the series of the run, the rules and
the merging.  Every one of them is false.

The error is that of the mean over the months.  100 months take about ten minutes of two cores.
"""

from __future__ import annotations

import argparse
import math
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from benchmarks.detection.generate import PHYSICS, batches, phase_seconds
from benchmarks.detection.score import stresses_of
from verlwatch.core.engine import Engine
from verlwatch.core.settings import Settings
from verlwatch.core.steps import TOTAL_TOKENS
from verlwatch.core.types import NOBODY, Extract, Origin, Samples

MONTH_S = 30 * 86_400.0
AT_ONCE = 500  # steps that the engine is given in one call
VALIDATES, SAVES = 25, 50  # every so many steps
OTHER_S = 0.5
SOURCE = "train.log"


@dataclass(frozen=True, slots=True)
class Month:
    """What runs are like, and what they may cost: ``budget`` false alarms."""

    step_s: float
    budget: float
    stresses: frozenset[str]
    seed: int


def alarms(month: Month, number: int) -> Counter[str]:
    """Incidents opened in one month, by the phase that names them."""
    engine = Engine(Settings(false_alarms_per_month=month.budget))
    opened: Counter[str] = Counter()
    samples = step_lines(month, number)
    while records := tuple(islice(samples, AT_ONCE)):
        outcome = engine.accept([Extract(SOURCE, "run", records)], records[-1].origin.end * month.step_s)
        opened.update(told.phase for told in outcome.transitions if told.event == "opened")
    (run,) = engine.runs.values()
    if run.judged.quarantined or not run.judged.series:
        raise RuntimeError(f"month {number}: not all was judged: {run.judged.quarantined}")
    return opened


def step_lines(month: Month, number: int) -> Iterator[Samples]:
    """What a run prints in a month."""
    steps = int(MONTH_S / month.step_s)
    rng = np.random.default_rng([month.seed, number])
    done = batches(rng, steps)
    columns = {
        f"timing_s/{phase}": phase_seconds(rng, phase, done, month.step_s, month.stresses)[0] for phase in PHYSICS
    }
    t = np.arange(steps)
    columns |= {
        "timing_s/testing": np.where(
            t % VALIDATES == VALIDATES - 1, rng.lognormal(math.log(month.step_s), 0.1, steps), 0.0
        ),
        "timing_s/save_checkpoint": np.where(t % SAVES == SAVES - 1, rng.lognormal(math.log(30.0), 0.15, steps), 0.0),
    }
    columns["timing_s/step"] = sum(columns.values()) + OTHER_S * np.exp(rng.normal(0.0, 0.1, steps))
    columns |= {TOTAL_TOKENS: done.tokens, "response_length/max": done.longest}
    for step, row in enumerate(zip(*(column.tolist() for column in columns.values()), strict=True), 1):
        values = {name: value for name, value in zip(columns, row, strict=True) if value}
        yield Samples(Origin(SOURCE, 1, step, NOBODY, "step_metrics"), step, values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--months", type=int, default=100)
    parser.add_argument("--step-s", type=float, default=90.0, help="seconds of a step (default 90)")
    parser.add_argument(
        "--budget", type=float, default=Settings().false_alarms_per_month, help="false_alarms per month"
    )
    parser.add_argument("--stress", type=stresses_of, default=frozenset(), help="corr,heavy,quad,wander")
    parser.add_argument("--seed", type=int, default=35)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one per core)")
    args = parser.parse_args()
    month = Month(args.step_s, args.budget, args.stress, args.seed)
    with ProcessPoolExecutor(args.jobs) as pool:
        found = list(pool.map(partial(alarms, month), range(args.months)))
    counts = np.array([opened.total() for opened in found])
    error = math.sqrt(max(counts.var(ddof=1), counts.mean(), 1.0 / len(counts)) / len(counts))
    print(
        f"{args.months} months of {MONTH_S / args.step_s:,.0f} steps, {args.budget:g} false alarm(s) a month promised"
    )
    print(f"told: {counts.sum()}, {counts.mean():.2f} ± {error:.2f} a month; at most {counts.max()} in one")
    print("by phase: " + ", ".join(f"{phase} {count}" for phase, count in sum(found, Counter()).most_common()))


if __name__ == "__main__":
    main()
