"""The agents of a hub: whether each is heard, and whether it sees its files.

An agent that is gone, or blind, is told of itself: nothing of it says how the runs do whose logs it reads, and those
are told neither as slow nor as stuck because of it.

* agent_lost: nothing has come from an agent that was heard before for LOST_S, though it says every ten seconds that it
  lives.  It ends with the next word of it.
* blind: an agent has not been able to read a file that it should for BLIND_S.  A file that does not exist yet is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from verlwatch.core._telling import Told, calm, tell
from verlwatch.core.incidents import Change, Conditions, Context, Moment, Policy, Silences
from verlwatch.core.life import AGENT, Sight
from verlwatch.core.settings import Settings
from verlwatch.core.types import Diagnosis, Incident, State
from verlwatch.core.words import duration

LOST_S = 60.0
BLIND_S = 60.0
LATE_S = 25.0
"""An agent says every ten seconds that it lives: later than this its runs are not seen."""
STATE_VERSION = 3
_NAMED = 5
_APART = Policy(reopen_steps=-1)
"""An agent has no steps: what comes back is another incident."""
_HEARD, _READS = "agent", "files"
"""What incidents of an agent are about."""
_OUTCOMES = {_HEARD: "heard again", _READS: "can read all its files again"}


@dataclass(frozen=True, slots=True)
class AgentReport:
    """What an agent says of itself: the runs whose logs it reads, how many files, and those it cannot read.

    ``waiting`` is what it has read and not shipped yet.
    """

    name: str
    runs: tuple[str, ...] = ()
    sources: int = 0
    unreadable: tuple[str, ...] = ()
    waiting: int = 0


@dataclass(slots=True)
class _Agent:
    """What is known of one agent."""

    report: AgentReport
    seen_at: float
    blind_since: float | None = None
    conditions: Conditions = field(default_factory=lambda: Conditions(_APART))
    is_heard: bool = False
    """Whether it has said anything since the hub's own start."""

    @property
    def subject(self) -> str:
        """What stands in place of a run's name in what is told of it."""
        return f"{AGENT}{self.report.name}"


class Fleet:
    """Every agent that was ever heard and is still expected."""

    def __init__(self, settings: Settings, silences: Silences | None = None) -> None:
        self.settings = settings
        self.silences = silences or Silences()
        self._agents: dict[str, _Agent] = {}
        self._dirty: set[str] = set()
        self._expected: frozenset[str] = frozenset()

    @property
    def incidents(self) -> Iterator[Incident]:
        """What is open."""
        for agent in self._agents.values():
            yield from agent.conditions

    def expect(self, names: Collection[str], now: float, told: Told) -> None:
        """From now on these agents are expected and no others; the time in which nobody listened does not count."""
        self._expected = frozenset(names)
        for name, agent in list(self._agents.items()):
            if name in names:
                agent.seen_at = now
            else:
                moment = _moment(agent, now)
                self._tell(agent, agent.conditions.finish(moment, "expired", "no longer expected"), moment, told)
                del self._agents[name]
                self._dirty.add(name)

    def hear(self, report: AgentReport, now: float, told: Told) -> None:
        """An agent has said how it stands; what one says that is no longer expected was on its way."""
        if report.name not in self._expected:
            return
        agent = self._agents.get(report.name)
        if agent is None:
            agent = self._agents[report.name] = _Agent(report, now)
            self._dirty.add(report.name)
        if agent.report.runs != report.runs:
            self._dirty.add(report.name)
        agent.report, agent.seen_at, agent.is_heard = report, now, True
        if not report.unreadable:
            agent.blind_since = None
        else:
            agent.blind_since = now if agent.blind_since is None else min(now, agent.blind_since)
        self._look(agent, now, told)

    def tick(self, now: float, told: Told) -> None:
        """Lets time pass."""
        for agent in self._agents.values():
            agent.seen_at = min(agent.seen_at, now)  # the clock may have been set back
            self._look(agent, now, told)

    def deadline(self) -> float | None:
        """When `tick` is wanted."""
        return min((at for agent in self._agents.values() for at in _due(agent)), default=None)

    def sights(self, now: float) -> Iterator[Sight]:
        """How the runs of each agent are seen: not while it is silent, not up to now while it ships what it has."""
        for agent in self._agents.values():
            report = agent.report
            silent = now - agent.seen_at >= LATE_S
            error = f"nothing is heard of it for {duration(now - agent.seen_at)}" if silent else ""
            if report.unreadable and not error:
                error = f"it cannot read {report.unreadable[0]}"
            behind = report.waiting > 0 or not agent.is_heard
            for run in report.runs:
                yield Sight(agent.subject, run, not error, error, behind)

    def _look(self, agent: _Agent, now: float, told: Told) -> None:
        moment, conditions = _moment(agent, now), agent.conditions
        before = conditions.state()
        changes = conditions.update(tuple(_holding(agent, now)), moment, _OUTCOMES, _unknown(agent))
        self._tell(agent, changes, moment, told)
        conditions.forget(moment.attempt, moment.step)
        if conditions.state() != before:
            self._dirty.add(agent.report.name)

    def _tell(self, agent: _Agent, changes: Iterable[Change], moment: Moment, told: Told) -> None:
        quiet = partial(calm, now=moment.now, settings=self.settings, silences=self.silences)
        context = Context(link=self.settings.link)
        for incident in tell(changes, moment, quiet, lambda _: context, self.settings, told):
            agent.conditions.note(incident)

    # ------------------------------------------------------------------------------------------------ state
    def states(self) -> list[State]:
        """What changed since the last call, for the store."""
        out = []
        for name in sorted(self._dirty):
            agent = self._agents.get(name)
            out.append(State("agent", name, STATE_VERSION, None if agent is None else _state(agent)))
        self._dirty.clear()
        return out

    def restore(self, name: str, data: Mapping[str, Any]) -> None:
        """Takes up an agent where it was; `expect` says since when somebody listens again."""
        report = AgentReport(name, tuple(data["runs"]), data["sources"])
        self._agents[name] = _Agent(report, 0.0, None, Conditions.from_state(data["conditions"], _APART))


def _state(agent: _Agent) -> dict[str, Any]:
    return {
        "runs": list(agent.report.runs),
        "sources": agent.report.sources,
        "conditions": agent.conditions.state(),
    }


def _moment(agent: _Agent, now: float) -> Moment:
    return Moment(agent.subject, 1, 0, now)


def _holding(agent: _Agent, now: float) -> Iterator[Diagnosis]:
    """What is wrong with it now."""
    if now - agent.seen_at >= LOST_S:
        is_known = _HEARD in agent.conditions
        yield agent.conditions[_HEARD].diagnoses[0] if is_known else _lost(agent, now - agent.seen_at)
    if agent.blind_since is not None and now - agent.blind_since >= BLIND_S:
        yield _blind(agent)


def _unknown(agent: _Agent) -> frozenset[str]:
    """What may last though that is not known: nothing was heard of it yet, or its files have troubled it before."""
    if not agent.is_heard:
        return frozenset(_OUTCOMES)
    return frozenset({_READS} if agent.report.unreadable else ())


def _lost(agent: _Agent, silent_s: float) -> Diagnosis:
    report = agent.report
    return _diagnosis(
        agent,
        "agent_lost",
        _HEARD,
        f"nothing heard of it for {duration(silent_s)}",
        f"The {report.sources} files that it reads, of {_runs(report)}, are not watched until it is back",
        advice=(
            f"see on {report.name} whether the host is up and `systemctl status verlwatch` says active",
            "see whether it reaches the hub: its own status page names the last error",
        ),
    )


def _blind(agent: _Agent) -> Diagnosis:
    report = agent.report
    return _diagnosis(
        agent,
        "blind",
        _READS,
        f"cannot read {len(report.unreadable)} of its {report.sources} files",
        f"What they say of {_runs(report)} is not known until it can",
        evidence=report.unreadable[:_NAMED],
        advice=(f"see on {report.name}, with `verlwatch status`, what keeps it from reading: permissions, disk",),
    )


def _diagnosis(
    agent: _Agent,
    rule: str,
    subject: str,
    title: str,
    summary: str,
    *,
    evidence: tuple[str, ...] = (),
    advice: tuple[str, ...],
) -> Diagnosis:
    return Diagnosis(
        rule, agent.subject, subject, "warning", 0, 0, 1.0, 0.0, 0.0, 0.0, summary, evidence, advice,
        scope=(("host", agent.report.name),),
        title=title,
    )  # fmt: skip


def _runs(report: AgentReport) -> str:
    return ", ".join(report.runs[:_NAMED]) or "no run yet"


def _due(agent: _Agent) -> Iterator[float]:
    if _HEARD not in agent.conditions:
        yield agent.seen_at + LOST_S
    if agent.blind_since is not None and _READS not in agent.conditions:
        yield agent.blind_since + BLIND_S
