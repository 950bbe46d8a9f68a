"""What verlwatch knows at this moment, as every reader gets it: the page, the API, the metrics, the command line.

The judge builds one `Status` when asked; nothing here is stored.  ``orjson.dumps(status)`` is the body of
``/api/v1/status`` (a number that is not finite becomes null there) and
``pydantic.TypeAdapter(Status).validate_json(body)`` reads it back.  Names ending in ``_at`` are epoch seconds, ``_s``
durations in seconds; None is unknown, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from verlwatch.core.types import ClosedAs, RunState, Severity

PhaseState = Literal["warm-up", "normal", "slow", "shift", "sliding", "noisy"]
IncidentState = Literal["pending", "firing", "closed"]
Role = Literal["standalone", "agent", "hub"]

SILENT_S = 60.0
"""An agent says something every ten seconds; one that has not been heard for longer than this is told as silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStatus:
    """One phase of a run, or ``step`` for the whole step: its last seconds beside what the baseline expects of them.

    ``now_s`` are the log's own seconds, ``baseline_s`` the seconds expected of that step's work, ``ratio`` now ÷
    expected.  ``share`` is the part of the step that the phase takes, 0 to 1.  ``recent`` are the seconds of the last
    steps, oldest first, None where the log did not tell.  ``slow`` is a slow step, ``shift`` a lasting change.
    """

    name: str
    now_s: float | None = None
    baseline_s: float | None = None
    ratio: float | None = None
    share: float | None = None
    state: PhaseState = "warm-up"
    recent: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuStatus:
    """One card of a run as it was at the instant ``at``; ``gpu`` is None for a process that only a log tells of.

    Memory in GiB, as ``nvidia-smi`` and verl count.  ``offset_gb`` is how far it lately is from the median of its
    ``group``: the cards that do the same work.  ``utilization`` is in percent.  ``recent`` are the last values of
    ``used_gb``, oldest first.  ``missing``: its host tells its other cards, and this one no more.
    """

    host: str
    gpu: str | None = None
    rank: str | None = None
    actor: str | None = None
    pid: int | None = None
    used_gb: float | None = None
    total_gb: float | None = None
    utilization: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    offset_gb: float | None = None
    group: str | None = None
    recent: tuple[float | None, ...] = ()
    at: float | None = None
    missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StateStatus:
    """A state that a run was in from ``at`` on, in which attempt and after which step (None: before the first)."""

    state: RunState
    at: float
    attempt: int
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """One run.  ``attempt`` counts from 1; ``step`` is the last one seen of ``total_steps``.

    ``experiment`` is what its configuration calls it, as ``project/experiment``.
    ``step_at`` is when that step arrived, ``age_s`` how long ago that is.  ``state`` is what it does, or how it ended,
    since ``state_at``; ``states`` are the last ones, that one included, oldest first.  ``phases`` stand in the order of
    a step, ``gpus`` by host, rank and index.  Where ranks are not compared, ``ranks_hint`` says why and what to do.
    """

    name: str
    attempt: int = 1
    step: int | None = None
    total_steps: int | None = None
    step_at: float | None = None
    age_s: float | None = None
    state: RunState = "unknown"
    state_at: float | None = None
    states: tuple[StateStatus, ...] = ()
    steps_seen: int = 0
    verl_version: str | None = None
    experiment: str = ""
    phases: tuple[PhaseStatus, ...] = ()
    gpus: tuple[GpuStatus, ...] = ()
    ranks_compared: bool = False
    ranks_hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentStatus:
    """An incident that is open, or one of the last that closed.  ``before`` and ``after`` are in the metric's unit.

    ``held`` says why people are not told now, e.g. ``silenced by s1a2b3c4``; empty where nothing is held back.
    """

    id: str
    run: str
    rule: str
    phase: str
    state: IncidentState
    severity: Severity
    opened_step: int
    onset_step: int
    ratio: float | None
    before: float | None
    after: float | None
    summary: str
    opened_at: float
    closed_as: ClosedAs | None = None
    closed_step: int | None = None
    held: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceStatus:
    """Incidents that fit all five patterns are not told until ``ends_at`` (None: the end of the run)."""

    id: str
    run: str
    rule: str
    phase: str
    host: str
    rank: str
    starts_at: float
    ends_at: float | None
    comment: str
    author: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentCount:
    """How many incidents of a rule a run has opened, and how many of them closed in which way, since the start."""

    run: str
    rule: str
    opened: int
    closed: tuple[tuple[ClosedAs, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """One watched file.

    ``state`` is the reader's own word: ``waiting``, ``reading``, ``live``, ``unreadable`` and so on; ``readable`` is
    False where nothing can be read from it now.  ``position`` and ``size`` are bytes within this ``generation``;
    ``lag_bytes`` is what has been written but not judged, ``lag_s`` for how long the oldest of that has been seen.
    Lines over the limit are ``cut``, those that made a reader of ours fail ``broken``, those no UTF-8 ``undecodable``.
    """

    source: str
    run: str
    state: str
    readable: bool
    error: str | None = None
    position: int = 0
    size: int | None = None
    lag_bytes: int = 0
    lag_s: float | None = None
    generation: int = 0
    lines: int = 0
    cut_lines: int = 0
    broken_lines: int = 0
    undecodable_lines: int = 0
    nul_bytes: int = 0
    last_read_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverStatus:
    """One receiver's rows of the outbox: not yet taken, given up, taken since the start."""

    name: str
    type: str
    pending: int = 0
    dead: int = 0
    delivered: int = 0
    oldest_pending_at: float | None = None
    last_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatStatus:
    """The dead man's switch: pings ``sent`` since the start and when the last was, or why it is ``withheld``.

    ``error`` tells why the last ping was not taken.
    """

    sent: int = 0
    sent_at: float | None = None
    withheld: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """One agent of a hub.

    ``skew_s`` is by how much its clock is ahead of the hub's, ``taken`` the number of its last shipment committed,
    ``waiting`` those in its outbox, ``lag_s`` the longest lag of its files.  ``version`` and what follows from its last
    delivery are unknown until it has been heard since the hub's start.  Counted since then: samples ``thinned`` by the
    agent for want of room, shipments ``lost`` with its outbox or with the hub's own state, ``repeated`` and so
    ignored, requests ``refused``.
    """

    name: str
    version: str | None = None
    seen_at: float | None = None
    skew_s: float | None = None
    taken: int = 0
    waiting: int = 0
    sources: int = 0
    unreadable: tuple[str, ...] = ()
    lag_s: float = 0.0
    thinned: int = 0
    lost: int = 0
    repeated: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingStatus:
    """GPU samples that this process left out since its start.

    ``late`` came too late to be compared, ``missed`` instants were not asked for, ``refused`` found no room.
    """

    late: int = 0
    missed: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigStatus:
    """The configuration in force: ``path`` is None for a run without a file; ``error`` tells why a reload failed."""

    path: str | None = None
    reload_ok: bool = True
    loaded_at: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """The database: ``ok`` while commits succeed, ``bytes`` its size on disk."""

    ok: bool = True
    error: str | None = None
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Everything at ``now``.

    ``not_ready`` names everything that is not ready, each as ``<what>: <reason>``: sources, the store, a refused
    configuration, receivers that do not take messages.  Who has no token where one is needed is told no reasons.
    ``incidents`` are the open ones and the last few closed, newest first.  ``incident_counts`` count since
    ``started_at``, and so do ``strangers``: requests to a hub with a token that is nobody's, or another agent's.
    An ``agent`` judges nothing: it has no runs and no incidents, and its one receiver is the hub.
    """

    version: str
    started_at: float
    now: float
    ready: bool
    not_ready: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    """What works, but worse than it could: polling without inotify, files left out."""
    runs: tuple[RunStatus, ...] = ()
    incidents: tuple[IncidentStatus, ...] = ()
    incident_counts: tuple[IncidentCount, ...] = ()
    silences: tuple[SilenceStatus, ...] = ()
    sources: tuple[SourceStatus, ...] = ()
    receivers: tuple[ReceiverStatus, ...] = ()
    config: ConfigStatus = ConfigStatus()
    store: StoreStatus = StoreStatus()
    agents: tuple[AgentStatus, ...] = ()
    strangers: int = 0
    role: Role = "standalone"
    heartbeat: HeartbeatStatus | None = None
    """None where none is configured."""
    sampling: SamplingStatus = SamplingStatus()

    def is_silent(self, agent: AgentStatus) -> bool:
        """Whether a hub has heard nothing of an agent for SILENT_S, or not since its own start that long ago."""
        return self.now - (self.started_at if agent.seen_at is None else agent.seen_at) > SILENT_S
