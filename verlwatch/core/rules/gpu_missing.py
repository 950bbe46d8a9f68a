"""A card that is not there any more while its host goes on telling of the others."""

from __future__ import annotations

from verlwatch.core.rules._memory_view import CardFault, MemoryView, of_card, sentence
from verlwatch.core.types import Diagnosis

NAME = "gpu_missing"
NEEDS = "samples of the cards of a host"
TURN_ON = "Sample the GPUs (`gpu:` in the configuration; extra `nvml`, or nvidia-smi)"
ADVICE = (
    "Look at the kernel's log of that host (dmesg | grep -i -e NVRM -e Xid): a card that has fallen off the bus needs "
    "a reset of the node. The run hangs or dies with it.",
)


def diagnose(view: MemoryView) -> tuple[Diagnosis, ...]:
    """One diagnosis for each card that has vanished."""
    return tuple(_diagnosis(view, fault) for fault in view.missing)


def _diagnosis(view: MemoryView, fault: CardFault) -> Diagnosis:
    found = dict(fault.scope)
    name = f"GPU {found['gpu']}" if "gpu" in found else fault.subject
    rank = f" (rank {found['rank']})" if "rank" in found else ""
    place = f" on {found['host']}" if found.get("host") else ""
    return of_card(
        NAME,
        view,
        f"gpu {fault.subject}" if not fault.subject.startswith("gpu ") else fault.subject,
        fault.scope,
        "critical",
        fault.onset,
        f"{name}{rank}{place} has vanished: its host does not see it any more",
        evidence=(fault.detail or "the driver does not list it",),
        advice=ADVICE,
        facts=(
            ("Last seen in step", str(max(fault.onset, 0))),
            ("Where", sentence((place.removeprefix(" on "), name, rank.strip(" ()")))),
        ),
    )
