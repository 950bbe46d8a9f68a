"""What the phases took and what the training cost: seconds, GPU-hours, and what incidents lost of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, isfinite

from verlwatch.core.phases import PHASES, STEP, phase
from verlwatch.core.statement import Seconds, state
from verlwatch.report._model import Cost, CostLine, Incident, PhaseStats
from verlwatch.report._series import APART, IN_STEP, PRINTED, RESPONSES, TOKENS, known, present
from verlwatch.report._steps import Steps
from verlwatch.report._words import Words

OTHER = "other"
"""Time of a step that no phase explains."""


def step_seconds(steps: Steps) -> float:
    """Of all steps, without validation and checkpoint; of a step whose line lost its end, the phases that it shows."""
    whole = present(steps, STEP)
    phases = [present(steps, name) for name in IN_STEP if name in steps.columns]
    cut = (row for row, seconds in enumerate(whole) if not isfinite(seconds))
    return fsum(known(whole)) + fsum(values[row] for row in cut for values in phases if isfinite(values[row]))


def wall_seconds(steps: Steps) -> float:
    """Of all steps, with validation and checkpoint wherever the release counts them."""
    return step_seconds(steps) + fsum(fsum(known(present(steps, name))) for name in APART)


def phase_stats(steps: Steps, gpus: int | None, words: Words) -> tuple[PhaseStats, ...]:
    """Each phase and the step over all steps."""
    total = step_seconds(steps)
    found = []
    for name in (STEP, *(p.name for p in PHASES)):
        values = known(present(steps, name))
        if not values:
            continue
        column = steps.columns[name].values
        longest = list(column).index(max(values))
        seconds = total if name == STEP else fsum(values)
        ordered = sorted(values)
        found.append(
            PhaseStats(
                name,
                words.label(name),
                len(values),
                _quantile(ordered, 0.5),
                _quantile(ordered, 0.9),
                ordered[-1],
                steps.step[longest],
                seconds,
                seconds / total if total and name not in APART else None,
                _gpu_hours(seconds, gpus),
                _per_token(steps, name),
            )
        )
    return tuple(found)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between the two values around it, as numpy's default has it."""
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def _per_token(steps: Steps, name: str) -> float | None:
    if name in APART:
        return None
    tokens = present(steps, RESPONSES if name != STEP and phase(name).longest else TOKENS) or present(steps, TOKENS)
    found = [1000 * s / t for s, t in zip(present(steps, name), tokens, strict=False) if t > 0 and isfinite(s)]
    return _quantile(sorted(found), 0.5) if found else None


def _gpu_hours(seconds: float, gpus: int | None) -> float | None:
    return gpus * seconds / 3600 if gpus else None


def cost(steps: Steps, incidents: Sequence[Incident], gpus: int | None, words: Words) -> Cost | None:
    """None for a log without seconds."""
    wall = wall_seconds(steps)
    if wall <= 0:
        return None

    def line(name: str, label: str, seconds: float) -> CostLine:
        return CostLine(name, label, seconds, _gpu_hours(seconds, gpus), seconds / wall)

    sums = {name: fsum(known(present(steps, name))) for name in (*IN_STEP, *APART) if name in steps.columns}
    explained = fsum(sums.get(name, 0.0) for name in IN_STEP)
    lines = [line(name, words.label(name), seconds) for name, seconds in sums.items()]
    if PRINTED in steps.columns:
        lines.append(line(OTHER, words.label(OTHER), max(0.0, step_seconds(steps) - explained)))
    lost = [line(i.id, i.title, i.lost_s) for i in incidents if i.lost_s > 0]
    all_lost = line("lost", words("lost to incidents"), fsum(each.seconds for each in lost)) if lost else None
    return Cost(
        line("total", words("total"), wall), tuple(lines), tuple(lost), all_lost, _text(wall, all_lost, gpus, words)
    )


def _text(wall: float, lost: CostLine | None, gpus: int | None, words: Words) -> str:
    hours = state(", {hours} GPU-hours on {gpus} GPUs", hours=_hours(gpus * wall / 3600), gpus=gpus) if gpus else ""
    text = words("{seconds} of training{hours}.", seconds=Seconds(wall), hours=hours)
    if lost is None:
        return text
    gone = state(" ({hours} GPU-hours)", hours=_hours(lost.gpu_hours)) if lost.gpu_hours is not None else ""
    spent = words("Incidents cost {seconds}{hours}, {share} of it.", seconds=Seconds(lost.seconds), hours=gone,
                  share=f"{lost.share or 0.0:.1%}")  # fmt: skip
    return words.joined((text, spent))


def _hours(hours: float) -> str:
    return f"{hours:.0f}" if hours >= 100 else f"{hours:.3g}"  # noqa: PLR2004 - three digits
