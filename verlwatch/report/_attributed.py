"""Differences between stretches of steps, in words: which phase, how many seconds, more work or less efficiency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from statistics import median
from typing import NamedTuple

from verlwatch.core.attribution import MOVED, Difference, attribute
from verlwatch.core.attribution import Share as CoreShare
from verlwatch.core.statement import Seconds, state
from verlwatch.report._model import Attribution, Part, Share
from verlwatch.report._series import present, rows_of, unit_of
from verlwatch.report._steps import Steps
from verlwatch.report._words import Words

PARTS: dict[str, tuple[str, ...]] = {
    "gen": (
        *("timing_s/generate_sequences", "timing_s/reshard", "timing_s/generation_timing/max"),
        *("timing_s/generation_timing/min", "timing_s/agent_loop/generate_sequences/mean"),
        *("timing_s/agent_loop/generate_sequences/max", "timing_s/agent_loop/slowest/generate_sequences"),
        *("timing_s/agent_loop/slowest/tool_calls", "timing_s/agent_loop/slowest/response_length"),
        *("timing_s/agent_loop/tool_calls/mean", "timing_s/agent_loop/tool_calls/max"),
        *("timing_s/agent_loop/num_preempted/mean", "timing_s/agent_loop/compute_score/mean"),
        *("timing_s/wait_for_enough_samples", "timing_s/switch_wait", "timing_s/generate_async"),
    ),
    "reward": ("timing_s/agent_loop/compute_score/mean", "timing_s/agent_loop/compute_score/max"),
    "update_weights": ("timing_s/switch_to_rollout", "timing_s/switch_to_trainer"),
}
"""By phase: keys of what it consists of, or what explains it."""
_ENGINE, _TOOLS = "the engine's generation", "waiting for tools"
CULPRITS: dict[str, str] = {
    "timing_s/generate_sequences": _ENGINE,
    "timing_s/generation_timing/max": _ENGINE,
    "timing_s/agent_loop/slowest/generate_sequences": _ENGINE,
    "timing_s/agent_loop/slowest/tool_calls": _TOOLS,
    "timing_s/reshard": "bringing the weights to the engine",
    "timing_s/agent_loop/compute_score/max": "scoring the samples",
    "timing_s/wait_for_enough_samples": "waiting for samples",
}
"""Parts of a phase that add up to it, and what they are called."""
MOST_OF_IT = 0.4
LONGER = 1.25


class Stretch(NamedTuple):
    """Some rows of a report's steps."""

    steps: Steps
    rows: Sequence[int]

    @property
    def span(self) -> tuple[int, int]:
        """Numbers of its first and its last step."""
        return self.steps.step[self.rows[0]], self.steps.step[self.rows[-1]]

    def median(self, name: str) -> float | None:
        """Of a column; None where it is not printed."""
        values = present(self.steps, name)
        found = [values[row] for row in self.rows if not isnan(values[row])] if values else []
        return median(found) if found else None


def attributed(before: Stretch, after: Stretch, words: Words, *, one_baseline: bool = True) -> Attribution | None:
    """Where the difference between two stretches comes from.

    ``one_baseline`` says that what was expected of their steps comes from one run's baseline: only then it compares.
    """
    if not before.rows or not after.rows:
        return None
    rows = [rows_of(steps, rows) for steps, rows in (before, after)]
    if not one_baseline:
        rows = [[row._replace(expected={}) for row in side] for side in rows]
    found = attribute(*rows)
    if found is None:
        return None
    shares = tuple(_share(share, words) for share in found.shares)
    parts = tuple(_parts(found.lead, before, after))
    return Attribution(
        before.span,
        after.span,
        len(before.rows),
        len(after.rows),
        found.basis,
        _share(found.step, words),
        shares,
        found.other_s,
        found.tokens,
        found.longest,
        found.lead,
        parts,
        words.joined((*_sentences(found, words), *_within(found, parts, words))),
    )


def _share(share: CoreShare, words: Words) -> Share:
    return Share(
        share.phase,
        words.label(share.phase),
        share.before_s,
        share.after_s,
        share.part,
        share.workload_s,
        share.efficiency_s,
        share.ratio,
    )


def _parts(lead: str, before: Stretch, after: Stretch) -> Iterator[Part]:
    for key in PARTS.get(lead, ()):
        earlier, later = before.median(key), after.median(key)
        if earlier or later:
            yield Part(key, key.partition("/")[2], unit_of(key), earlier, later)


def _within(found: Difference, parts: Sequence[Part], words: Words) -> Iterator[str]:
    """Which part of the phase that moved is it, and whether its longest samples are."""
    known = {part.name: part for part in parts}
    more = {name: (part.after or 0.0) - (part.before or 0.0) for name, part in known.items() if name in CULPRITS}
    name = max(more, key=more.__getitem__, default="")
    if name and more[name] >= MOST_OF_IT * found.shares[0].difference_s > 0:
        yield words("Within {phase}, {part} brings {seconds} of it.", phase=found.lead, part=state(CULPRITS[name]),
                    seconds=Seconds(more[name]))  # fmt: skip
    most, mean = (known.get(f"timing_s/agent_loop/generate_sequences/{of}") for of in ("max", "mean"))
    if most and mean and most.before and mean.before and most.after and mean.after:
        before, after = most.before / mean.before, most.after / mean.after
        if after >= LONGER * before:
            yield words("Its long tail has grown: the slowest sample takes {after}× the mean one, {before}× before.",
                        after=f"{after:.2f}", before=f"{before:.2f}")  # fmt: skip


def _sentences(found: Difference, words: Words) -> Iterator[str]:
    step, more = found.step, found.step.difference_s
    if abs(more) <= MOVED * step.before_s:
        yield words("A step takes as long as before: {after}.", after=Seconds(step.after_s))
        return
    yield words(
        "A step takes {more} {word}: {after} instead of {before}.",
        more=Seconds(abs(more)),
        word=state("more") if more > 0 else state("less"),
        after=Seconds(step.after_s),
        before=Seconds(step.before_s),
    )
    if found.lead and more > 0:
        lead = found.shares[0]
        yield words(
            "{phase} brings {seconds} of it ({part}).",
            phase=lead.phase,
            seconds=Seconds(lead.difference_s),
            part=f"{lead.part or 0.0:.0%}",
        )
    yield from _split(found, words)


def _split(found: Difference, words: Words) -> Iterator[str]:
    step = found.step
    workload, efficiency = step.workload_s, step.efficiency_s
    if workload is None or efficiency is None:
        yield words("The log names no tokens: more work and less efficiency cannot be told apart.")
        return
    tokens = state(" (tokens ×{ratio})", ratio=f"{found.tokens:.2f}") if found.tokens else ""
    if efficiency >= 0:
        yield words(
            "{workload} of it is other work{tokens}, {efficiency} is lost at equal work.",
            workload=_signed(workload),
            tokens=tokens,
            efficiency=Seconds(efficiency),
        )
    else:
        yield words(
            "{workload} of it is other work{tokens}; at equal work a step takes {efficiency} less.",
            workload=_signed(workload),
            tokens=tokens,
            efficiency=Seconds(-efficiency),
        )
    if found.basis == "per token":
        yield words("Reckoned by seconds per token: a judgement from few steps.")
    elif found.basis == "regression":
        yield words("Reckoned by a regression over the earlier steps.")


def _signed(seconds: float) -> object:
    return Seconds(seconds) if seconds >= 0 else state("−{seconds}", seconds=Seconds(-seconds))
