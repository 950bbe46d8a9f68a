"""The level channel on the Turing change point dataset: `python benchmarks/detection/tcpd.py DIRECTORY`.

DIRECTORY is a clone of https://github.com/alan-turing-institute/TCPD: ``annotations.json``, and in folders the series
as JSON.  Without one it is told what to give.

These series are short, few are times, and many go down: each is standardised by its own median and median absolute
deviation (which looks ahead, as the benchmark allows) and mapped so that a deviation is five per cent, and the watch is
asked twice, for rises and for falls.  Series of several dimensions are left out.  F1 and cover are those of van den
Burg and Williams (2020), with a margin of five steps, and step 0 counts as a change that everybody finds.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Literal

from verlwatch.core.series import Watch
from verlwatch.core.types import SeriesKey, Workload

MARGIN = 5
DEVIATION = 0.05  # log units
FARTHEST = 400.0  # deviations
WANTED = (
    "give the directory of the Turing change point dataset, a clone of https://github.com/alan-turing-institute/TCPD: "
    "annotations.json, and in folders its series as *.json (its README tells how to get those that it does not carry)"
)


def changes(values: Sequence[float | None], rate: float) -> list[int]:
    """Where the watch sees the level change, asked for ``rate`` false alarms per step."""
    known = [value for value in values if value is not None]
    middle = median(known)
    deviation = 1.4826 * median(abs(value - middle) for value in known) or 1.0
    found: set[int] = set()
    for worse in ("up", "down"):
        for onset in _rises(values, middle, DEVIATION / deviation, rate, worse):
            if all(abs(onset - other) > MARGIN for other in found):
                found.add(onset)
    return sorted(found)


def _rises(
    values: Sequence[float | None], middle: float, unit: float, rate: float, worse: Literal["up", "down"]
) -> list[int]:
    watch = Watch(SeriesKey("tcpd", "level"), (0.0, 0.0), rate, worse=worse)
    onsets = []
    for step, value in enumerate(values):
        if value is not None:
            y = max(-FARTHEST, min(FARTHEST, (value - middle) * unit / DEVIATION)) * DEVIATION
            points = watch.update(step, math.exp(y), Workload())
            onsets += [point.onset for point in points if point.kind == "level" and point.action != "settled"]
    return onsets


def f1(annotated: Sequence[Sequence[int]], found: Sequence[int], margin: int = MARGIN) -> float:
    """Precision over the changes that any annotator saw, recall averaged over annotators; their harmonic mean."""
    said = {0, *found}
    truths = [{0, *one} for one in annotated]
    precision = len(_matched(set().union(*truths), said, margin)) / len(said)
    recall = fmean(len(_matched(truth, said, margin)) / len(truth) for truth in truths)
    return 2.0 * precision * recall / (precision + recall)


def _matched(truth: set[int], said: set[int], margin: int) -> set[int]:
    """Changes that were found, each by a finding of its own."""
    left, matched = set(said), set()
    for change in sorted(truth):
        near = [found for found in left if abs(found - change) <= margin]
        if near:
            left.remove(min(near, key=lambda found: abs(found - change)))
            matched.add(change)
    return matched


def cover(annotated: Sequence[Sequence[int]], found: Sequence[int], length: int) -> float:
    """How well the found segments cover the annotated ones (Jaccard), averaged over annotators."""
    said = _segments(found, length)
    return fmean(
        sum((b - a) * max(_jaccard(a, b, *other) for other in said) for a, b in _segments(one, length)) / length
        for one in annotated
    )


def _segments(changes: Sequence[int], length: int) -> list[tuple[int, int]]:
    edges = sorted({0, *changes, length})
    return list(pairwise(edges))


def _jaccard(a: int, b: int, c: int, d: int) -> float:
    both = max(0, min(b, d) - max(a, c))
    return both / (b - a + d - c - both)


def load(folder: Path) -> dict[str, tuple[list[float | None], list[list[int]]]]:
    """By name: the values of each annotated series of one dimension, and the changes that each annotator saw.

    Raises:
        SystemExit: If there are none.
    """
    try:
        annotations: Mapping[str, Mapping[str, list[int]]] = json.loads((folder / "annotations.json").read_text())
    except FileNotFoundError:
        raise SystemExit(f"{folder} has no annotations.json; {WANTED}") from None
    out = {}
    for path in sorted(folder.rglob("*.json")):
        data = json.loads(path.read_text())
        if data.get("name") in annotations and len(data.get("series", ())) == 1:
            out[data["name"]] = (data["series"][0]["raw"], list(annotations[data["name"]].values()))
    if not out:
        raise SystemExit(f"{folder} has no annotated series; {WANTED}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--rate", type=float, default=1e-3, help="false alarms asked for, per step (default 1e-3)")
    args = parser.parse_args()
    if args.directory is None:
        print(WANTED)
        return
    annotations = load(args.directory)
    print(f"{'series':<28}{'steps':>6} {'annotated':>9} {'found':>6} {'F1':>6} {'cover':>6}")
    rows, nothing = [], []
    for name, (values, annotated) in annotations.items():
        found = changes(values, args.rate)
        rows.append((f1(annotated, found), cover(annotated, found, len(values))))
        nothing.append((f1(annotated, []), cover(annotated, [], len(values))))
        seen = len(set().union(*annotated))
        print(f"{name:<28}{len(values):>6} {seen:>9} {len(found):>6} {rows[-1][0]:>6.2f} {rows[-1][1]:>6.2f}")
    for name, of in ((f"mean of {len(rows)}", rows), ("who finds nothing", nothing)):
        print(f"{name:<51} {fmean(f for f, _ in of):>6.3f} {fmean(c for _, c in of):>6.3f}")


if __name__ == "__main__":
    main()
