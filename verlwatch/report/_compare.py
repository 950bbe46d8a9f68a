"""Two runs, or two stretches of one, phase by phase at equal work, and what is configured differently.

A regression over the steps of A says what each phase should take for the work of a step (`core.attribution`); the ratio
of a phase is the median of seconds ÷ expected in B over that in A.  Its interval is the middle 95 % of RESAMPLES
bootstrap resamples of both, in blocks of neighbouring steps (their noise carries over), with a fixed seed, widened by
what the regression does not know of B's work.  Where that lies far beyond A's, the regression itself may be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log
from random import Random
from statistics import median

from verlwatch import __version__
from verlwatch.core.attribution import ENOUGH, Row, doubt, equal_work
from verlwatch.core.statement import Statement, state
from verlwatch.core.types import Language
from verlwatch.core.verl_keys import Config, Value
from verlwatch.report._attributed import Stretch, attributed
from verlwatch.report._build import run_facts
from verlwatch.report._model import Attribution, RunFacts, Share
from verlwatch.report._reading import Reading
from verlwatch.report._series import rows_of, steps_of
from verlwatch.report._words import Words

SCHEMA = 1
RESAMPLES = 400
MOST = 600
"""Steps of each side that are resampled, evenly taken."""
LEAST = 8
"""Steps that an interval needs."""
BEYOND = 1.5
WARM = 3
Z = 1.96
_NAMES_ONLY = ("experiment_name", "project_name", "_dir", "_path", "logger", "_files", "resume", "rollout_data")
_EXPLAINS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("actor_rollout_ref.rollout.log_prob", ("old_log_prob",)),
    ("actor_rollout_ref.rollout.", ("gen", "update_weights")),
    ("actor_rollout_ref.actor.", ("update_actor", "old_log_prob")),
    ("actor_rollout_ref.ref.", ("ref",)),
    ("actor_rollout_ref.model.", ("gen", "old_log_prob", "ref", "update_actor")),
    ("critic.", ("values", "update_critic")),
    ("reward", ("reward",)),
    ("custom_reward", ("reward",)),
    ("data.", ("gen", "old_log_prob", "ref", "update_actor")),
    ("trainer.n", ("gen", "old_log_prob", "ref", "update_actor")),
    ("algorithm.", ("adv",)),
)
"""Beginning of a key -> the phases whose time it can change."""


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """A key whose value differs, None where a side does not have it; ``phases`` are those it can change."""

    key: str
    a: Value | None
    b: Value | None
    phases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """B against A.  ``headline`` is the sentence for somebody who reads no further, ``caveats`` say what to doubt."""

    schema: int
    verlwatch: str
    language: Language
    a: RunFacts
    b: RunFacts
    attribution: Attribution | None
    config: tuple[KeyDifference, ...]
    headline: str
    caveats: tuple[str, ...]


Side = tuple[Reading, tuple[int, int] | None]
"""What was read, and the stretch of its steps that is meant (all where it is None)."""


def compare(a: Side, b: Side, words: Words) -> Comparison:
    """What B takes longer or shorter than A, where, and what is configured differently."""
    before, after = (_stretch(side, words) for side in (a, b))
    found = attributed(before, after, words, one_baseline=False)
    if found is not None:
        rows = [rows_of(*before), rows_of(*after)]
        shares = tuple(_with_interval(share, *rows) for share in found.shares)
        found = replace(found, shares=shares, step=found.step and _with_interval(found.step, *rows))
    return Comparison(
        SCHEMA,
        __version__,
        words.language,
        run_facts(a[0], before.steps, words),
        run_facts(b[0], after.steps, words),
        found,
        tuple(differences(a[0].config, b[0].config)),
        words("One of the two shows no steps with timing.") if found is None else found.text,
        tuple(words(said) for said in _caveats(found, a[0], b[0])),
    )


def _stretch(side: Side, words: Words) -> Stretch:
    """The steps that are meant, without the first ones of a whole run: they warm up."""
    reading, span = side
    steps = steps_of(reading, words, span)
    return Stretch(steps, range(WARM if span is None and len(steps) > ENOUGH else 0, len(steps)))


def _with_interval(share: Share, before: Sequence[Row], after: Sequence[Row]) -> Share:
    """The share with the interval of its ratio at equal work, where there are steps enough for one."""
    name = share.phase
    expect = equal_work(name, before)
    relative = [
        [row.seconds[name] / e for row in rows if row.seconds.get(name, 0.0) > 0 and (e := expect(row)) > 0]
        for rows in (before, after)
    ]
    if share.ratio is None or min(map(len, relative)) < LEAST:
        return share
    earlier, later = (_thinned(values) for values in relative)
    chance = Random(0)  # noqa: S311 - the same interval each time
    ratios = sorted(median(_resampled(later, chance)) / median(_resampled(earlier, chance)) for _ in range(RESAMPLES))
    low, high = ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES) - 1]
    # the interval is that of this phase's own regression; where the share was reckoned otherwise it is moved along
    own, apart = median(later) / median(earlier), Z * doubt(name, before, after)
    below, above = (hypot(abs(log(side / own)), apart) for side in (low, high))
    return replace(share, low=share.ratio * exp(-below), high=share.ratio * exp(above))


def _thinned(values: Sequence[float]) -> Sequence[float]:
    every = -(-len(values) // MOST)
    return values[::every]


def _resampled(values: Sequence[float], chance: Random) -> list[float]:
    """As many values, in blocks of neighbours: the square root of their number."""
    size = max(1, round(len(values) ** 0.5))
    found: list[float] = []
    while len(found) < len(values):
        at = chance.randrange(len(values) - size + 1)
        found += values[at : at + size]
    return found[: len(values)]


def differences(a: Config, b: Config) -> Iterator[KeyDifference]:
    """Keys that differ, those that can change the time of a phase first; names and paths are none."""
    keys = [key for key in dict.fromkeys((*a, *b)) if a.get(key) != b.get(key) and not _is_a_name(key)]
    if not a or not b:
        return
    for key in sorted(keys, key=lambda key: (not _phases(key), key)):
        yield KeyDifference(key, a.get(key), b.get(key), _phases(key))


def _is_a_name(key: str) -> bool:
    return key.startswith("trainer.") and any(part in key for part in _NAMES_ONLY)


def _phases(key: str) -> tuple[str, ...]:
    return next((phases for beginning, phases in _EXPLAINS if key.startswith(beginning)), ())


def _caveats(found: Attribution | None, a: Reading, b: Reading) -> Iterator[Statement]:
    if found is None:
        return
    if found.basis == "seconds":
        yield state("One of the two names no tokens: seconds are compared as they are.")
    elif found.basis == "per token":
        yield state("Fewer than {count} steps: seconds per token are compared, fixed costs and all.", count=ENOUGH)
    ratio = found.tokens_ratio
    if ratio is not None and found.basis == "regression" and not 1 / BEYOND <= ratio <= BEYOND:
        yield state(
            "B works on ×{ratio} the tokens of A, which A's steps say little of: the intervals may be too narrow.",
            ratio=f"{ratio:.2f}",
        )
    if min(found.before_count, found.after_count) < LEAST:
        yield state("Too few steps for an interval.")
    if a.release != b.release:
        yield state("The releases differ: verl {a} and {b}; what a phase contains may differ, too.",
                    a=a.release or "?", b=b.release or "?")  # fmt: skip
    if a.is_async != b.is_async:
        yield state("One of the two trains asynchronously: its gen is the time it waits for samples.")
    if not a.config or not b.config:
        yield state("One of the logs shows no configuration: what is configured differently is not known.")
