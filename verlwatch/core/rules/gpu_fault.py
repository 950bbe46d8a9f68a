"""A fault of a card itself: an Xid of the driver, memory errors, links that fail, a card slowed down by heat."""

from __future__ import annotations

from typing import NamedTuple

from verlwatch.core.rules._memory_view import CardFault, MemoryView, of_card
from verlwatch.core.types import Diagnosis, Severity

NAME = "gpu_fault"
NEEDS = "samples of the cards with their counters, or the driver's Xid messages"
TURN_ON = "Sample the GPUs (`gpu:` in the configuration; extra `nvml`, or nvidia-smi)"


class Xid(NamedTuple):
    """What NVIDIA's list of Xid errors says of a number."""

    words: str
    severity: Severity
    advice: str


_APP = "Mostly an error of the program that ran: look for its traceback; if it comes back on one card only, suspect it."
_RESET = "Take the card out of use and reset it or its node."
XIDS = {
    13: Xid("graphics engine exception", "warning", _APP),
    31: Xid("memory page fault", "warning", _APP),
    43: Xid("a process' channel was reset", "warning", _APP),
    45: Xid("preemptive cleanup, as after a process was killed", "warning", _APP),
    48: Xid("double bit ECC error", "critical", _RESET),
    63: Xid("a row of memory is to be remapped", "warning", "Reset the card when the run has ended."),
    64: Xid("a row of memory could not be remapped", "critical", _RESET),
    74: Xid("NVLink error", "critical", _RESET),
    79: Xid("the card has fallen off the bus", "critical", _RESET),
    92: Xid("many single bit ECC errors", "warning", "Watch the card; have it replaced if it goes on."),
    94: Xid("contained ECC error", "critical", "The process that ran is lost; reset the card when it can be."),
    95: Xid("uncontained ECC error", "critical", _RESET),
    119: Xid("the card's own processor does not answer (GSP)", "critical", _RESET),
    120: Xid("error of the card's own processor (GSP)", "critical", _RESET),
}
"""Source: NVIDIA's document "XID Errors", the common ones."""

_KINDS: dict[str, Xid] = {
    "ecc": Xid("memory errors that ECC could not correct", "critical", _RESET),
    "driver_reload": Xid("the driver was loaded anew", "warning", "Whatever ran on the host's cards has lost them."),
    "unreadable": Xid("cannot be read", "warning", "Look at the driver (nvidia-smi) and who may ask it on that host."),
    "nvlink": Xid("errors on its NVLinks", "warning", "Look at nvidia-smi nvlink -e; collectives wait for this card."),
    "pcie": Xid("PCIe transfers are repeated", "warning", "Look at the seat and the riser of the card."),
    "thermal": Xid("slowed down by heat", "warning", "Look at fans, air and the load of the neighbours."),
    "hw_slowdown": Xid("slowed down by its hardware (power brake, heat)", "warning", "Look at power and cooling."),
}


def diagnose(view: MemoryView) -> tuple[Diagnosis, ...]:
    """One diagnosis for each fault that holds."""
    return tuple(_diagnosis(view, fault) for fault in view.faults)


def _diagnosis(view: MemoryView, fault: CardFault) -> Diagnosis:
    known = _KINDS.get(fault.kind, Xid(fault.kind or "fault", "warning", ""))
    if fault.kind == "xid":
        known = XIDS.get(fault.code or 0, Xid("see NVIDIA's list of Xid errors", "warning", ""))
    found = dict(fault.scope)
    card = f"GPU {found['gpu']}" if "gpu" in found else "the GPUs"
    rank = f" (rank {found['rank']})" if "rank" in found else ""
    place = f" on {found['host']}" if found.get("host") else ""
    what = f"Xid {fault.code}: {known.words}" if fault.code else known.words
    times = f", {fault.seen} times" if fault.seen > 1 and fault.kind in {"xid", "ecc", "driver_reload"} else ""
    return of_card(
        NAME,
        view,
        f"{fault.kind} {fault.subject}",
        fault.scope,
        known.severity,
        max(fault.onset, 0),
        f"{card}{rank}{place}: {what}{times}",
        evidence=(fault.detail or known.words,),
        advice=(known.advice,) if known.advice else (),
        facts=(
            ("Since step", str(max(fault.onset, 0))),
            ("Where", f"{card}{rank}{place}"),
            ("Fault", what),
        ),
    )
