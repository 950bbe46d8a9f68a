"""The agents of a hub: whether each is heard, and whether it sees its files.

An agent that is gone, or blind, is told of itself: nothing of it says how the runs do whose logs it reads, and those
are told neither as slow nor as stuck because of it.

* agent_lost: nothing has come from an agent that was heard before for LOST_S, though it says every ten seconds that it
  lives.  It ends with the next word of it.
* blind: an agent has not been able to read a file that it should for BLIND_S.  A file that does not exist yet is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from verlwatch.core._telling import Told, calm, notify, record
from verlwatch.core.incidents import (
    NO_NEWS,
    Moment,
    Silences,
    duration,
    incident_from,
    incident_id,
    incident_state,
    reason,
)
from verlwatch.core.life import AGENT, Sight
from verlwatch.core.settings import Settings
from verlwatch.core.types import ClosedAs, Diagnosis, Incident, Message, Reason, State

LOST_S = 60.0
BLIND_S = 60.0
LATE_S = 25.0
"""An agent says every ten seconds that it lives: later than this its runs are not seen."""
STATE_VERSION = 2
_NAMED = 5

AgentRule = Literal["agent_lost", "blind"]
AGENT_RULES: tuple[AgentRule, ...] = get_args(AgentRule)
"""The rules about agents; their incidents have no steps and no ratio."""


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
    """What is known of one agent; ``episodes`` counts its incidents, so that no two have the same id."""

    report: AgentReport
    seen_at: float
    blind_since: float | None = None
    episodes: int = 0
    incidents: dict[AgentRule, Incident] = field(default_factory=dict)
    is_heard: bool = False
    """Whether it has said anything since the hub's own start."""
    ended: list[Incident] = field(default_factory=list)
    """Closed, and not yet told to those who know that they were open."""


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
            yield from agent.incidents.values()

    def expect(self, names: Collection[str], now: float, told: Told) -> None:
        """From now on these agents are expected and no others; the time in which nobody listened does not count."""
        self._expected = frozenset(names)
        for name in list(self._agents):
            if name in names:
                self._agents[name].seen_at = now
            else:
                agent = self._agents[name]
                for rule in list(agent.incidents):
                    self._close(agent, rule, "expired", now, told)
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
        if "agent_lost" in agent.incidents:
            self._close(agent, "agent_lost", "resolved", now, told)
        if report.unreadable:
            agent.blind_since = now if agent.blind_since is None else min(now, agent.blind_since)
        else:
            agent.blind_since = None
            if "blind" in agent.incidents:
                self._close(agent, "blind", "resolved", now, told)
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
        for name, agent in self._agents.items():
            report = agent.report
            silent = now - agent.seen_at >= LATE_S
            error = f"nothing is heard of it for {duration(now - agent.seen_at)}" if silent else ""
            if report.unreadable and not error:
                error = f"it cannot read {report.unreadable[0]}"
            behind = report.waiting > 0 or not agent.is_heard
            for run in report.runs:
                yield Sight(f"{AGENT}{name}", run, not error, error, behind)

    def _look(self, agent: _Agent, now: float, told: Told) -> None:
        if "agent_lost" not in agent.incidents and now - agent.seen_at >= LOST_S:
            self._open(agent, "agent_lost", now)
        if "blind" not in agent.incidents and agent.blind_since is not None and now - agent.blind_since >= BLIND_S:
            self._open(agent, "blind", now)
        for rule, incident in agent.incidents.items():
            agent.incidents[rule] = self._tell(agent, incident, now, told)
        after = [self._tell(agent, incident, now, told) for incident in agent.ended]
        agent.ended = [incident for incident in after if incident.held]

    # ------------------------------------------------------------------------------------------------ telling
    def _open(self, agent: _Agent, rule: AgentRule, now: float) -> None:
        agent.episodes += 1
        report = agent.report
        advice: tuple[str, ...]
        if rule == "agent_lost":
            title = f"nothing heard of agent {report.name} for {duration(now - agent.seen_at)}"
            evidence: tuple[str, ...] = ()
            advice = (
                f"see on {report.name} whether the host is up and `systemctl status verlwatch` says active",
                "see whether it reaches the hub: its own status page names the last error",
            )
        else:
            title = f"agent {report.name} cannot read {len(report.unreadable)} of its {report.sources} files"
            evidence = report.unreadable[:_NAMED]
            advice = (f"see on {report.name}, with `verlwatch status`, what keeps it from reading: permissions, disk",)
        diagnosis = Diagnosis(
            rule, f"agent {report.name}", report.name, "warning", 0, 0, 1.0, 0.0, 0.0, 0.0, title, evidence, advice,
            scope=(("host", report.name),),
        )  # fmt: skip
        key = incident_id(diagnosis.run, agent.episodes, rule, 0)
        agent.incidents[rule] = Incident(
            key, diagnosis.run, agent.episodes, "firing", "warning", (diagnosis,), 0, now, 1.0
        )

    def _close(self, agent: _Agent, rule: AgentRule, closed_as: ClosedAs, now: float, told: Told) -> None:
        """Ends an incident."""
        closed = replace(agent.incidents.pop(rule), state="closed", closed_as=closed_as, closed_step=0)
        after = self._tell(agent, closed, now, told)
        if after.held:
            agent.ended.append(after)

    def _tell(self, agent: _Agent, incident: Incident, now: float, told: Told) -> Incident:
        """Says what is worth saying of an incident; the incident as it remembers that."""
        noted = record(incident, Moment(incident.run, incident.attempt, 0, now), told)
        quiet = calm(noted, now, self.settings, self.silences)
        verdict = reason(noted, quiet, now, self.settings.policy)
        if verdict.reason is not None:
            noted = notify(noted, self._message(agent, noted, verdict.reason, now), self.settings, told)
        else:
            is_over = noted.state == "closed" and not noted.told
            noted = replace(noted, held="" if is_over or verdict.held in NO_NEWS else str(verdict))
        if noted != incident:
            self._dirty.add(agent.report.name)
        return noted

    def _message(self, agent: _Agent, incident: Incident, why: Reason, now: float) -> Message:
        lead = incident.diagnoses[0]
        is_open = incident.state != "closed"
        title, summary = _words(agent, incident, now)
        return Message(
            incident.id, why, incident.run, lead.rule, lead.subject, incident.severity, title, summary,
            0, 0, 1.0, 0.0, 0.0,
            evidence=lead.evidence if is_open else (),
            advice=lead.advice if is_open else (),
            closed_as=incident.closed_as,
            opened_at=incident.opened_at,
            at=now,
            link=self.settings.link,
            scope=lead.scope,
        )  # fmt: skip

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
        agent = _Agent(AgentReport(name, tuple(data["runs"]), data["sources"]), 0.0, None, data["episodes"])
        agent.incidents = {rule: incident_from(incident) for rule, incident in data["open"].items()}
        agent.ended = [incident_from(incident) for incident in data["ended"]]
        self._agents[name] = agent


def _state(agent: _Agent) -> dict[str, Any]:
    return {
        "runs": list(agent.report.runs),
        "sources": agent.report.sources,
        "episodes": agent.episodes,
        "open": {rule: incident_state(incident) for rule, incident in agent.incidents.items()},
        "ended": [incident_state(incident) for incident in agent.ended],
    }


def _words(agent: _Agent, incident: Incident, now: float) -> tuple[str, str]:
    """Title and summary."""
    lead, report = incident.diagnoses[0], agent.report
    runs = ", ".join(report.runs[:_NAMED]) or "no run yet"
    if incident.state != "closed":
        if lead.rule == "agent_lost":
            return (
                lead.summary,
                f"The {report.sources} files that it reads, of {runs}, are not watched until it is back.",
            )
        return lead.summary, f"What they say of {runs} is not known until it can."
    good = {"agent_lost": "is heard again", "blind": "can read all its files again"}[lead.rule]
    what = good if incident.closed_as == "resolved" else "is no longer expected"
    lasted = duration(max(0.0, now - incident.opened_at))
    return f"agent {report.name} {what}, {lasted} after it was told", f"It was: {lead.summary}."


def _due(agent: _Agent) -> Iterator[float]:
    if "agent_lost" not in agent.incidents:
        yield agent.seen_at + LOST_S
    if agent.blind_since is not None and "blind" not in agent.incidents:
        yield agent.blind_since + BLIND_S
