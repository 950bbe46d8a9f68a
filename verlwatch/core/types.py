"""Every noun of verlwatch.

Immutable and free of behaviour beyond what a value needs to describe itself; what is made for every line is a tuple.
The field's own words are used: record, sample, series, baseline, change point, diagnosis, incident, receiver, cursor,
outbox (see docs/ARCHITECTURE.md).  Names ending in ``_at`` are epoch seconds, ``_s`` durations in seconds, ``data``
bytes, ``text`` str.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from verlwatch.core._records import (
    NOBODY,
    Chunk,
    Cursor,
    Event,
    Extract,
    Origin,
    Record,
    Samples,
    Scope,
    Severity,
    Writer,
)

__all__ = [
    "NOBODY",
    "Action",
    "ChangePoint",
    "Chunk",
    "ClosedAs",
    "Cursor",
    "Diagnosis",
    "Event",
    "EventName",
    "Extract",
    "GpuCell",
    "GpuRow",
    "Incident",
    "Json",
    "Language",
    "Message",
    "Notice",
    "Notification",
    "Origin",
    "Outcome",
    "Reason",
    "Record",
    "RunState",
    "Samples",
    "Scope",
    "SeriesKey",
    "Severity",
    "Snapshot",
    "State",
    "StepRow",
    "Transition",
    "Unit",
    "Workload",
    "Writer",
]

Unit = Literal["ratio", "GB"]
Action = Literal["opened", "changed", "returned", "settled"]
EventName = Literal["opened", "updated", "closed", "finished"]
ClosedAs = Literal["resolved", "accepted", "run ended", "expired"]
Reason = Literal["opened", "updated", "escalated", "repeated", "reopened", "flapping", "finished"] | ClosedAs
RunState = Literal[
    "starting", "running", "validating", "saving", "stalled", "silent", "finished", "ended early", "crashed", "unknown"
]
"""What a run does, or how it ended."""
Language = Literal["en", "zh"]
Json = Mapping[str, Any]


class SeriesKey(NamedTuple):
    """One series of numbers: a metric (canonical phase name, ``step``, ``throughput``) of a run."""

    run: str
    metric: str
    scope: Scope = ()


class Workload(NamedTuple):
    """What a step had to do: tokens of the batch, and of its longest response.  None where the log does not tell."""

    tokens: float | None = None
    longest: float | None = None


class ChangePoint(NamedTuple):
    """A detector's word on one series.

    ``kind`` is the detector that told it (``spike``: a slow step; ``level``: a lasting change; ``drift``: a slide),
    ``step`` when it was told, ``onset`` the first changed step (``returned``: the first one back at the old baseline).
    ``effect`` is new ÷ old at equal work (unit ``ratio``) or new - old (unit ``GB``), ``before`` what the old baseline
    expects of this step's work, ``after`` what is seen now, in the metric's own unit; ``dispersion``: of the spread.
    """

    series: SeriesKey
    kind: Literal["spike", "level", "dispersion", "drift"]
    action: Action
    step: int
    onset: int
    effect: float
    unit: Unit
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a rule says of a run at one step; it holds as long as the rule keeps saying it.

    ``subject`` is the phase or metric concerned, ``cost_s`` the seconds it added to this step, ``evidence`` what was
    seen (values and steps), ``advice`` what to try, ``scope`` the hosts and ranks where those are known.  What is no
    change of a metric words its own ``title`` and ``facts`` ((label, value) pairs of a message).
    """

    rule: str
    run: str
    subject: str
    severity: Severity
    onset: int
    step: int
    ratio: float
    before: float
    after: float
    cost_s: float
    summary: str
    evidence: tuple[str, ...]
    advice: tuple[str, ...] = ()
    scope: Scope = ()
    title: str = ""
    facts: tuple[tuple[str, str], ...] = ()


class Notice(NamedTuple):
    """What was said of an incident, when, and to whom; ``lead`` is the rule and the phase that led it."""

    at: float
    reason: Reason
    severity: Severity
    lead: tuple[str, str]
    ratio: float
    receivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Incident:
    """Diagnoses of one cause, from opening to closing.  The first diagnosis is the one that names the incident.

    ``lost_s`` are the seconds it has cost so far, in all its ``episodes`` (it may have come back); ``last_step`` is the
    last step that a closed one slowed, ``by_hand`` says that a person accepted it: no baseline has moved.  ``outcome``
    are the words for how it ended, where its last diagnosis has words of its own.  ``told`` is what people were told of
    it, ``recorded`` what history knows last, ``held`` why nobody is told now.
    """

    id: str
    run: str
    attempt: int
    state: Literal["pending", "firing", "closed"]
    severity: Severity
    diagnoses: tuple[Diagnosis, ...]
    opened_step: int
    opened_at: float
    worst_ratio: float
    lost_s: float = 0.0
    told: tuple[Notice, ...] = ()
    recorded: Notice | None = None
    held: str = ""
    closed_as: ClosedAs | None = None
    closed_step: int | None = None
    last_step: int | None = None
    episodes: int = 1
    by_hand: bool = False
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of an incident's life, as `replay --json` prints it and the store keeps it.

    ``before`` and ``after`` are what the old baseline expects and what the metric shows instead, in its own unit;
    ``last_step`` is the last step that a closed incident slowed.  ``title`` says what has happened where the diagnosis
    is no change of a metric: its ratio, ``before`` and ``after`` mean nothing then.
    """

    event: EventName
    incident: str
    rule: str
    run: str
    attempt: int
    phase: str
    onset_step: int
    step: int
    ratio: float
    severity: Severity
    summary: str
    opened_step: int
    before: float
    after: float
    closed_as: ClosedAs | None = None
    last_step: int | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """What a notification says, before any channel shapes it.  Plain text: every notifier escapes for its own channel.

    ``title`` must make sense alone on a locked phone.  ``facts`` are (label, value) pairs in reading order.  ``at``
    is when it was decided, not when it is sent.  ``recent`` are the last values of the leading metric, in its unit.
    ``language`` is that of its texts, ``scope`` the hosts, cards and ranks where those are known.
    """

    incident: str
    reason: Reason
    run: str
    rule: str
    phase: str
    severity: Severity
    title: str
    summary: str
    onset_step: int
    step: int
    ratio: float
    before: float
    after: float
    facts: tuple[tuple[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    sparkline: str = ""
    closed_as: ClosedAs | None = None
    opened_at: float = 0.0
    at: float = 0.0
    link: str = ""
    recent: tuple[float, ...] = ()
    language: Language = "en"
    scope: Scope = ()


@dataclass(frozen=True, slots=True)
class Notification:
    """A row of the outbox: one message for one receiver; ``dedup_key`` is the idempotency id the receiver sees."""

    dedup_key: str
    incident: str
    receiver: str
    reason: Reason
    message: Message


class StepRow(NamedTuple):
    """The numbers of one step of one attempt, as the store keeps them.  Keys already stored win over later ones."""

    run: str
    attempt: int
    step: int
    at: float
    values: Mapping[str, float]


class GpuCell(NamedTuple):
    """One card at one instant; memory in GiB, utilization in percent, None where it is not known.

    ``low_gb`` and ``high_gb`` are the least and the most that it held around that instant, where others were left out.
    """

    gpu: str
    rank: str | None = None
    total_gb: float | None = None
    used_gb: float | None = None
    utilization: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    low_gb: float | None = None
    high_gb: float | None = None


class GpuRow(NamedTuple):
    """The cards of one host at one instant, as the store keeps them."""

    run: str
    host: str
    at: float
    cells: tuple[GpuCell, ...]


@dataclass(frozen=True, slots=True)
class State:
    """A piece of the core's state for the store: JSON-safe ``data``, None to forget it; ``version`` tags its form."""

    kind: Literal["run", "series", "agent", "silence"]
    key: str
    version: int
    data: Json | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that feeding the core caused, for one transaction; ``extracts`` are what an agent ships to its hub."""

    cursors: tuple[Cursor, ...] = ()
    steps: tuple[StepRow, ...] = ()
    states: tuple[State, ...] = ()
    transitions: tuple[Transition, ...] = ()
    notifications: tuple[Notification, ...] = ()
    extracts: tuple[Extract, ...] = ()
    gpus: tuple[GpuRow, ...] = ()

    def __bool__(self) -> bool:
        judged = self.steps or self.states or self.transitions or self.notifications or self.gpus
        return bool(self.cursors or judged or self.extracts)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a store gives back at start: the inverse of all Outcomes committed so far.

    ``steps`` holds the last steps of each run's attempts, newest last, enough to recognise a step seen again.
    """

    cursors: tuple[Cursor, ...] = ()
    states: tuple[State, ...] = ()
    steps: tuple[StepRow, ...] = ()
