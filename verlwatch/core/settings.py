"""What a user may tune in the core: the part of a configuration that judging needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from verlwatch.core.incidents import Maintenance, Policy, Route, Window, Zone
from verlwatch.core.metrics import DEFAULT_MEASURES

__all__ = ["Maintenance", "Policy", "Route", "Settings", "Window", "Zone"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user may tune in the core (see config.example.yaml for the words).

    ``receivers`` are the names of those who are told.  ``false_alarms_per_month`` is per run, all series together;
    ``min_step_share`` the part of a step that a changed phase must add to be told, ``limits`` the most seconds that a
    phase (or ``step``) may take, whatever its past says, ``metrics`` the
    measures judged beside the phases.  ``routes`` say who of the receivers hears of what, ``policy``
    how readily, ``quiet_hours`` and ``maintenance`` when not; their times are local times of ``zone``.
    """

    receivers: tuple[str, ...] = ()
    false_alarms_per_month: float = 1.0
    min_step_share: float = 0.01
    accept_after_steps: int = 200
    limits: tuple[tuple[str, float], ...] = ()
    metrics: tuple[str, ...] = DEFAULT_MEASURES
    line_limit: int = 1 << 20
    max_runs: int = 1000
    link: str = ""
    policy: Policy = field(default_factory=Policy)
    routes: tuple[Route, ...] = ()
    quiet_hours: tuple[Window, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()
    zone: Zone = ()
