"""Gradients have become much larger, to stay: the training is about to diverge.

Statistic: the gradient norm (of the actor, of the critic) against its own course (`core._courses`), which may climb by
1 % a step.  Told is a level or a drift to three times the course or more.  A lone large gradient is cut by the clipping
of gradients and is not told.
"""

from __future__ import annotations

from verlwatch.core.rules._moved import diagnosis, instead, moved, since
from verlwatch.core.rules._view import View
from verlwatch.core.types import Diagnosis

NAME = "grad_norm_explosion"
NEEDS = "`actor/grad_norm` or `critic/grad_norm` in the step lines, named in `detection.health`"
TURN_ON = ""
ADVICE = {
    "grad_norm": (
        "Lower actor_rollout_ref.actor.optim.lr; look at actor_rollout_ref.actor.grad_clip and at the advantages "
        "of that step.",
        "Compare the probabilities of the engine and the trainer (training/rollout_probs_diff_max): where they differ, "
        "the gradients are wrong.",
    ),
    "critic_grad_norm": ("Lower critic.optim.lr; look at critic.grad_clip, critic.cliprange_value and the returns.",),
}


def diagnose(view: View) -> tuple[Diagnosis, ...]:
    """One diagnosis for each model whose gradients have grown."""
    return tuple(
        diagnosis(
            NAME,
            view,
            point,
            title=f"gradients of the {_model(metric)} have grown ×{point.effect:.1f}: {instead(metric, point)}"
            f" {since(point)}",
            summary=f"the gradient norm of the {_model(metric)} is {instead(metric, point)} {since(point)}",
            advice=ADVICE[metric],
        )
        for metric in ADVICE
        if (point := moved(view, metric))
    )


def _model(metric: str) -> str:
    return "critic" if metric.startswith("critic") else "actor"
