"""What lies ahead of a run as far as its last steps tell, and how that is said."""

from __future__ import annotations

from typing import NamedTuple

from verlwatch.core.types import Scope, Severity

CRITICAL_STEPS, CRITICAL_S = 10, 1800.0
"""So near it is critical."""
SOON_STEPS, SOON_S = 50, 86_400.0
"""What is farther than both is for information only."""


VAGUE = 4.0
"""A bound that is so many times the middle says nothing."""


class Span(NamedTuple):
    """An estimate between its bounds."""

    low: float
    mid: float
    high: float


class Filling(NamedTuple):
    """A series that grows towards its limit.

    ``slope`` a step and ``level`` now, in GB; ``steps`` until the limit; ``since`` the step from which on it grew so,
    where it stood at ``before``.  ``limit_from`` says in words where the limit comes from, ``step_s`` how long a step
    takes (0: not known).
    """

    subject: str
    limit: float
    limit_from: str
    slope: Span
    steps: Span
    level: float
    before: float
    since: int
    seen: int
    step_s: float = 0.0
    scope: Scope = ()


class Room(NamedTuple):
    """A file system with room for ``fits`` more checkpoints, of which one comes every ``every`` steps.

    ``each_gb`` is what is gone for good with each, ``lump_gb`` what it takes at once.  ``steps`` until one does not
    fit; ``seen`` checkpoints say so.
    """

    path: str
    free_gb: float
    total_gb: float
    each_gb: float
    lump_gb: float
    every: float
    fits: int
    steps: float
    seen: int
    step_s: float = 0.0
    scope: Scope = ()


class Arrival(NamedTuple):
    """A run that will not be done when its time is over: at ``reach`` of ``planned`` steps ``left_s`` from now.

    It needs ``need_s`` more.  A step takes ``step_s``, what comes only now and then shared out, and ``drift_s`` more
    with each step; ``limit_from`` says in words who ends it.
    """

    planned: int
    reach: Span
    left_s: float
    need_s: Span
    step_s: float
    drift_s: float
    limit_from: str


class Ahead(NamedTuple):
    """All of it."""

    fillings: tuple[Filling, ...] = ()
    rooms: tuple[Room, ...] = ()
    arrival: Arrival | None = None


NOTHING_AHEAD = Ahead()


def severity(steps: float, step_s: float) -> Severity:
    """By how near it is."""
    seconds = steps * step_s
    if steps <= CRITICAL_STEPS or 0.0 < seconds <= CRITICAL_S:
        return "critical"
    return "info" if steps > SOON_STEPS and seconds > SOON_S else "warning"


def lead(steps: Span, step_s: float) -> str:
    """``12 to 18 steps, about 25 min``; without bounds where the later one is far off."""
    low, mid, high = map(round, steps)
    words = f"about {mid} steps" if high > VAGUE * max(mid, 1) else f"{low} to {high} steps" if low < high else ""
    words = words or f"{mid} {'step' if mid == 1 else 'steps'}"
    return words + (f", about {lasting(steps.mid * step_s)}" if step_s > 0.0 else "")


def lasting(seconds: float) -> str:
    """Seconds in the two digits that a forecast is good for: ``40 s``, ``25 min``, ``3.2 h``, ``26 h``, ``4 d``."""
    if seconds < 100:  # noqa: PLR2004 - up to here seconds are what people think in
        return f"{seconds:.0f} s"
    if seconds < 5400:  # noqa: PLR2004 - an hour and a half
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.2g} h" if hours < 48 else f"{hours / 24:.0f} d"  # noqa: PLR2004 - two days


def between(low_s: float, high_s: float) -> str:
    """A span of time."""
    low, high = lasting(low_s), lasting(high_s)
    return low if low == high else f"{low} to {high}"


def gb(value: float) -> str:
    """An amount of memory or disk."""
    return f"{value:,.0f} GB" if value >= 1000 else f"{value:.3g} GB"  # noqa: PLR2004 - four digits
