"""How well a detector tells slow phases from steps that had more to do, on generated series whose truth is known.

    python benchmarks/detection/score.py [MODULE:FUNCTION] [--series 25] [--null 40] [--seed 35] [--rate 1]
                                         [--stress corr,heavy] [--jobs 2] [--json FILE]

``FUNCTION(phase, rate)`` makes a detector of one series that is asked for ``rate`` false alarms per 10,000 steps; the
default is the watch of verlwatch.  The detector has ``update(step, seconds, tokens, longest, restart)``, called once a
step, which answers with (kind, onset, ratio) of each alarm: the first changed step and new over old, 0 if it does not
know.  Kind ``close`` says that a change is over; it is no alarm.  Optional are ``state()``, whose size as JSON is told,
and ``finish()``, which answers with (step, kind, onset, ratio) once the series has ended.

Each kind of series is made for gen and for update_actor.  Quiet ones: 2,000 steps of a run that stays as it is, 1,500
of benign ones; every alarm in them is false.  Faults: 750 steps.  A fault counts as detected if an alarm comes within
300 steps of its onset (in a shorter one: while it lasts, and two steps more), and its delay counts the first changed
step as 1.  Further alarms until then are ``extra``.  ``closed`` is the share of faults that end and are closed within
three steps of their end.  An excursion is four steps at x4, and a lasting x1.6 eighty steps after their onset: alarms
between the two are ``spurious``, ``again`` is the share of lasting ones told within 20 steps.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

from benchmarks.detection.generate import FAULTS, LENGTHS, STRESSES, Series, series

OURS = "benchmarks.detection.adapter:make"
PHASES = ("gen", "update_actor")
QUIET_STEPS, BENIGN_STEPS, FAULT_STEPS = 2000, 1500, 750
CLOSED_WITHIN, AGAIN_WITHIN, SETTLED = 3, 20, 8


class Detector(Protocol):
    """What is scored."""

    def update(
        self, step: int, seconds: float, tokens: float, max_len: float, restart: bool
    ) -> Iterable[tuple[str, int, float]]:
        """One step; (kind, onset step, ratio) of each alarm."""


Make = Callable[[str, float], Detector]


class Event(NamedTuple):
    """What a detector said, and when."""

    step: int
    kind: str
    onset: int
    ratio: float


@dataclass(frozen=True, slots=True)
class Job:
    """One series to be made and shown to a detector."""

    make: Make
    seed: int
    steps: int
    kind: str
    phase: str
    rate: float
    stresses: frozenset[str]


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said of one series, its truth, and what it cost: processor seconds, bytes of state."""

    kind: str
    phase: str
    steps: int
    onset: int
    end: int
    events: tuple[Event, ...]
    spent_s: float
    state_bytes: int

    @property
    def alarms(self) -> list[Event]:
        """All but closings."""
        return [event for event in self.events if event.kind != "close"]


def listen(job: Job) -> Heard:
    """Makes the series and shows it to a new detector."""
    made = series(job.seed, job.steps, job.kind, job.phase, job.stresses)
    return hear(job.make(job.phase, job.rate), made)


def hear(detector: Detector, made: Series) -> Heard:
    """Shows a series to a detector."""
    columns = (made.seconds.tolist(), made.tokens.tolist(), made.longest.tolist(), made.restart.tolist())
    events: list[Event] = []
    began = time.process_time()
    for step, row in enumerate(zip(*columns, strict=True)):
        events += [Event(step, *said) for said in detector.update(step, *row)]
    if finish := getattr(detector, "finish", None):
        events += [Event(*said) for said in finish()]
    spent = time.process_time() - began
    state = getattr(detector, "state", None)
    size = len(json.dumps(state(), separators=(",", ":"))) if state else 0
    return Heard(made.kind, made.phase, len(columns[0]), made.onset, made.end, tuple(events), spent, size)


def plan(make: Make, faulty: int, quiet: int, seed: int, rate: float, stresses: frozenset[str]) -> list[Job]:
    """All jobs: ``faulty`` series of each fault, ``quiet`` undisturbed ones, and half as many of each benign kind."""
    sizes = {
        "null": (quiet, QUIET_STEPS),
        **dict.fromkeys(LENGTHS, ((quiet + 1) // 2, BENIGN_STEPS)),
        **dict.fromkeys(FAULTS, (faulty, FAULT_STEPS)),
    }
    return [
        Job(make, seed * 1_000_000 + number, steps, kind, phase, rate, stresses)
        for kind, (count, steps) in sizes.items()
        for phase in PHASES
        for number in range(count)
    ]


def score(jobs: Sequence[Job], processes: int | None = None) -> dict[str, Any]:
    """What was measured: ``quiet`` and ``faults`` by kind, ``us_per_update``, ``state_bytes``; ready for JSON."""
    if processes == 1:
        heard = [listen(job) for job in jobs]
    else:
        with ProcessPoolExecutor(processes) as pool:
            heard = list(pool.map(listen, jobs, chunksize=4))
    by_kind: dict[str, list[Heard]] = {}
    for one in heard:
        by_kind.setdefault(one.kind, []).append(one)
    return {
        "us_per_update": round(1e6 * sum(one.spent_s for one in heard) / max(1, sum(one.steps for one in heard)), 1),
        "state_bytes": max((one.state_bytes for one in heard), default=0),
        "quiet": {kind: false_alarms(by_kind[kind]) for kind in ("null", *LENGTHS) if kind in by_kind},
        "faults": {kind: told(kind, by_kind[kind]) for kind in FAULTS if kind in by_kind},
    }


def false_alarms(heard: Sequence[Heard]) -> dict[str, float]:
    """Alarms per 10,000 steps of undisturbed series, with the standard error that the series themselves show."""
    counts = [len(one.alarms) for one in heard]
    steps = sum(one.steps for one in heard)
    mean = sum(counts) / len(counts)
    spread = sum((count - mean) ** 2 for count in counts) / max(1, len(counts) - 1)
    # Counts that never differ say little of their error: it is never taken to be below that of one alarm.
    error = math.sqrt(max(len(counts) * spread, sum(counts), 1.0))
    return {
        "per_10k": round(1e4 * sum(counts) / steps, 2),
        "error": round(1e4 * error / steps, 2),
        "alarms": sum(counts),
        "steps": steps,
    }


def told(kind: str, heard: Sequence[Heard]) -> dict[str, Any]:
    """How a fault was told: by phase and in both, and what the alarms said of it."""
    fault = FAULTS[kind]
    hits = [(one, [e for e in one.alarms if one.onset <= e.step < one.onset + fault.within]) for one in heard]
    first = [(one, alarms[0]) for one, alarms in hits if alarms]
    out: dict[str, Any] = {
        phase: _delays([(one, alarms) for one, alarms in hits if phase in {one.phase, "both"}])
        for phase in (*PHASES, "both")
    }
    out["extra"] = round(sum(len(alarms) - 1 for _, alarms in hits if alarms) / len(heard), 3)
    out["onset_error"] = _middle([abs(alarm.onset - one.onset) for one, alarm in first])
    if fault.ratio is not None:
        off = [abs(alarm.ratio / fault.ratio - 1.0) for _, alarm in first if alarm.ratio]
        out["effect_error"] = _middle(off)
    if fault.lasts is not None:
        ends = [any(0 <= e.step - one.end < CLOSED_WITHIN for e in one.events if e.kind == "close") for one in heard]
        out["closed"] = round(sum(ends) / len(ends), 3)
    if fault.again is not None:
        spurious, again = 0, 0
        for one in heard:
            after = [e.step - one.onset for e in one.alarms]
            spurious += sum(SETTLED <= since < fault.again for since in after)
            again += any(0 <= since - fault.again < AGAIN_WITHIN for since in after)
        out |= {"spurious": round(spurious / len(heard), 3), "again": round(again / len(heard), 3)}
    return out


def _delays(hits: Sequence[tuple[Heard, list[Event]]]) -> dict[str, float | None]:
    delays = [alarms[0].step - one.onset + 1 for one, alarms in hits if alarms]
    middle, late = _middle(delays)
    return {"detected": round(len(delays) / max(1, len(hits)), 3), "median": middle, "p90": late}


def _middle(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """Median, and the smallest value that nine in ten do not exceed."""
    if not values:
        return None, None
    return round(median(values), 4), round(sorted(values)[math.ceil(0.9 * len(values)) - 1], 4)


# ---------------------------------------------------------------------------------------------------- the table
def table(scored: Mapping[str, Any]) -> str:
    """For reading."""
    lines = [f"{'undisturbed':<14}{'steps':>9}{'alarms':>9}   per 10,000"]
    for kind, row in scored["quiet"].items():
        lines.append(f"{kind:<14}{row['steps']:>9,}{row['alarms']:>9}   {row['per_10k']:.2f} ± {row['error']:.2f}")
    told_of = "".join(f"{phase:<19}" for phase in (*PHASES, "both"))
    lines += ["", f"{'fault':<14}{told_of}{'onset':<8}{'effect %':<11}{'closed':<8}extra"]
    for kind, row in scored["faults"].items():
        delays = "".join(f"{_told(row[phase]):<19}" for phase in (*PHASES, "both"))
        onset, effect = _pair(row["onset_error"]), _pair(row.get("effect_error", (None, None)), 100.0)
        closed = f"{100 * row['closed']:.0f} %" if "closed" in row else ""
        lines.append(f"{kind:<14}{delays}{onset:<8}{effect:<11}{closed:<8}{row['extra']:.2f}")
        if "again" in row:
            lines.append(
                f"{'':<14}{row['spurious']:.2f} spurious, the lasting shift seen in {100 * row['again']:.0f} %"
            )
    state = f"{scored['state_bytes']:,} bytes of state" if scored["state_bytes"] else "state not told"
    return "\n".join([*lines, "", f"{scored['us_per_update']:.1f} µs per update, {state}"])


def _told(row: Mapping[str, Any]) -> str:
    return f"{100 * row['detected']:.0f} % {_pair((row['median'], row['p90']))}".rstrip()


def _pair(values: Sequence[float | None], unit: float = 1.0) -> str:
    return "/".join(f"{unit * value:.3g}" for value in values if value is not None)


def load(name: str) -> Make:
    """The function that ``module:function`` names."""
    module, _, function = name.partition(":")
    made: Make = getattr(importlib.import_module(module), function or "make")
    return made


def stresses_of(text: str) -> frozenset[str]:
    """From ``corr,heavy``."""
    named = frozenset(filter(None, text.split(",")))
    if unknown := named - set(STRESSES):
        raise argparse.ArgumentTypeError(f"no such stress: {', '.join(unknown)}; there are {', '.join(STRESSES)}")
    return named


def parser(text: str | None) -> argparse.ArgumentParser:
    """The arguments that all scripts of this folder take."""
    arguments = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--series", type=int, default=25, help="series of each fault and phase (default 25)")
    arguments.add_argument("--null", type=int, default=40, help="undisturbed series of each phase (default 40)")
    arguments.add_argument("--seed", type=int, default=35)
    arguments.add_argument(
        "--rate", type=float, default=1.0, help="false alarms asked for, per 10,000 steps (default 1)"
    )
    arguments.add_argument("--stress", type=stresses_of, default=frozenset(), help=f"some of {','.join(STRESSES)}")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one per core)")
    arguments.add_argument("--json", type=Path, help="write what was measured to this file, too")
    return arguments


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("detector", nargs="?", type=load, default=OURS, help="MODULE:FUNCTION (default: the watch)")
    args = arguments.parse_args()
    scored = score(plan(args.detector, args.series, args.null, args.seed, args.rate, args.stress), args.jobs)
    print(table(scored))
    if args.json:
        args.json.write_text(json.dumps(scored, indent=1) + "\n")


if __name__ == "__main__":
    main()
