"""Losses or gradients are nan or infinite.

Statistic: none; one such number is enough.  It is over with the first step whose losses and gradients are all numbers.
A gradient alone is a warning, as verl skips that update (since 0.4); a loss, or three such steps in a row, is critical.
"""

from __future__ import annotations

from verlwatch.core.rules._view import NotFinite, View
from verlwatch.core.types import Diagnosis

NAME = "not_finite"
NEEDS = (
    "`actor/grad_norm`, `actor/pg_loss`, `critic/vf_loss` … in the step lines, or a worker's `grad_norm is not finite`"
)
TURN_ON = ""
SUBJECT = "losses"
GRAVE_STEPS = 3
SHOWN = 4
ADVICE = (
    "If it stays, stop the run: the weights are lost.  Go back to a checkpoint before it, with a lower "
    "actor_rollout_ref.actor.optim.lr or actor_rollout_ref.actor.grad_clip.",
    "Once: verl skips that update (since 0.4).  Look for a batch without valid tokens, and for log-probabilities of "
    "minus infinity (data, actor_rollout_ref.rollout.top_p, top_k).",
    "Compare the probabilities of the engine and the trainer (training/rollout_probs_diff_max).",
)


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis of all that is no number at this step."""
    found = view.not_finite
    if found is None:
        return ()
    lasts = f", for {found.steps} steps now" if found.steps > 1 else ""
    what = _what(found)
    return (
        Diagnosis(
            rule=NAME,
            run=view.run,
            subject=SUBJECT,
            severity="critical" if found.steps >= GRAVE_STEPS or _has_loss(found) else "warning",
            onset=found.since,
            step=view.step,
            ratio=1.0,
            before=0.0,
            after=float(found.steps),
            cost_s=0.0,
            summary=f"{what} at step {view.step}{lasts}",
            evidence=tuple(_evidence(view.step, found)),
            advice=ADVICE,
            title=f"{what} at step {found.since}{lasts}",
            facts=(("Since step", str(found.since)), ("At step", str(view.step))),
        ),
    )


def _what(found: NotFinite) -> str:
    keys = [f"{key} is {value}" for key, value in found.values.items()]
    if not keys:
        return f"the gradient norm of a worker is {next(iter(found.ranks.values()))}"
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return ", ".join(keys[:SHOWN]) + more


def _has_loss(found: NotFinite) -> bool:
    return any(key.endswith("loss") for key in found.values)


def _evidence(step: int, found: NotFinite) -> list[str]:
    lines = [f"step {step}: {key} {value}" for key, value in found.values.items()]
    if found.ranks:
        ranks = ", ".join(rank for rank in found.ranks if rank)
        lines.append(f"grad_norm is not finite, say workers{f': ranks {ranks}' if ranks else ''}")
    return lines
