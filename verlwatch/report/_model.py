"""Everything that a report says: one value, from which terminal text, Markdown, JSON, CSV and HTML are drawn.

Every text is a finished sentence in the report's language; numbers stand beside it, so that a renderer may draw them.
Seconds are wall time, ``*_gb`` what the log calls GB, GPU-hours seconds × GPUs ÷ 3600.  What is not known is None, nan
in a column, or an empty text, never zero.  `report._json` writes it; the form is versioned by ``SCHEMA``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from verlwatch.core.types import Language, Severity
from verlwatch.report._steps import Steps

SCHEMA = 1
"""Of the JSON form.  A field more leaves it as it is; one that goes or means something else makes it another."""

Confidence = Literal["certain", "likely", "possible", "cannot tell"]
Check = Literal[
    "steps", "layout", "memory", "communication", "supply", "utilisation", "engine", "interruptions", "config"
]
"""Which part of the method a finding belongs to."""
MemoryKind = Literal["used", "reserved", "allocated"]
Basis = Literal["baseline", "regression", "per token", "seconds"]
"""What equal work was reckoned with: the run's own baseline, a regression over the steps compared, medians per token
(few steps), or nothing but seconds (the log names no tokens)."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Which training this is.  ``release`` is a range of verl releases, empty where the log does not tell.

    ``steps`` counts those with timing, ``first`` and ``last`` are their numbers, ``planned`` how many there will be.
    ``seconds`` is the sum of the steps as printed, ``gpus`` how many GPUs there are, ``gpus_from`` how that is known.
    ``judged`` says whether there were enough steps for baselines.
    """

    name: str
    logs: tuple[str, ...]
    release: str
    remark: str
    steps: int
    first: int
    last: int
    planned: int | None
    attempts: int
    finished: bool
    is_async: bool
    judged: bool
    seconds: float
    gpus: int | None
    gpus_from: str
    hosts: tuple[str, ...] = ()


class ConfigFact(NamedTuple):
    """One key of verl's configuration and its value, as this run's log has it."""

    key: str
    value: str | int | float


@dataclass(frozen=True, slots=True)
class PhaseStats:
    """One phase over all steps; ``share`` is its part of the sum of all steps (without validation and checkpoint)."""

    name: str
    label: str
    count: int
    median_s: float
    p90_s: float
    longest_s: float
    longest_step: int
    total_s: float
    share: float | None
    gpu_hours: float | None
    per_token_ms: float | None


@dataclass(frozen=True, slots=True)
class Share:
    """What one phase brings of a difference: ``before_s`` and ``after_s`` are medians, ``part`` its share of it.

    ``workload_s`` is what the other work explains, ``efficiency_s`` what is left at equal work; None where the log
    names no tokens.  ``ratio`` is at equal work, with ``low`` and ``high`` its 95 % interval where one was reckoned.
    """

    phase: str
    label: str
    before_s: float
    after_s: float
    part: float | None
    workload_s: float | None
    efficiency_s: float | None
    ratio: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a phase, or a number that explains it (``unit`` s, tokens, count or empty): medians of both sides."""

    name: str
    label: str
    unit: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Attribution:
    """Where the difference between two stretches of steps comes from.

    ``shares`` are the phases, those that bring most first; ``other`` is what no timed phase explains.  ``lead`` is the
    phase that moved, empty if none did; ``parts`` are the parts of that phase.  ``text`` says all of it in a sentence.
    """

    before: tuple[int, int]
    after: tuple[int, int]
    before_count: int
    after_count: int
    basis: Basis
    step: Share | None
    shares: tuple[Share, ...]
    other_s: float | None
    tokens_ratio: float | None
    longest_ratio: float | None
    lead: str
    parts: tuple[Part, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident as the log tells it.

    ``onset`` to ``last`` are the steps that it slowed (``last`` None while it is open), ``told`` the step at which it
    was known, ``until`` the one that closed it.  ``before`` and ``during`` are plain medians of the metric, ``ratio``
    is at equal work.  ``lost_s`` is what it cost beyond what its work explains, ``few`` says: judged from few steps.
    """

    id: str
    rule: str
    phase: str
    label: str
    severity: Severity
    attempt: int
    onset: int
    told: int
    last: int | None
    until: int | None
    closed_as: str
    ratio: float
    ratio_seconds: float | None
    ratio_per_token: float | None
    before: float | None
    during: float | None
    before_per_token_ms: float | None
    during_per_token_ms: float | None
    lost_s: float
    gpu_hours: float | None
    few: bool
    title: str
    text: str
    cause: str
    attribution: Attribution | None


class CostLine(NamedTuple):
    """Seconds, GPU-hours (None where the number of GPUs is not known) and the share of all seconds."""

    name: str
    label: str
    seconds: float
    gpu_hours: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What the training cost: in all, by phase (with what no phase explains), and lost to each incident (by its id)."""

    total: CostLine
    phases: tuple[CostLine, ...]
    incidents: tuple[CostLine, ...]
    lost: CostLine | None
    text: str


class MemoryPoint(NamedTuple):
    """Memory of a card: the step after which it was read (0 before the first), and the moment the log names."""

    step: int
    gb: float
    moment: str


@dataclass(frozen=True, slots=True)
class MemoryTrack:
    """One card or process over time.

    ``kind`` says what is counted: ``used`` of the device, or torch's ``reserved`` or ``allocated``; ``total_gb`` is the
    card's size where the log tells it.  ``rank`` is None where nobody names it.
    """

    name: str
    label: str
    rank: int | None
    host: str
    kind: MemoryKind
    total_gb: float | None
    points: tuple[MemoryPoint, ...]


@dataclass(frozen=True, slots=True)
class Gauge:
    """A number that was seen ``count`` times, in its own unit: of the engine, the network, the data supply."""

    name: str
    label: str
    unit: str
    count: int
    median: float
    low: float
    high: float
    last: float
    remark: str = ""


class Mesh(NamedTuple):
    """A printed device mesh: sizes by name of the dimension (``dp`` 3, ``infer_tp`` 2), and the step before it."""

    name: str
    sizes: tuple[tuple[str, int], ...]
    step: int
    text: str


class Mismatch(NamedTuple):
    """Something in layout or configuration that does not fit."""

    name: str
    severity: Severity
    confidence: Confidence
    text: str
    keys: tuple[ConfigFact, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """How the GPUs are laid out, as configured and as printed; None where neither tells."""

    world: int | None
    nodes: int | None
    gpus_per_node: int | None
    strategy: str
    engine: str
    actor: Mapping[str, int]
    """Parallel sizes of training: ``dp`` ``tp`` ``pp`` ``cp`` ``sp``."""
    rollout: Mapping[str, int]
    """Parallel sizes of generation: ``dp`` ``tp`` ``pp``, and ``copies`` of the model."""
    prompts_per_copy: float | None
    mini_batch_per_rank: float | None
    meshes: tuple[Mesh, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the log shows.  ``evidence`` are the values and steps it rests on."""

    name: str
    check: Check
    severity: Severity
    confidence: Confidence
    title: str
    text: str
    evidence: tuple[str, ...] = ()
    phase: str = ""
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to try because of a ``finding``: a key that is in this run's configuration, with the value now in force."""

    finding: str
    key: str
    value: str | int | float
    attempt: str
    """The value or the direction to try."""
    why: str
    confidence: Confidence
    proof: str
    """What would show that it helped."""


class Missing(NamedTuple):
    """A question that this log leaves open, and how the next one would answer it."""

    what: str
    turn_on: str


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report.  ``last`` is how many steps its table shows, ``range`` those it was limited to."""

    schema: int
    verlwatch: str
    language: Language
    run: RunFacts
    config: tuple[ConfigFact, ...]
    layout: Layout
    mismatches: tuple[Mismatch, ...]
    steps: Steps
    phases: tuple[PhaseStats, ...]
    over_run: Attribution | None
    incidents: tuple[Incident, ...]
    cost: Cost | None
    memory: tuple[MemoryTrack, ...]
    engine: tuple[Gauge, ...]
    communication: tuple[Gauge, ...]
    supply: tuple[Gauge, ...]
    utilisation: tuple[Gauge, ...]
    findings: tuple[Finding, ...]
    advice: tuple[Advice, ...]
    missing: tuple[Missing, ...]
    headline: str
    range: tuple[int, int] | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    """Headings and labels of the report's own, in its language, by their English text."""
