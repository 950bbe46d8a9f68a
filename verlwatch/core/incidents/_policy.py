"""What a user may set of the life of incidents, and who hears of which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from verlwatch.core.incidents._grouping import ANNOUNCED, RANK, fits
from verlwatch.core.types import Incident, Severity


@dataclass(frozen=True, slots=True)
class Policy:
    """How readily people are told, durations in seconds.

    ``repeat_critical_s`` and ``repeat_warning_s``: what is still open is told again after so long (inf: never).
    ``update_s``: least time between a message and an update of the same incident.  ``reopen_steps``: what comes back
    within so many steps is the incident that had just ended.  ``openings_per_hour``: how often one incident may open
    within an hour before it is told as flapping.  A warning that has lasted ``critical_steps`` and has cost
    ``critical_cost_s`` is critical.
    """

    repeat_critical_s: float = 4 * 3600.0
    repeat_warning_s: float = inf
    update_s: float = 600.0
    reopen_steps: int = 10
    openings_per_hour: int = 3
    critical_steps: int = 50
    critical_cost_s: float = 3600.0

    def repeat_s(self, severity: Severity) -> float:
        """After how long an open incident of this severity is told again."""
        return self.repeat_critical_s if severity == "critical" else self.repeat_warning_s


class Route(NamedTuple):
    """Incidents at least as severe, of rules and runs that fit the patterns (``*``, ``?``, ``[…]``), go to these."""

    receivers: tuple[str, ...]
    severity: Severity = "info"
    rule: str = "*"
    run: str = "*"

    def takes(self, severity: Severity, rule: str, run: str) -> bool:
        """Whether an incident goes this way."""
        return RANK[severity] >= RANK[self.severity] and fits(rule, self.rule) and fits(run, self.run)


def route(
    routes: Sequence[Route], everybody: tuple[str, ...], severity: Severity, rule: str, run: str
) -> tuple[str, ...]:
    """The receivers of an incident: those of the first route that takes it; all, where none does."""
    chosen = next((one.receivers for one in routes if one.takes(severity, rule, run)), everybody)
    return tuple(name for name in everybody if name in chosen)


def receivers(routes: Sequence[Route], everybody: tuple[str, ...], incident: Incident) -> tuple[str, ...]:
    """Who hears of ``incident`` now.  Who was told that it is open is told how it goes on, and its end.

    The end of an incident goes to nobody else.
    """
    told = {name for notice in incident.told for name in notice.receivers}
    lead = incident.diagnoses[0]
    over = incident.state == "closed" and lead.rule not in ANNOUNCED
    now = () if over else route(routes, everybody, incident.severity, lead.rule, incident.run)
    return tuple(name for name in everybody if name in told or name in now)
