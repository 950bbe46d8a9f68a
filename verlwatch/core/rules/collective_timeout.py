"""A collective that did not end: NCCL or HCCL gave up, on which ranks and at which sequence number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from verlwatch.core.rules._life import death, number, of
from verlwatch.core.rules._life_view import Fault, LifeView
from verlwatch.core.types import Diagnosis
from verlwatch.core.words import duration, listed

NAME = "collective_timeout"
NEEDS = "the watchdog's line of NCCL or HCCL"
TURN_ON = ""
ADVICE = (
    "The rank that is missing among those that waited is the one to look at: it died, hangs elsewhere, or went another "
    "way through the code.",
    "If a rank was only slow (a long checkpoint, a tokenizer), raise actor_rollout_ref.nccl_timeout.",
)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis of all ranks that waited."""
    faults = of(view, "collective_timeout")
    faults += tuple(f for f in of(view, "npu_error") if f.said.get("collective_timeout"))
    if not faults:
        return ()
    said = faults[0].said
    backend = str(said.get("backend", "hccl" if faults[0].kind == "npu_error" else "nccl")).upper()
    ranks = _ranks(faults)
    who = f": rank {listed(ranks)} waited" if len(ranks) == 1 else f": ranks {listed(ranks)} waited" if ranks else ""
    return (death(NAME, view, f"{backend} timeout{who}", faults=faults, facts=_facts(faults), advice=ADVICE),)


def _ranks(faults: tuple[Fault, ...]) -> list[str]:
    return [str(rank) for rank in sorted({int(f.said["rank"]) for f in faults if "rank" in f.said})]


def _facts(faults: tuple[Fault, ...]) -> Iterator[tuple[str, str]]:
    said = faults[0].said
    yield "Operation", str(said.get("op", ""))
    by_seq = Counter(int(f.said["seq"]) for f in faults if "seq" in f.said)
    yield (
        "SeqNum",
        ", ".join(f"{seq} ({count}×)" if count > 1 else str(seq) for seq, count in sorted(by_seq.items())[:6]),
    )
    ran = number(said, "ran_s")
    yield "Waited", duration(ran) if ran else ""
