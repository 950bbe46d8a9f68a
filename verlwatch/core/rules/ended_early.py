"""A run that looks finished and is not: it ended in good order before its last step."""

from __future__ import annotations

from verlwatch.core.rules._life import death
from verlwatch.core.rules._life_view import LifeView
from verlwatch.core.types import Diagnosis

NAME = "ended_early"
NEEDS = "the planned steps, and a sign of the end: wandb's summary, the exit of the process, the state of the job"
TURN_ON = "verlwatch on the host of the trainer, or `verlwatch attach JOBID`, sees the exit where the log is silent"
ADVICE = (
    "Look for what ends a run in good order: an epoch limit (trainer.total_epochs), early stopping, a data loader that "
    "ran out, an ESI expiration.",
)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis where the end came before the last planned step, without any fault."""
    if not view.planned or not 0 <= view.step < view.planned or view.is_over:
        return ()
    clean = view.gone is not None and view.gone.get("exit") == "code 0"
    sign = view.ended or ("its process ended with code 0" if clean else "")
    sign = sign or ("its job is completed" if view.job.get("state") == "COMPLETED" else "")
    if not sign:
        return ()
    title = f"ended at step {view.step} of {view.planned}, without an error"
    return (death(NAME, view, title, at="", facts=(("Sign of the end", sign),), advice=ADVICE),)
