"""What a message says of an incident beside its title: (label, value) pairs, and what is likely behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from statistics import median

from verlwatch.core.incidents._grouping import ALL_SLOW, is_derived, places
from verlwatch.core.incidents._incident import told_ago
from verlwatch.core.incidents._words import amount, duration, listed, quantity
from verlwatch.core.metrics import MEASURES
from verlwatch.core.types import Diagnosis, Incident

Facts = Iterator[tuple[str, str]]
WORTH_SAYING = 0.05
"""A twentieth of a phase's usual time, and what more work adds is said."""
FEW = 3
"""Values before a change that a median needs."""
KEYS_SHOWN = 4
_DAY_HOURS = 24.0
_ALL = 0.995
"""What rounds to 100 % is all."""
ADDS_TO_THE_STEP = "Adds to the step"
NOISE = "phase_noise"
"""The rule whose values are spreads."""
METRIC = "metric_shift"
"""The rule whose values are no times, and cost none."""
_PASSING = frozenset({"phase_spike", "early_slow", "limit"})
_NOW = {**dict.fromkeys(_PASSING, "Took"), NOISE: "Noisy"}

CAUSES: Mapping[str, str] = {
    ALL_SLOW: "the host or the network (likely: every phase slowed at once)",
    "step_slow": "work between the timed phases, as data loading or logging (likely: no phase explains it)",
    "phase_spike": "a straggler, or another job on the host (a guess from one step)",
    "early_slow": "not known (a guess from few steps)",
    NOISE: "something that comes and goes on the hosts (a guess)",
    "phase_drift": "something that fills up or accumulates (possible: it grows bit by bit)",
    "phase_shift": "something in {phase} itself (possible: other phases are as before)",
}
"""By rule: what is likely behind it, and how sure that is.  A rule without an entry claims none."""
CAUSE_OF_SEVERAL = "something that {phases} share (possible: other phases are as before)"

KEYS: Mapping[str, tuple[str, ...]] = {
    "gen": (
        "actor_rollout_ref.rollout.tensor_model_parallel_size",
        "actor_rollout_ref.rollout.gpu_memory_utilization",
        "actor_rollout_ref.rollout.max_num_seqs",
        "actor_rollout_ref.rollout.max_num_batched_tokens",
        "actor_rollout_ref.rollout.enforce_eager",
    ),
    "reward": ("reward_model.enable", "reward_model.micro_batch_size_per_gpu", "reward_model.reward_manager"),
    "old_log_prob": (
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
        "actor_rollout_ref.actor.fsdp_config.param_offload",
        "actor_rollout_ref.actor.ulysses_sequence_parallel_size",
    ),
    "ref": (
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu",
        "actor_rollout_ref.ref.fsdp_config.param_offload",
    ),
    "values": ("critic.ppo_micro_batch_size_per_gpu", "critic.model.fsdp_config.param_offload"),
    "update_critic": ("critic.ppo_micro_batch_size_per_gpu", "critic.model.fsdp_config.optimizer_offload"),
    "update_actor": (
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
        "actor_rollout_ref.actor.use_dynamic_bsz",
        "actor_rollout_ref.actor.fsdp_config.param_offload",
        "actor_rollout_ref.actor.fsdp_config.optimizer_offload",
    ),
    "testing": ("trainer.test_freq", "data.val_batch_size"),
    "save_checkpoint": ("trainer.save_freq", "trainer.default_local_dir"),
}
"""By phase: the keys of verl's configuration that its time depends on most, and whose values a message shows."""
_SHORT = "actor_rollout_ref."


@dataclass(frozen=True, slots=True)
class Context:
    """What a message takes from its run besides the incident; what is not known is None or empty, and left out.

    ``recent`` are the last values of the leading metric, oldest first, ``expected`` what its baseline expects of the
    last step's work.  ``step_s`` are the seconds of the last step and
    ``step_expected_s`` what its baseline expects of that step's work.  ``config`` holds values of verl's configuration
    by dotted key, ``gpus`` is how many the run has.
    """

    recent: tuple[float, ...] = ()
    expected: float | None = None
    step_s: float | None = None
    step_expected_s: float | None = None
    gpus: int | None = None
    config: Mapping[str, str | int | float] = field(default_factory=dict)
    link: str = ""


def facts(incident: Incident, step: int, now: float, context: Context) -> tuple[tuple[str, str], ...]:
    """In reading order; at most ten."""
    parts = (
        _of_closed(incident, step, context) if incident.state == "closed" else _of_open(incident, step, now, context)
    )
    return tuple(parts)


def _of_closed(incident: Incident, step: int, context: Context) -> Facts:
    lead = incident.diagnoses[0]
    yield "Steps", f"{lead.onset} to {last_step(incident)}"
    yield "Told at step", str(step)
    yield "Worst ratio", f"×{incident.worst_ratio:.2f}"
    yield "Baseline", shown(lead, lead.before)
    yield {NOISE: "Noisy", METRIC: "New level"}.get(lead.rule, "Slow"), shown(lead, lead.after)
    if lead.rule != METRIC or incident.lost_s > 0:
        yield "Cost", cost(incident)
    if context.gpus and incident.lost_s > 0:
        yield "GPU-hours lost", amount(context.gpus * incident.lost_s / 3600)
    if incident.by_hand:
        yield "Accepted by", "a person"


def cost(incident: Incident) -> str:
    """What it has cost; the steps and the worst ratio are those of its last episode alone."""
    return duration(incident.lost_s) + (f" in {incident.episodes} episodes" if incident.episodes > 1 else "")


def _of_open(incident: Incident, step: int, now: float, context: Context) -> Facts:
    lead = incident.diagnoses[0]
    yield "Since step", f"{lead.onset}{_first_told(incident, now)}"
    yield "At step", str(step)
    seconds = ratio_in_seconds(lead, step, context)
    yield (
        "Ratio" if lead.rule == METRIC else "Ratio at equal work",
        f"×{lead.ratio:.2f}" + (f" (×{seconds:.2f} in seconds)" if seconds else ""),
    )
    yield "Baseline", shown(lead, lead.before)
    yield _NOW.get(lead.rule, "New level"), shown(lead, lead.after)
    yield from _share(incident, context)
    yield from _of_work(lead, step, context)
    if lead.rule != METRIC or incident.lost_s > 0:
        yield "Lost so far", duration(incident.lost_s) + _gpu_hours(incident, context)
    if where := _where(lead):
        yield "Where", where
    if cause := likely_cause(incident):
        yield "Likely cause", cause
    if keys := _keys(incident, context):
        yield "Configured", keys


def _first_told(incident: Incident, now: float) -> str:
    ago = told_ago(incident, now)
    return f" (first told {ago} ago)" if ago else ""


def shown(lead: Diagnosis, value: float) -> str:
    """A value of the leading metric, or of its spread."""
    return f"{'±' if lead.rule == NOISE else ''}{quantity(lead.subject, value)}"


def ratio_in_seconds(lead: Diagnosis, step: int, context: Context) -> float | None:
    """Seconds now ÷ median seconds before the change, whatever the work was; None where it says nothing of its own."""
    earlier = _before(lead, step, context)
    if len(earlier) < FEW or lead.rule in {ALL_SLOW, NOISE, "limit"} or lead.subject in MEASURES:
        return None
    return median(context.recent[-max(1, step - lead.onset + 1) :]) / median(earlier)


def _share(incident: Incident, context: Context) -> Facts:
    """What the change adds to a step, and which part of the whole slowdown that is."""
    lead = incident.diagnoses[0]
    now, expected = context.step_s, context.step_expected_s
    if lead.cost_s <= 0 or not now or not expected or is_derived(lead) or lead.rule == ALL_SLOW:
        return
    text = f"{duration(lead.cost_s)} ({lead.cost_s / expected:.0%} of a step)"
    slowdown = now - expected
    if slowdown > 0:
        part = lead.cost_s / slowdown
        text += f", {'all' if part >= _ALL else f'{part:.0%}'} of what the step lost"
    yield ADDS_TO_THE_STEP, text


def _of_work(lead: Diagnosis, step: int, context: Context) -> Facts:
    """What the work of this step adds by itself: that part of a longer phase is no fault."""
    earlier = _before(lead, step, context)
    if lead.cost_s <= 0 or context.expected is None or len(earlier) < FEW or lead.subject in MEASURES:
        return
    usual = median(earlier)
    if context.expected - usual >= WORTH_SAYING * usual:
        yield "More work adds", f"{duration(context.expected - usual)} besides, which is no fault"


def _before(lead: Diagnosis, step: int, context: Context) -> list[float]:
    """The last values from before the change."""
    changed = max(1, step - lead.onset + 1)
    return [value for value in context.recent[:-changed] if isfinite(value) and value > 0]


def _gpu_hours(incident: Incident, context: Context) -> str:
    """So far, and a day if it goes on."""
    if not context.gpus or incident.lost_s <= 0:
        return ""
    text = f", {amount(context.gpus * incident.lost_s / 3600)} GPU-hours"
    lead = incident.diagnoses[0]
    a_step = lead.cost_s if lead.rule == ALL_SLOW or is_derived(lead) else _cost_of_phases(incident)
    if lead.rule in _PASSING or not context.step_s or a_step <= 0:
        return text
    a_day = _DAY_HOURS * context.gpus * min(1.0, a_step / context.step_s)
    return f"{text}; {amount(a_day)} GPU-hours a day if it goes on"


def _cost_of_phases(incident: Incident) -> float:
    return sum(max(0.0, d.cost_s) for d in incident.diagnoses if not is_derived(d))


def _where(lead: Diagnosis) -> str:
    found = places(lead.scope)
    ranks, hosts = found.get("rank", ()), found.get("host", ())
    parts = []
    if ranks:
        parts.append(f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {listed(ranks)} ({len(ranks)})")
    if hosts:
        parts.append(f"on {listed(hosts)}")
    return " ".join(parts)


def likely_cause(incident: Incident) -> str:
    """What is likely behind it, with how sure that is in words; empty where nothing is claimed."""
    lead = incident.diagnoses[0]
    phases = [d.subject for d in incident.diagnoses if not is_derived(d)]
    if lead.rule == "phase_shift" and len(phases) > 1:
        return CAUSE_OF_SEVERAL.format(phases=f"{', '.join(phases[:-1])} and {phases[-1]}")
    return CAUSES.get(lead.rule, "").format(phase=lead.subject)


def _keys(incident: Incident, context: Context) -> str:
    """What is configured of what matters to the slow phases."""
    named = [key for d in incident.diagnoses for key in KEYS.get(d.subject, ()) if key in context.config]
    shown = list(dict.fromkeys(named))[:KEYS_SHOWN]
    return ", ".join(f"{key.removeprefix(_SHORT)} = {context.config[key]}" for key in shown)


def last_step(incident: Incident) -> int:
    """Last step that the incident slowed."""
    return incident.last_step if incident.last_step is not None else incident.opened_step
