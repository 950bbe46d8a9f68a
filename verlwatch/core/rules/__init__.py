"""What verlwatch diagnoses: `ls` of this folder is the list.

A rule is a module with ``NAME`` (the same in config, metrics, documents and messages), ``NEEDS`` (what must be in the
log), ``TURN_ON`` (how to get that where it is missing; empty where verl prints it by itself) and ``diagnose(view)``, a
pure function that says what holds now.  A diagnosis lasts as long as the rule repeats it.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Protocol, TypeVar

from verlwatch.core.rules import (
    aborted,
    actor_died,
    all_slow,
    blind,
    collective_timeout,
    crashed,
    deadline,
    device_memory_forecast,
    device_oom,
    disk_forecast,
    early_slow,
    ended_early,
    engine_dead,
    entropy_collapse,
    finished,
    gpu_fault,
    gpu_idle,
    gpu_missing,
    grad_norm_explosion,
    host_memory_forecast,
    host_oom,
    job_ended,
    killed,
    kl_explosion,
    length_collapse,
    limit,
    long_tail,
    memory_divergence,
    memory_headroom,
    memory_offset_change,
    metric_shift,
    node_died,
    not_finite,
    npu_error,
    phase_drift,
    phase_noise,
    phase_shift,
    phase_spike,
    preemptions,
    response_clipping,
    reward_collapse,
    silent,
    stalled,
    step_slow,
    tool_calls,
)
from verlwatch.core.rules._ahead import NOTHING_AHEAD, Ahead, Arrival, Filling, Room, Span
from verlwatch.core.rules._life_view import (
    SUBJECT,
    Allowance,
    Attributes,
    Fault,
    LifeView,
    Printing,
    Stage,
)
from verlwatch.core.rules._memory_view import (
    Apart,
    CardFault,
    CardView,
    GroupFilling,
    Growth,
    Idle,
    MemoryView,
    gb,
)
from verlwatch.core.rules._view import NotFinite, View
from verlwatch.core.types import Diagnosis

__all__ = [
    "LIFE_RULES",
    "MEMORY_RULES",
    "NOTHING_AHEAD",
    "RULES",
    "SUBJECT",
    "Ahead",
    "Allowance",
    "Apart",
    "Arrival",
    "Attributes",
    "CardFault",
    "CardView",
    "Fault",
    "Filling",
    "GroupFilling",
    "Growth",
    "Idle",
    "LifeRule",
    "LifeView",
    "MemoryRule",
    "MemoryView",
    "NotFinite",
    "Printing",
    "Room",
    "Rule",
    "Span",
    "Stage",
    "View",
    "asked",
    "gb",
]

_View_contra = TypeVar("_View_contra", contravariant=True)


class Rule(Protocol):
    """The shape of a module in this folder, of a rule that is asked with each judged step."""

    NAME: str
    NEEDS: str
    TURN_ON: str

    def diagnose(self, view: View, /) -> tuple[Diagnosis, ...]:
        """What holds now; empty when nothing is wrong."""
        ...


class LifeRule(Protocol):
    """The shape of a rule about the life of a run: asked with each record and turn of the clock, not with each step."""

    NAME: str
    NEEDS: str
    TURN_ON: str

    def diagnose(self, view: LifeView, /) -> tuple[Diagnosis, ...]:
        """What holds now; empty when nothing is wrong."""
        ...


class MemoryRule(Protocol):
    """The shape of a rule about GPUs: asked with each step, and when `core.cards.Cards` says that something changed."""

    NAME: str
    NEEDS: str
    TURN_ON: str

    def diagnose(self, view: MemoryView, /) -> tuple[Diagnosis, ...]:
        """What holds now; empty when nothing is wrong."""
        ...


RULES: tuple[Rule, ...] = (
    limit,
    early_slow,
    metric_shift,
    host_memory_forecast,
    device_memory_forecast,
    disk_forecast,
    deadline,
    phase_noise,
    phase_spike,
    phase_drift,
    phase_shift,
    step_slow,
    all_slow,
    long_tail,
    preemptions,
    tool_calls,
    aborted,
    response_clipping,
    grad_norm_explosion,
    entropy_collapse,
    kl_explosion,
    reward_collapse,
    length_collapse,
    not_finite,
)
"""Of what two rules say about the same phase the later one counts."""

LIFE_RULES: tuple[LifeRule, ...] = (
    silent,
    stalled,
    ended_early,
    killed,
    actor_died,
    crashed,
    node_died,
    engine_dead,
    npu_error,
    collective_timeout,
    device_oom,
    job_ended,
    host_oom,
    blind,
    finished,
)
"""The weakest evidence first: of what several say about the run the last one counts."""

MEMORY_RULES: tuple[MemoryRule, ...] = (
    memory_divergence,
    memory_offset_change,
    memory_headroom,
    gpu_idle,
    gpu_fault,
    gpu_missing,
)
"""Of what two rules say about the same card the later one counts."""


class _Asked(Protocol[_View_contra]):
    NAME: str

    def diagnose(self, view: _View_contra, /) -> tuple[Diagnosis, ...]: ...


def asked(
    rules: Sequence[_Asked[_View_contra]], view: _View_contra, troubles: MutableMapping[str, str]
) -> list[Diagnosis]:
    """What all of ``rules`` say; of one that raises ``troubles`` say why, and the others are asked all the same."""
    found: list[Diagnosis] = []
    for rule in rules:
        try:
            found += rule.diagnose(view)
        except Exception as error:  # noqa: BLE001 - the guarded border around a run's judgement
            troubles[rule.NAME] = repr(error)[:300]
    return found
