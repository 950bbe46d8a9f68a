"""The agents of a hub: whether each is heard, and whether it sees its files.

An agent that is gone, or blind, is told of itself: nothing of it says how the runs do whose logs it reads, and those
are told neither as slow nor as stuck because of it.

* agent_lost: nothing has come from an agent that was heard before for LOST_S, though it says every ten seconds that it
  lives.  It ends with the next word of it.
* blind: an agent has not been able to read a file that it should for BLIND_S.  A file that does not exist yet is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from verlwatch.core._run import Told
from verlwatch.core.incidents import duration, incident_from, incident_id
from verlwatch.core.settings import Settings
from verlwatch.core.types import ClosedAs, Diagnosis, Incident, Message, Notification, State, Transition

LOST_S = 60.0
BLIND_S = 60.0
STATE_VERSION = 1
_NAMED = 5

AgentRule = Literal["agent_lost", "blind"]
AGENT_RULES: tuple[AgentRule, ...] = get_args(AgentRule)
"""The rules about agents; their incidents have no steps and no ratio."""


@dataclass(frozen=True, slots=True)
class AgentReport:
    """What an agent says of itself: the runs whose logs it reads, how many files, and those it cannot read."""

    name: str
    runs: tuple[str, ...] = ()
    sources: int = 0
    unreadable: tuple[str, ...] = ()


@dataclass(slots=True)
class _Agent:
    """What is known of one agent; ``episodes`` counts what was told of it, so that no two have the same id."""

    report: AgentReport
    seen_at: float
    blind_since: float | None = None
    episodes: int = 0
    incidents: dict[AgentRule, Incident] = field(default_factory=dict)


class Fleet:
    """Every agent that was ever heard and is still expected."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
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
                for rule in list(self._agents[name].incidents):
                    self._close(self._agents[name], rule, "expired", now, told)
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
        agent.report, agent.seen_at = report, now
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

    def _look(self, agent: _Agent, now: float, told: Told) -> None:
        if "agent_lost" not in agent.incidents and now - agent.seen_at >= LOST_S:
            self._open(agent, "agent_lost", now, told)
        if "blind" not in agent.incidents and agent.blind_since is not None and now - agent.blind_since >= BLIND_S:
            self._open(agent, "blind", now, told)

    # ------------------------------------------------------------------------------------------------ telling
    def _open(self, agent: _Agent, rule: AgentRule, now: float, told: Told) -> None:
        agent.episodes += 1
        report = agent.report
        runs = ", ".join(report.runs[:_NAMED]) or "no run yet"
        advice: tuple[str, ...]
        if rule == "agent_lost":
            title = f"nothing heard of agent {report.name} for {duration(now - agent.seen_at)}"
            summary = f"The {report.sources} files that it reads, of {runs}, are not watched until it is back."
            evidence: tuple[str, ...] = ()
            advice = (
                f"see on {report.name} whether the host is up and `systemctl status verlwatch` says active",
                "see whether it reaches the hub: its own status page names the last error",
            )
        else:
            title = f"agent {report.name} cannot read {len(report.unreadable)} of its {report.sources} files"
            summary = f"What they say of {runs} is not known until it can."
            evidence = report.unreadable[:_NAMED]
            advice = (f"see on {report.name}, with `verlwatch status`, what keeps it from reading: permissions, disk",)
        diagnosis = Diagnosis(
            rule, f"agent {report.name}", report.name, "warning", 0, 0, 1.0, 0.0, 0.0, 0.0, title, evidence, advice
        )
        key = incident_id(diagnosis.run, agent.episodes, rule, 0)
        agent.incidents[rule] = Incident(
            key, diagnosis.run, agent.episodes, "firing", "warning", (diagnosis,), 0, now, 1.0, notified=("opened",)
        )
        self._say(agent.incidents[rule], title, summary, now, told)
        self._dirty.add(report.name)

    def _close(self, agent: _Agent, rule: AgentRule, closed_as: ClosedAs, now: float, told: Told) -> None:
        incident = agent.incidents.pop(rule)
        closed = replace(
            incident, state="closed", closed_as=closed_as, closed_step=0, notified=(*incident.notified, closed_as)
        )
        lasted = duration(max(0.0, now - incident.opened_at))
        good = {"agent_lost": "is heard again", "blind": "can read all its files again"}[rule]
        what = good if closed_as == "resolved" else "is no longer expected"
        title = f"agent {agent.report.name} {what}, {lasted} after it was told"
        self._say(closed, title, f"It was: {incident.diagnoses[0].summary}.", now, told)
        self._dirty.add(agent.report.name)

    def _say(self, incident: Incident, title: str, summary: str, now: float, told: Told) -> None:
        lead, reason = incident.diagnoses[0], incident.notified[-1]
        is_open = incident.state != "closed"
        message = Message(
            incident.id, reason, incident.run, lead.rule, lead.subject, incident.severity, title, summary,
            0, 0, 1.0, 0.0, 0.0,
            evidence=lead.evidence if is_open else (),
            advice=lead.advice if is_open else (),
            closed_as=incident.closed_as,
            opened_at=incident.opened_at,
            at=now,
            link=self.settings.link,
        )  # fmt: skip
        told.transitions.append(
            Transition(
                "opened" if is_open else "closed", incident.id, lead.rule, incident.run, incident.attempt, lead.subject,
                0, 0, 1.0, incident.severity, title, 0, 0.0, 0.0, incident.closed_as, None,
            )
        )  # fmt: skip
        key = f"{incident.id}-{len(incident.notified)}"
        told.notifications.extend(
            Notification(key, incident.id, receiver, reason, message) for receiver in self.settings.receivers
        )

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
        self._agents[name] = agent


def _state(agent: _Agent) -> dict[str, Any]:
    return {
        "runs": list(agent.report.runs),
        "sources": agent.report.sources,
        "episodes": agent.episodes,
        "open": {rule: asdict(incident) for rule, incident in agent.incidents.items()},
    }


def _due(agent: _Agent) -> Iterator[float]:
    if "agent_lost" not in agent.incidents:
        yield agent.seen_at + LOST_S
    if agent.blind_since is not None and "blind" not in agent.incidents:
        yield agent.blind_since + BLIND_S
