"""What verl's timing keys mean, and what a step's seconds contain.

Source: ``verl/trainer/ppo`` of the releases 0.1 to 0.9.1.  All values are seconds of wall time
on the driver.  Keys moved between releases; here each phase has one name.  A key that is not in this table is not
judged: ``timing_s/*`` also holds ratios, token counts and counters.
"""

from __future__ import annotations

from dataclasses import dataclass

STEP = "step"
THROUGHPUT = "throughput"


@dataclass(frozen=True, slots=True)
class Phase:
    """One timed part of a step.

    ``keys`` are the names under which releases print it, newest first.  ``tokens`` and ``longest`` say how much of its
    time grows with the tokens of the batch and with the longest response, before the run itself has shown it (0 to 1).
    A phase ``apart`` comes every so many steps and is no part of a training step, even where a release counts it in.
    """

    name: str
    keys: tuple[str, ...]
    tokens: float = 0.0
    longest: float = 0.0
    apart: bool = False


def _keys(*names: str) -> tuple[str, ...]:
    """The key of a phase in verl >= 0.2 (``timing_s/``) and in 0.1 (``timing/``)."""
    return tuple(f"{prefix}{name}" for prefix in ("timing_s/", "timing/") for name in names)


PHASES: tuple[Phase, ...] = (
    Phase("gen", _keys("gen"), tokens=0.4, longest=0.4),
    Phase("gen_max", _keys("gen_max"), tokens=0.4, longest=0.4),
    Phase("reward", _keys("reward")),
    Phase("old_log_prob", _keys("old_log_prob", "old"), tokens=0.9),
    Phase("ref", _keys("ref"), tokens=0.9),
    Phase("values", _keys("values"), tokens=0.9),
    Phase("adv", _keys("adv")),
    Phase("update_critic", _keys("update_critic"), tokens=0.9),
    Phase("update_actor", _keys("update_actor"), tokens=0.9),
    Phase(
        "update_weights", ("timing_s/update_weights", "timing_s/sync_rollout_weights", "timing_s/timing_s/param_sync")
    ),
    Phase("testing", _keys("testing"), apart=True),
    Phase("save_checkpoint", _keys("save_checkpoint"), apart=True),
)
"""In the order of a step.  Validation and checkpoint are judged against their own past, never as part of a step."""

JUDGED: tuple[str, ...] = (*(phase.name for phase in PHASES), STEP, THROUGHPUT)
"""Every metric with a baseline.  STEP and THROUGHPUT follow from the phases: they speak where none explains them."""

_BY_NAME = {phase.name: phase for phase in PHASES}


def phase(name: str) -> Phase:
    """The phase of that name; STEP and THROUGHPUT answer with the shares of a whole step."""
    if name in {STEP, THROUGHPUT}:
        return Phase(name, (), tokens=0.6 if name == STEP else 0.0, longest=0.2 if name == STEP else 0.0)
    return _BY_NAME[name]


def is_apart(name: str) -> bool:
    """Whether that is a phase which is no part of a training step."""
    return name in _BY_NAME and _BY_NAME[name].apart
