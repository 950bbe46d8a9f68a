"""What a rule about GPUs sees: the cards of one run, compared at the same instants.

All memory is in GiB, called GB as verl, vLLM and nvidia-smi's readers do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from verlwatch.core.types import Diagnosis, Scope, Severity


class Growth(NamedTuple):
    """An offset that grows: by so many GB a step and a second, until the card is full in so many steps and seconds.

    None where it is not known: steps without times, a card that does not tell its size.
    """

    gb_per_step: float | None
    gb_per_s: float | None
    full_in_steps: float | None
    full_in_s: float | None


class Apart(NamedTuple):
    """A card that holds other memory than its peers since step ``onset``.

    ``before`` is the offset that the card had before, None if it was never seen with its peers' memory; ``offset`` is
    the one it has now.  ``growth`` is None while it does not grow.
    """

    onset: int
    before: float | None
    offset: float
    growth: Growth | None = None


class GroupFilling(NamedTuple):
    """A group whose every card fills up: GB of the fullest card, its size, and the growth of what peaks hold."""

    group: str
    cards: int
    hosts: tuple[str, ...]
    onset: int
    used_gb: float
    total_gb: float
    growth: Growth


class Idle(NamedTuple):
    """Utilisation (percent) of one card, or of all of a group: over so many seconds of training, and by phase.

    ``subject`` names the card; empty for a group.  ``phases`` are (name, mean utilisation, share of the time).
    """

    subject: str
    scope: Scope
    onset: int
    utilization: float
    peers: float | None
    over_s: float
    phases: tuple[tuple[str, float, float], ...]


class CardFault(NamedTuple):
    """A fault of one card, as its source or driver tells it; ``seen`` is how often, ``code`` the Xid if it is one."""

    subject: str
    scope: Scope
    kind: str
    detail: str
    onset: int
    seen: int = 1
    code: int | None = None


@dataclass(frozen=True, slots=True)
class CardView:
    """One card: who it is, what it holds, and how that stands to its group's median at the same instants.

    ``rank`` and ``actor`` are None where nothing tells them.  ``subject`` names the card in incidents and stays the
    same while one is open.  ``peers_gb`` is the median of its group now, ``offset_gb`` the card's robust distance to
    it; both None where the card has nobody to be compared with.
    """

    name: str
    subject: str
    scope: Scope
    group: str
    group_size: int
    used_gb: float | None
    total_gb: float | None
    peers_gb: float | None
    offset_gb: float | None
    noise_gb: float
    settled: bool
    apart: Apart | None = None
    rank: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The cards of ``run`` at ``step``; what is ``told`` already stays told until it ends.

    ``step_s`` are seconds of a step, None where none is known.  ``covers`` says in words what the numbers are.
    """

    run: str
    step: int
    cards: tuple[CardView, ...] = ()
    told: frozenset[str] = frozenset()
    filling: tuple[GroupFilling, ...] = ()
    idle: tuple[Idle, ...] = ()
    missing: tuple[CardFault, ...] = ()
    faults: tuple[CardFault, ...] = ()
    step_s: float | None = None
    covers: str = ""


def gb(value: float) -> str:
    """Memory in three digits: 0.52 GB, 1.1 GB, 22 GB, 48.2 GB."""
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 1 else 2  # noqa: PLR2004 - three digits
    text = f"{size:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} GB"


def span(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 100:  # noqa: PLR2004 - up to here seconds are what people think in
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"  # noqa: PLR2004 - two hours


def full(growth: Growth) -> str:
    """When a card is full: ``in 14 steps (21 min)``; empty where that is not known, or far away."""
    if growth.full_in_steps is not None:
        steps = round(growth.full_in_steps)
        text = "within a step" if steps < 1 else "in 1 step" if steps == 1 else f"in {steps} steps"
        return text + (f" ({span(growth.full_in_s)})" if growth.full_in_s is not None and steps >= 1 else "")
    return f"in {span(growth.full_in_s)}" if growth.full_in_s is not None else ""


def rate(growth: Growth) -> str:
    """How fast: ``1.1 GB a step``, or an hour where steps have no times."""
    if growth.gb_per_step is not None:
        return f"{gb(growth.gb_per_step)} a step"
    return f"{gb(3600 * growth.gb_per_s)} an hour" if growth.gb_per_s is not None else ""


def sentence(parts: Iterable[str]) -> str:
    """Parts that are not empty, with commas."""
    return ", ".join(part for part in parts if part)


def of_card(
    rule: str,
    view: MemoryView,
    subject: str,
    scope: Scope,
    severity: Severity,
    onset: int,
    title: str,
    *,
    before: float = 0.0,
    after: float = 0.0,
    evidence: tuple[str, ...] = (),
    advice: tuple[str, ...] = (),
    facts: tuple[tuple[str, str], ...] = (),
) -> Diagnosis:
    """A diagnosis in GB (or percent): it costs no seconds, and its ratio is that of ``after`` to ``before``."""
    return Diagnosis(
        rule=rule,
        run=view.run,
        subject=subject,
        severity=severity,
        onset=onset,
        step=view.step,
        ratio=after / before if before > 0.0 < after else 1.0,
        before=before,
        after=after,
        cost_s=0.0,
        summary=title,
        evidence=evidence,
        advice=advice,
        scope=scope,
        title=title,
        facts=facts,
    )
