"""What belongs together: one diagnosis for each subject, however many ranks and hosts it is said of.

The graph of phases has three layers, and a cause explains what lies below it:

    all_slow (host, network)  ──▶  phases (gen, ref, update_actor, …)  ──▶  step, throughput, MFU
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from verlwatch.core.metrics import MEASURES
from verlwatch.core.phases import STEP
from verlwatch.core.types import Diagnosis, Scope, Severity

ALL_SLOW = "all_slow"
"""The rule that says that every phase slowed at once: it leads whatever incident it belongs to."""

ANNOUNCED = frozenset({"finished"})
"""Rules of what is told once, for information, and is over with that."""
DERIVED = frozenset({STEP, *(name for name, measure in MEASURES.items() if measure.phases)})
RANK: dict[Severity, int] = {"info": 0, "warning": 1, "critical": 2}
EVIDENCE = 8
"""So many lines of evidence are kept of what was said of many ranks."""


def by_subject(diagnoses: Iterable[Diagnosis]) -> dict[str, Diagnosis]:
    """One diagnosis for each subject.

    What one rule says of several ranks or hosts is said once of all of them; of two rules the later one counts.
    """
    found: dict[str, Diagnosis] = {}
    for diagnosis in diagnoses:
        known = found.get(diagnosis.subject)
        found[diagnosis.subject] = (
            _of_both(known, diagnosis) if known is not None and known.rule == diagnosis.rule else diagnosis
        )
    return found


def is_derived(diagnosis: Diagnosis) -> bool:
    """Whether it follows from what the phases did."""
    return diagnosis.subject in DERIVED


def order(diagnosis: Diagnosis) -> tuple[bool, bool, float]:
    """Sorts by who leads: the cause of all, then the phase that costs most, then what follows from phases."""
    return diagnosis.rule != ALL_SLOW, is_derived(diagnosis), -diagnosis.cost_s


def cost_s(diagnoses: Iterable[Diagnosis]) -> float:
    """Seconds that they added to the step, none counted twice; the first one leads."""
    lead, *others = diagnoses
    if lead.rule == ALL_SLOW or is_derived(lead):
        return max(0.0, lead.cost_s)
    return sum(max(0.0, d.cost_s) for d in (lead, *others) if not is_derived(d))


def worst(severities: Iterable[Severity]) -> Severity:
    """The most severe."""
    return max(severities, key=lambda severity: RANK[severity])


def places(scope: Scope) -> dict[str, tuple[str, ...]]:
    """Label -> its values, as ``rank`` -> ``("0", "1")``."""
    found: dict[str, tuple[str, ...]] = {}
    for label, value in scope:
        found[label] = (*found.get(label, ()), value)
    return found


def fits(text: str, pattern: str) -> bool:
    """Whether ``text`` is, or fits, the pattern: a name with brackets in it fits itself."""
    return text == pattern or fnmatchcase(text, pattern)


def _of_both(one: Diagnosis, other: Diagnosis) -> Diagnosis:
    """Ranks fail, or wait, at the same time: what it costs does not add up."""
    return replace(
        one,
        severity=worst((one.severity, other.severity)),
        onset=min(one.onset, other.onset),
        ratio=max(one.ratio, other.ratio),
        cost_s=max(one.cost_s, other.cost_s),
        evidence=tuple(dict.fromkeys((*one.evidence, *other.evidence)))[:EVIDENCE],
        scope=tuple(dict.fromkeys((*one.scope, *other.scope))),
    )
