"""The common body of the rules about the life of a run: how a diagnosis of it is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from verlwatch.core.rules._life_view import SUBJECT, Attributes, Fault, LifeView
from verlwatch.core.types import Diagnosis, Scope, Severity
from verlwatch.core.words import duration

EXCERPTS = 8
"""Lines of the log that a message quotes."""
ALIKE = 250
"""Lines that begin with so many equal characters are the same."""


def found(
    rule: str,
    view: LifeView,
    title: str,
    *,
    severity: Severity = "critical",
    subject: str = SUBJECT,
    facts: Iterable[tuple[str, str]] = (),
    evidence: Iterable[str] = (),
    advice: tuple[str, ...] = (),
    summary: str = "",
    scope: Scope = (),
) -> Diagnosis:
    """A diagnosis of the run as a whole; facts without a value are left out."""
    return Diagnosis(
        rule=rule,
        run=view.run,
        subject=subject,
        severity=severity,
        onset=view.step,
        step=view.step,
        ratio=1.0,
        before=0.0,
        after=0.0,
        cost_s=0.0,
        summary=summary or title,
        evidence=_unlike(evidence),
        advice=advice,
        scope=scope,
        title=title,
        facts=tuple((label, value) for label, value in facts if value),
    )


def _unlike(lines: Iterable[str]) -> tuple[str, ...]:
    """Each line once: the same one may have been cut at different lengths."""
    first: dict[str, str] = {}
    for line in lines:
        if line:
            first.setdefault(line[:ALIKE], line)
    return tuple(first.values())[:EXCERPTS]


def death(
    rule: str,
    view: LifeView,
    title: str,
    *,
    at: str | None = None,
    faults: Iterable[Fault] = (),
    facts: Iterable[tuple[str, str]] = (),
    advice: tuple[str, ...] = (),
) -> Diagnosis:
    """The end of a run: ``faults`` are those that prove it, the others of the log come behind them.

    ``at`` follows the title; None for the last step.
    """
    faults = tuple(faults)
    others = (fault for fault in view.faults if fault not in faults)
    return found(
        rule,
        view,
        title + (f", {view.at()}" if at is None else at),
        facts=(*facts, *where_it_was(view)),
        evidence=(line for fault in (*faults, *others) for line in words(fault)),
        advice=advice,
        scope=tuple(dict.fromkeys(("rank", str(f.said["rank"])) for f in faults if "rank" in f.said)),
    )


def where_it_was(view: LifeView) -> Iterator[tuple[str, str]]:
    """How far the run had come, what it was doing, and how long it lived."""
    yield "Last step", view.last_step()
    yield "Was doing", view.stage.words
    yield "Lived", duration(view.lived_s) if view.lived_s > 0 else ""
    if view.job:
        yield "Job", " ".join(str(view.job[key]) for key in ("job", "state") if key in view.job)


def words(fault: Fault) -> Iterator[str]:
    """What the log says of a fault: the innermost exception and its place, or the line."""
    said = fault.said
    if exception := said.get("exception"):
        text = said.get("text")
        yield f"{exception}: {text}" if text else str(exception)
        if "file" in said:
            yield f"at {said['file']}:{said.get('line', '?')} in {said.get('function', '?')}"
        if "task" in said:
            yield f"in {said['task']} (pid {said.get('pid', '?')})"
    else:
        yield fault.excerpt or str(said.get("text", fault.kind))


def of(view: LifeView, *kinds: str) -> tuple[Fault, ...]:
    """The faults of these classes."""
    return tuple(fault for fault in view.faults if fault.kind in kinds)


def number(said: Attributes, name: str) -> float | None:
    """An attribute as a number; None if it is absent or none."""
    value = said.get(name)
    return float(value) if isinstance(value, int | float) else None


def gb(said: Attributes, name: str) -> str:
    """An attribute in GiB, in words; empty if it is absent."""
    value = number(said, name)
    return "" if value is None else f"{value:.4g} GiB"
