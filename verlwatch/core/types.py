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

Severity = Literal["info", "warning", "critical"]
Unit = Literal["ratio", "GB"]
Action = Literal["opened", "changed", "returned", "settled"]
EventName = Literal["opened", "updated", "closed"]
ClosedAs = Literal["resolved", "accepted", "run ended", "expired"]
Reason = Literal["opened", "updated", "escalated", "repeated", "reopened", "flapping"] | ClosedAs
Language = Literal["en", "zh"]
Scope = tuple[tuple[str, str], ...]
Json = Mapping[str, Any]


class Writer(NamedTuple):
    """The process that printed a line: its identity is ``(pid, ip)``, its name is what Ray's prefix calls it.

    ``pid`` is 0 and ``name`` empty where the line has no prefix (the driver's own stdout, a worker file).
    ``ip`` is empty for a process on the driver's own node, as Ray prints it.
    """

    name: str = ""
    pid: int = 0
    ip: str = ""


NOBODY = Writer()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of one source, in the order in which the file holds them.

    ``offset`` is the position of ``data[0]`` within this ``generation`` of the source.  ``token`` is opaque to the
    core: what the reader of files needs to find this generation again after a restart; it comes back in the Cursor.
    ``run`` is the name that the configuration gives the source's run; empty where the file names it.  What stands
    before ``history_to`` was there before anybody watched: it teaches the baselines, and opens no incident to people.
    """

    source: str
    generation: int
    offset: int
    data: bytes
    token: str = ""
    run: str = ""
    history_to: int = 0


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where reading of a source resumes after a restart, committed together with everything derived from it.

    Lexing resumes at ``reread_from``, the start of the oldest construct still open (half line, cut step line);
    records that end at or before ``applied_to`` are dropped there as already judged.  ``mark`` is the up to 64 bytes
    before ``reread_from``: a file whose bytes differ there is another file, whatever its name and inode say.
    ``history_to`` is the Chunk's, ``context`` what the lines before mean for those that follow.
    """

    source: str
    generation: int
    reread_from: int
    applied_to: int
    mark: bytes = b""
    token: str = ""
    history_to: int = 0
    context: str = ""


class Origin(NamedTuple):
    """Where a record came from; ``end`` is the byte offset just behind it, ``kind`` the line kind that read it."""

    source: str
    generation: int
    end: int
    writer: Writer
    kind: str


class Samples(NamedTuple):
    """Numbers of one step, under the names the log itself uses.

    A value that was missing, cut or unreadable is absent: never zero.  ``decimals`` is 3 where the log rounds to
    ``.3f`` (verl up to 0.4.1), None where it prints full floats.  ``scope`` labels whose numbers they are (host,
    rank, gpu); empty = the run.
    """

    origin: Origin
    step: int
    values: Mapping[str, float]
    decimals: int | None = None
    scope: Scope = ()
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An occurrence that a line tells of: ``name`` says which, ``attributes`` carry what it says."""

    origin: Origin
    name: str
    attributes: Mapping[str, str | int | float]
    severity: Severity = "info"
    excerpt: str = ""
    scope: Scope = ()
    at: float | None = None


Record = Samples | Event


@dataclass(frozen=True, slots=True)
class Extract:
    """Records of one source in their order: all that goes from who reads to who judges, on one host or between two.

    ``run`` is the run that the source belongs to; ``history`` says that all of it was there before anybody watched.
    """

    source: str
    run: str
    records: tuple[Record, ...]
    history: bool = False


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
    seen (values and steps), ``advice`` what to try, ``scope`` the hosts and ranks where those are known.
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
    last step that a closed one slowed, ``by_hand`` says that a person accepted it: no baseline has moved.  ``told`` is
    what people were told of it, ``recorded`` what history knows last, ``held`` why nobody is told now.
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


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of an incident's life, as `replay --json` prints it and the store keeps it.

    ``before`` and ``after`` are what the old baseline expects and what the metric shows instead, in its own unit;
    ``last_step`` is the last step that a closed incident slowed.
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


@dataclass(frozen=True, slots=True)
class Message:
    """What a notification says, before any channel shapes it.  Plain text: every notifier escapes for its own channel.

    ``title`` must make sense alone on a locked phone.  ``facts`` are (label, value) pairs in reading order.  ``at``
    is when it was decided, not when it is sent.  ``recent`` are the last values of the leading metric, in its unit.
    ``language`` is that of its texts.
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

    def __bool__(self) -> bool:
        judged = self.steps or self.states or self.transitions or self.notifications
        return bool(self.cursors or judged or self.extracts)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a store gives back at start: the inverse of all Outcomes committed so far.

    ``steps`` holds the last steps of each run's attempts, newest last, enough to recognise a step seen again.
    """

    cursors: tuple[Cursor, ...] = ()
    states: tuple[State, ...] = ()
    steps: tuple[StepRow, ...] = ()
