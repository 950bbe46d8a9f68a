"""What a user may tune in the core: the part of a configuration that judging needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from verlwatch.core.incidents import Maintenance, Policy, Route, Window, Zone
from verlwatch.core.metrics import DEFAULT_MEASURES, TAIL

__all__ = ["Maintenance", "Patience", "Policy", "Route", "RunLimits", "Settings", "Window", "Zone"]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a run that has no past of its own may go without progress, in seconds."""

    start_s: float = 1800.0
    loading_s: float = 3600.0
    first_step_s: float = 3600.0
    first_validation_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What the runs that fit ``run`` (``*``) have at most: memory of a host in GB, and time from their start."""

    run: str = "*"
    host_memory_gb: float | None = None
    wall_limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user may tune in the core (see config.example.yaml for the words).

    ``receivers`` are the names of those who are told.  ``false_alarms_per_month`` is per run, all series together;
    ``min_step_share`` the part of a step that a changed phase must add to be told, ``limits`` the most seconds that a
    phase (or ``step``) may take, whatever its past says, ``metrics`` the
    measures judged beside the phases, ``health`` what is judged of the training itself.  ``routes`` say who of the
    receivers hears of what, ``policy`` how readily, ``quiet_hours`` and ``maintenance`` when not; their times are local
    times of ``zone``.  ``runs`` say what single runs have at most, ``card_groups`` which
    GPUs do the same work (name, patterns of host:gpu).
    """

    receivers: tuple[str, ...] = ()
    false_alarms_per_month: float = 1.0
    min_step_share: float = 0.01
    accept_after_steps: int = 200
    limits: tuple[tuple[str, float], ...] = ()
    metrics: tuple[str, ...] = DEFAULT_MEASURES
    health: tuple[str, ...] = ()
    line_limit: int = 1 << 20
    max_runs: int = 1000
    link: str = ""
    policy: Policy = field(default_factory=Policy)
    routes: tuple[Route, ...] = ()
    quiet_hours: tuple[Window, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()
    zone: Zone = ()
    patience: Patience = field(default_factory=Patience)
    runs: tuple[RunLimits, ...] = ()
    tells_finish: bool = True
    card_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def of(self, run: str) -> RunLimits:
        """The limits of a run: those of the first that fits."""
        fitting = (one for one in self.runs if fnmatchcase(run, one.run))
        return next(fitting, RunLimits())

    @property
    def measures(self) -> tuple[str, ...]:
        """All that is judged beside the phases, where the log prints it."""
        return (*self.metrics, *TAIL, *self.health)
