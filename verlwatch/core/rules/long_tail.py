"""Generation waits for its slowest sample more than it did.

Statistic: seconds of the slowest sample (generation and tool calls) ÷ those of the mean one, against its own course
(`core._courses`).  Told is a level or a drift to 1.5 times the ratio or more, where the slowest sample takes half of
gen or more: then a sixth of gen at least is time in which the others are done.
"""

from __future__ import annotations

from verlwatch.core import tail
from verlwatch.core.rules._moved import beside_gen, diagnosis, moved, since
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "long_tail"
NEEDS = (
    "`timing_s/agent_loop/slowest/generate_sequences` and `timing_s/agent_loop/generate_sequences/mean` (or "
    "`timing_s/generation_timing/max` and `timing_s/generate_sequences`) in the step lines"
)
TURN_ON = "`actor_rollout_ref.rollout.mode=async` (verl 0.5 to 0.9); verl 0.6 and 0.7 print it of ranks by default"
SUBJECT = "slowest_sample"
LEAST_OF_GEN = 0.5
ADVICE = (
    "If the slowest response is as long as data.max_response_length allows: lower that, or punish such responses "
    "(reward_model.overlong_buffer).",
    "If it waits for tools: set their time-outs, actor_rollout_ref.rollout.multi_turn.max_assistant_turns and "
    "actor_rollout_ref.rollout.multi_turn.max_tool_response_length.",
    "If it was preempted: raise actor_rollout_ref.rollout.gpu_memory_utilization or lower "
    "actor_rollout_ref.rollout.max_num_seqs.",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis of the slowest sample, where generation waits for it."""
    point, seen = moved(view, SUBJECT), tail.read(view.values)
    if point is None or seen is None:
        return ()
    gen = view.now.get("gen") if not view.is_async else None
    if gen is not None and seen.slowest_s < LEAST_OF_GEN * gen and SUBJECT not in view.told:
        return ()
    of_gen = f" of gen {gen:.4g} s" if gen is not None else ""
    took = f"{seen.slowest_s:.4g} s{of_gen}, mean {seen.mean_s:.4g} s"
    return (
        diagnosis(
            NAME,
            view,
            point,
            title=f"generation waits for its slowest {seen.of}: {took}",
            summary=f"the slowest {seen.of} takes {point.after:.2g}× the mean {since(point)}, not {point.before:.2g}×",
            evidence=(f"step {view.step}: slowest {seen.of} {took}", *_about_the_slowest(view, seen)),
            advice=ADVICE,
            severity=beside_gen(view),
        ),
    )


def _about_the_slowest(view: View, seen: tail.Tail) -> tuple[str, ...]:
    """What the log says of the slowest sample itself."""
    values, found = view.values, []
    if (tokens := values.get(tail.SLOWEST_RESPONSE)) and (mean := values.get("response_length/mean")):
        found.append(f"its response has {tokens:.0f} tokens, the mean one {mean:.0f}")
    if seen.slowest_tools_s > 0:
        found.append(f"tool calls took {seen.slowest_tools_s:.4g} s of it")
    if (times := values.get(tail.SLOWEST_PREEMPTED, 0.0)) > 0:
        found.append(f"it was preempted {times:.0f} times")
    return tuple(found)
