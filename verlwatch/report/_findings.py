"""What the numbers of a report mean: the steps and checks of the method, each with its evidence and how sure it is.

A finding's ``name`` is what `core.advice` turns into keys.  Findings about memory are in `_memory`, mismatches of the
layout in `core.layout`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from verlwatch.core.phases import STEP
from verlwatch.core.rules.all_slow import NAME as ALL_SLOW
from verlwatch.core.rules.all_slow import SUBJECT as ALL_PHASES
from verlwatch.core.statement import Seconds, state
from verlwatch.report._costs import OTHER, step_seconds
from verlwatch.report._model import Attribution, Confidence, Cost, Finding, Gauge, Incident, PhaseStats
from verlwatch.report._series import APART, known, present
from verlwatch.report._steps import Steps
from verlwatch.report._words import Words

BOUND = 0.5
"""Share of a step from which on a phase is what the run is bound by."""
APART_SHARE = 0.1
WEIGHTS_SHARE = 0.1
OTHER_SHARE = 0.15
TAIL = 1.4
"""Slowest sample / mean sample."""
TAIL_OF_GEN = 0.8
"""Part of generation for which the slowest sample runs."""
TOOLS = 0.2
IDLE = 50.0
ROOMY = 70.0
CLIPPED = 0.02
GROWTH = 0.1
FEW = 3
"""Steps of which one may be a line that lost its phases."""

SLOW: Mapping[str, str] = {
    "gen": "gen_slow",
    "gen_max": "gen_slow",
    "old_log_prob": "logprob_slow",
    "ref": "ref_slow",
    "update_actor": "update_actor_slow",
    "reward": "reward_slow",
    "update_weights": "update_weights_slow",
}
"""What a phase that moved is called among the findings."""


def of_steps(
    phases: Sequence[PhaseStats], over_run: Attribution | None, incidents: Sequence[Incident], words: Words
) -> Iterator[Finding]:
    """What the run is bound by, and how it has changed from its beginning to its end, if no incident says so."""
    parts = sorted((p for p in phases if p.share and p.name != STEP), key=lambda p: -(p.share or 0.0))
    if parts and (parts[0].share or 0.0) >= BOUND:
        most = parts[0]
        yield Finding(
            "bound_by",
            "steps",
            "info",
            "certain",
            words("{phase} takes {share} of a step", phase=most.name, share=f"{most.share:.0%}"),
            words(
                "{phase} takes {seconds} of the median step; the next is {second}.",
                phase=most.name,
                seconds=Seconds(most.median_s),
                second=_second(parts),
            ),
            phase=most.name,
        )
    if over_run is None or over_run.step is None or any(_covers(i, over_run) for i in incidents):
        return
    step = over_run.step
    more = step.after_s - step.before_s
    if step.workload_s is None or more < GROWTH * step.before_s:
        return
    is_work = step.workload_s >= more / 2
    few = over_run.basis == "per token"
    confidence: Confidence = "likely" if few else "certain"
    share, ratio = f"{step.workload_s / more:.0%}", f"{step.after_s / step.before_s - 1:.0%}"
    if is_work:
        text = words("From the first to the last steps, {share} of what they take longer is more work.", share=share)
        yield Finding(
            "workload_growth",
            "steps",
            "info",
            confidence,
            words("Steps take {ratio} longer because there is more work: no fault", ratio=ratio),
            words.joined((text, over_run.text)),
            phase=over_run.lead,
        )
    else:
        yield Finding(
            SLOW.get(over_run.lead, "other_slow"),
            "steps",
            "info",
            confidence,
            words("Steps take {ratio} longer, most of it not for more work", ratio=ratio),
            over_run.text,
            phase=over_run.lead,
        )


def _covers(incident: Incident, over_run: Attribution) -> bool:
    """Whether it tells of the same phase in the last steps."""
    lasts = incident.last is None or incident.last >= over_run.after[0]
    return incident.attribution is not None and incident.phase in {over_run.lead, STEP, ALL_PHASES} and lasts


def _second(parts: Sequence[PhaseStats]) -> object:
    if len(parts) < 2:  # noqa: PLR2004 - there is no second one
        return "-"
    return state("{phase} ({share})", phase=parts[1].name, share=f"{parts[1].share:.0%}")


def of_incidents(incidents: Sequence[Incident], words: Words) -> Iterator[Finding]:
    """What each incident that cost time says of its phase."""
    for incident in incidents:
        found = incident.attribution
        if found is None:
            continue
        lead = found.lead or incident.phase
        name = ALL_SLOW if incident.rule == ALL_SLOW else SLOW.get(lead, "other_slow")
        evidence = [
            words(
                "{label}: {before} before, {after} then",
                label=part.label,
                before=_number(part.before),
                after=_number(part.after),
            )
            for part in found.parts
        ]
        confidence: Confidence = "possible" if incident.few else "certain"
        yield Finding(
            name,
            "steps",
            incident.severity,
            confidence,
            incident.title,
            incident.text,
            tuple(evidence),
            lead,
            incident.onset,
        )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def of_generation(steps: Steps, words: Words) -> Iterator[Finding]:
    """The long tail, tools, and responses that reach their limit."""
    gen = _median(steps, "gen")
    mean, most = (
        _median(steps, "timing_s/agent_loop/generate_sequences/mean"),
        _median(steps, "timing_s/agent_loop/generate_sequences/max"),
    )
    if mean and most and gen and most / mean >= TAIL and most >= TAIL_OF_GEN * gen:
        yield Finding(
            "gen_long_tail",
            "engine",
            "info",
            "likely",
            words("the slowest sample takes {ratio}× the mean one", ratio=f"{most / mean:.2f}"),
            words(
                "In the median step the slowest sample runs for {most} of the {gen} of generation, the mean one for "
                "{mean}: the rest waits.",
                most=Seconds(most),
                gen=Seconds(gen),
                mean=Seconds(mean),
            ),
            phase="gen",
        )
    tools = _median(steps, "timing_s/agent_loop/tool_calls/mean")
    slowest = _median(steps, "timing_s/agent_loop/slowest/tool_calls")
    waited = max((tools or 0.0) / mean if mean else 0.0, (slowest or 0.0) / gen if gen else 0.0)
    if waited >= TOOLS:
        yield Finding(
            "tool_calls_slow",
            "engine",
            "info",
            "likely",
            words("tools take {share} of generation", share=f"{waited:.0%}"),
            words(
                "A sample waits {tools} for its tools, the slowest one {slowest}.",
                tools=Seconds(tools or 0.0),
                slowest=Seconds(slowest or 0.0),
            ),
            phase="gen",
        )


def of_lengths(steps: Steps, limit: object, words: Words) -> Iterator[Finding]:
    """Responses that reach their limit."""
    clipped = _median(steps, "clip_ratio")
    if clipped is not None and clipped >= CLIPPED and isinstance(limit, int):
        yield Finding(
            "responses_clipped",
            "engine",
            "info",
            "certain",
            words("{share} of the responses reach the limit", share=f"{clipped:.1%}"),
            words(
                "They are cut at {limit} tokens: the longest response alone sets the end of generation.", limit=limit
            ),
            phase="gen",
        )


def of_engine(gauges: Sequence[Gauge], words: Words) -> Iterator[Finding]:
    """A KV cache that is full, and requests that wait although it is not."""
    seen = {gauge.name: gauge for gauge in gauges}
    cache = seen.get("kv_cache_percent")
    taken = [
        g
        for name in ("preemptions", "preemptions_total", "retracted", "timing_s/agent_loop/num_preempted/max")
        if (g := seen.get(name)) and g.high > 0
    ]
    if taken or (cache and cache.remark and cache.median >= ROOMY):
        evidence = [
            words("{label}: up to {high}", label=g.label, high=f"{g.high:.4g}")
            for g in (*taken, *([cache] if cache else []))
        ]
        yield Finding(
            "kv_cache_full",
            "engine",
            "warning" if taken else "info",
            "certain" if taken else "likely",
            words("the KV cache is full"),
            words("Requests are taken back, or wait for room in the KV cache, and are computed again."),
            tuple(evidence),
            "gen",
        )
    waiting = seen.get("waiting")
    if waiting and cache and not taken and waiting.median >= 1 and cache.median < ROOMY:
        yield Finding(
            "requests_waiting",
            "engine",
            "info",
            "likely",
            words("{count} requests wait while the KV cache has room", count=f"{waiting.median:.0f}"),
            words(
                "The median use of the KV cache is {share} %: something else limits how many requests run.",
                share=f"{cache.median:.0f}",
            ),
            phase="gen",
        )


def of_communication(gauges: Sequence[Gauge], steps: Steps, words: Words) -> Iterator[Finding]:
    """Weights that take their time to the engine, and what nccl-tests measured."""
    total = step_seconds(steps)
    for name in ("update_weights", "timing_s/reshard", "timing_s/timing_s/param_sync"):
        seconds = sum(known(present(steps, name)))
        if total and seconds >= WEIGHTS_SHARE * total:
            yield Finding(
                "update_weights_slow",
                "communication",
                "info",
                "certain",
                words("bringing the weights to the engine takes {share} of a step", share=f"{seconds / total:.0%}"),
                words("{name}: {median} in the median step.", name=name, median=Seconds(_median(steps, name) or 0.0)),
                phase="update_weights",
            )
            return
    bandwidth = next((gauge for gauge in gauges if gauge.name == "busbw_gb_s"), None)
    if bandwidth is not None:
        yield Finding(
            "bus_bandwidth",
            "communication",
            "info",
            "cannot tell",
            words("nccl-tests measured {gb} GB/s of bus bandwidth", gb=f"{bandwidth.last:.1f}"),
            words(
                "What this hardware should reach is not in the log: compare with the vendor's figure for these links."
            ),
        )


def of_supply(gauges: Sequence[Gauge], steps: Steps, cost: Cost | None, words: Words) -> Iterator[Finding]:
    """Batches that take long to fetch, and time that no phase explains."""
    step = _median(steps, STEP)
    for gauge in gauges:
        if step and gauge.name in {"dataloader_fetch_time_s", "buffer_write_latency_s"} and gauge.median >= 0.1 * step:
            yield Finding(
                "data_supply",
                "supply",
                "warning",
                "likely",
                words(
                    "{label} takes {seconds} of a step of {step}",
                    label=gauge.label,
                    seconds=Seconds(gauge.median),
                    step=Seconds(step),
                ),
                words("The step waits for its data."),
            )
    other = next((line for line in cost.phases if line.name == OTHER), None) if cost else None
    total = step_seconds(steps)
    if other and total and len(steps) >= FEW and other.seconds >= OTHER_SHARE * total:
        yield Finding(
            "other_slow",
            "supply",
            "info",
            "possible",
            words("{share} of a step is in no timed phase", share=f"{other.seconds / total:.0%}"),
            words(
                "Loading data, balancing batches, logging and waiting for Ray are between the phases; the log does not "
                "tell which."
            ),
        )


def of_use(gauges: Sequence[Gauge], words: Words) -> Iterator[Finding]:
    """GPUs that are idle."""
    for gauge in gauges:
        if gauge.name == "gpu_utilization" and gauge.median < IDLE:
            yield Finding(
                "utilisation_low",
                "utilisation",
                "warning",
                "likely",
                words("GPUs are in use {share} % of the time", share=f"{gauge.median:.0f}"),
                words("Below 50 % for long, something else than the GPUs holds up the run."),
            )


def of_interruptions(cost: Cost | None, words: Words) -> Iterator[Finding]:
    """Validation and checkpoints that take a good part of the run."""
    lines = [line for line in cost.phases if line.name in APART] if cost else []
    share = sum(line.share or 0.0 for line in lines)
    if share >= APART_SHARE:
        yield Finding(
            "interruptions",
            "interruptions",
            "info",
            "certain",
            words("validation and checkpoints take {share} of the training", share=f"{share:.0%}"),
            "; ".join(words("{label} {seconds}", label=line.label, seconds=Seconds(line.seconds)) for line in lines)
            + ".",
        )


def _median(steps: Steps, name: str) -> float | None:
    values = known(present(steps, name))
    return median(values) if values else None
