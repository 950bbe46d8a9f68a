"""A run as the store keeps it: JSON-safe, without its series and its steps, which have rows of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from verlwatch.core._attempts import Attempts
from verlwatch.core.incidents import Conditions, OpenIncidents

if TYPE_CHECKING:
    from verlwatch.core._run import Run

_AS_THEY_ARE = (
    "implausible",
    "step",
    "step_at",
    "planned",
    "finished",
    "bar_full",
    "release",
    "prints_total",
    "steps_seen",
    "apart_at",
    "is_counted",
)
"""Plain values of a run, each under its own name."""


def kept(run: Run) -> dict[str, Any]:
    """What `take_up` needs to make the same run again."""
    return {
        "attempts": run.attempts.state(),
        "incidents": run.incidents.state(),
        "findings": run.findings.state(),
        "life": run.life.kept(),
        "hardware": run.hardware.state(run.heard_at),
        **run.judged.state(),
        **{name: getattr(run, name) for name in _AS_THEY_ARE},
        "config": run.config,
        "resumed_at": list(run.resumed_at),
        "ordinals": run.ordinals.state(),
    }


def take_up(run: Run, data: Mapping[str, Any]) -> None:
    """Makes a new run the one that was kept."""
    policy = run.settings.policy
    run.attempts = Attempts.from_state(data["attempts"])
    run.incidents = OpenIncidents.from_state(data["incidents"], policy)
    run.findings = Conditions.from_state(data["findings"], policy)
    run.judged.restore(data)
    for name in _AS_THEY_ARE:
        setattr(run, name, data[name])
    run.heard_at = run.step_at
    run.config = dict(data["config"])
    run.resumed_at = (data["resumed_at"][0], data["resumed_at"][1])
    run.ordinals.restore(data["ordinals"])
    run.hardware.restore(data["hardware"], policy)
    life = run.life
    life.restore(data["life"])
    life.step, life.planned, life.is_over = run.step, run.planned, run.finished
    run.due = 0.0
