"""Cards beside their peers: false alarms, and how soon a leak and a shard error are told.

    python benchmarks/gpu_memory.py                     # 10,000 steps without a fault, then faults; about ten minutes
    python benchmarks/gpu_memory.py --steps 1000        # a tenth of it
    python benchmarks/gpu_memory.py --cost              # 64 cards at 1 s: seconds of a core for an hour of samples

The fleet is made up (`tests/core/gpu_fleet.py`): colocated swings of 40 GB each step, every card 0 to 5 s late at each
change of phase, samples every 10 s.  Trust orderings more than figures.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.core.gpu_fleet import Fleet, alarms, watch
from verlwatch.core.cards import Cards

SHAPES: tuple[tuple[str, int, dict[str, Any]], ...] = (
    # name, share of the steps, fleet
    ("8 cards", 4, {}),
    ("64 cards of 8 hosts", 1, {"hosts": 8}),
    ("2 hosts, 5 % of samples lost, clocks 4 ms apart", 2, {"hosts": 2, "lost": 0.05, "skew_s": 0.004}),
    ("each card late by its own", 4, {"steady": True}),
    ("steps of 20 s", 4, {"step_s": 20.0}),
    ("steps of 10 s", 4, {"step_s": 10.0}),
    ("steps of 300 s", 1, {"step_s": 300.0}),
    ("gen 15 % of a step, levels ±5 GB", 4, {"gen_share": 0.15, "varying_gb": 5.0}),
    ("noise of 0.8 GB", 4, {"noise_gb": 0.8}),
    ("2 cards", 4, {"gpus": 2}),
)
RUN = 250
ONSET = 30
_RATE = re.compile(r"growing ([0-9.]+) GB a step")


def undisturbed(steps: int, seed: int) -> None:
    """What people are told though nothing is wrong."""
    whole = sum(share for _, share, _ in SHAPES)
    for name, share, shape in SHAPES:
        count, told = max(RUN, steps * share // whole), list[str]()
        for run in range(max(1, count // RUN)):
            known: set[str] = set()
            for step, _, found in watch(Fleet(seed=seed + run, **shape), RUN):
                now = {diagnosis.subject: diagnosis.title for diagnosis in alarms(found)}
                told += [f"step {step}: {title}" for subject, title in now.items() if subject not in known]
                known = set(now)
        print(
            f"{name:50} {max(1, count // RUN) * RUN:6} steps   {len(told)} false alarms  {told[:2] or ''}", flush=True
        )


def leaks(runs: int, seed: int) -> None:
    """How many steps after its onset a leak of 1.1 GB a step is told, of whom, and with which rate."""
    for name, _, shape in SHAPES:
        delays, rates, wrong = Counter[int](), list[float](), 0
        for run in range(runs):
            fleet = Fleet(
                seed=seed + run, more=lambda card, _, step: 1.1 * max(0, step - ONSET + 1) * (card == 1), **shape
            )
            for step, _, found in watch(fleet, ONSET + 12):
                told = alarms(found)
                if told:
                    delays[step - ONSET + 1] += 1
                    wrong += any(diagnosis.subject != "memory rank 1" for diagnosis in told)
                    rates += [float(rate) for diagnosis in told for rate in _RATE.findall(diagnosis.title)]
                    break
        far = sum(abs(rate / 1.1 - 1) > 0.15 for rate in rates)
        shown = " ".join(f"{delay}:{count}" for delay, count in sorted(delays.items()))
        print(f"{name:50} told at step {shown}; wrong card {wrong}; rate told {len(rates)}, off by over 15 % {far}")


def shards(runs: int, seed: int) -> None:
    """After how many samples 45 GB beside 28 GB are told, from the first sample on."""
    samples = Counter[int]()
    for run in range(runs):
        fleet = Fleet(seed=seed + run, more=lambda card, _at, _step: 17.0 if card == 3 else 0.0)
        samples[_samples_until_told(fleet)] += 1
    print("a shard error: complete samples until told", dict(sorted(samples.items())))


def _samples_until_told(fleet: Fleet) -> int:
    cards, instants = Cards("run"), list[float]()
    for step, _, events in fleet.steps(20):
        for event in events:
            at = event.at or 0.0
            cards.hear(event, step - 1, at)
            if at not in instants:
                instants.append(at)
                if alarms(cards.diagnose(step - 1, at)):
                    return len(instants) - 1
    return -1


def cost(hosts: int = 8, hours: float = 1.0) -> None:
    """Seconds of a core for an hour of 64 cards at 1 s, steps and rules included."""
    fleet = Fleet(hosts=hosts, period_s=1.0)
    told = list(fleet.steps(int(hours * 60)))
    cards, begin = Cards("run"), time.process_time()
    for step, end, events in told:
        for event in events:
            cards.hear(event, step - 1, event.at or 0.0)
        cards.stepped(step, end, fleet.seconds())
        cards.diagnose(step, end)
    spent = time.process_time() - begin
    print(f"{8 * hosts} cards at 1 s: {spent:.1f} s of a core an hour, {spent / 36 / hours:.2f} %")


def main(arguments: Iterable[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=35)
    parser.add_argument("--cost", action="store_true")
    given = parser.parse_args(None if arguments is None else list(arguments))
    if given.cost:
        cost()
        return
    undisturbed(given.steps, given.seed)
    leaks(given.runs, given.seed)
    shards(given.runs, given.seed)


if __name__ == "__main__":
    main()
