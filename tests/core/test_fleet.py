"""Agents that are gone or blind are told, once, and told when they are back."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from verlwatch.core.engine import Engine
from verlwatch.core.fleet import BLIND_S, LOST_S, AgentReport
from verlwatch.core.incidents import Silence
from verlwatch.core.settings import Settings
from verlwatch.core.types import Outcome, Snapshot, State

SEEING = AgentReport("n1", ("qwen",), 3)
BLIND = AgentReport("n1", ("qwen",), 3, ("/logs/train.log",))


class World:
    """A hub's engine, its store, and what was told."""

    def __init__(self) -> None:
        self.engine = Engine(Settings(receivers=("team",)))
        self.states: dict[tuple[str, str], State] = {}
        self.told: list[tuple[str, str, str]] = []
        self.keys: list[str] = []

    def _take(self, outcome: Outcome) -> None:
        for state in outcome.states:
            data = None if state.data is None else orjson.loads(orjson.dumps(state.data))
            self.states[state.kind, state.key] = State(state.kind, state.key, state.version, data)
        self.told += [(n.message.rule, n.reason, n.message.title) for n in outcome.notifications]
        self.keys += [n.dedup_key for n in outcome.notifications]
        assert len(outcome.transitions) == len(outcome.notifications)

    def hear(self, report: AgentReport, now: float) -> None:
        self._take(self.engine.hear(report, now))

    def tick(self, now: float) -> None:
        self._take(self.engine.tick(now))

    def expect(self, now: float, *names: str) -> None:
        self._take(self.engine.expect(names, now))

    def restart(self) -> None:
        self.engine = Engine(Settings(receivers=("team",)))
        self.engine.restore(Snapshot(states=tuple(self.states.values())))


@pytest.fixture
def world() -> World:
    world = World()
    world.expect(0.0, "n1", "n2")
    return world


def test_an_agent_that_falls_silent_is_told_once_and_told_again_when_it_is_heard(world: World) -> None:
    world.hear(SEEING, 10.0)
    world.tick(10.0 + LOST_S - 0.1)
    assert world.told == []
    assert world.engine.deadline() == 10.0 + LOST_S
    for second in range(3):
        world.tick(10.0 + LOST_S + second)
    assert world.told == [("agent_lost", "opened", "agent n1: nothing heard of it for 60 s")]
    assert world.engine.deadline() is None
    world.hear(SEEING, 310.0)
    assert world.told[1:] == [("agent_lost", "resolved", "agent n1: heard again")]
    assert world.keys[0].rpartition("-")[0] == world.keys[1].rpartition("-")[0]


def test_an_agent_that_was_never_heard_is_not_missed(world: World) -> None:
    world.tick(1000.0)
    assert world.told == []


def test_each_silence_is_an_incident_of_its_own(world: World) -> None:
    for start in (0.0, 1000.0):
        world.hear(SEEING, start)
        world.tick(start + LOST_S)
    world.hear(SEEING, 2000.0)
    assert [reason for _, reason, _ in world.told] == ["opened", "resolved", "opened", "resolved"]
    assert len({key.partition("-")[0] for key in world.keys}) == 2


def test_an_agent_that_cannot_read_its_files_for_a_while_is_told(world: World) -> None:
    world.hear(BLIND, 0.0)
    world.hear(BLIND, BLIND_S - 1)
    assert world.told == []
    world.hear(BLIND, BLIND_S)
    world.hear(BLIND, BLIND_S + 10)
    assert world.told == [("blind", "opened", "agent n1: cannot read 1 of its 3 files")]
    world.hear(SEEING, 200.0)
    assert world.told[1:] == [("blind", "resolved", "agent n1: can read all its files again")]


def test_a_short_blindness_is_nothing(world: World) -> None:
    for second in range(0, 1000, 20):
        world.hear(BLIND if second % 40 else SEEING, float(second))
    assert world.told == []


def test_what_is_told_is_told_once_whatever_restarts(world: World) -> None:
    world.hear(BLIND, 0.0)
    world.hear(BLIND, BLIND_S)
    world.tick(BLIND_S + LOST_S)
    assert [rule for rule, _, _ in world.told] == ["blind", "agent_lost"]
    before = world.keys[:]
    world.restart()
    world.expect(1000.0, "n1", "n2")
    world.tick(1000.0)
    world.tick(1000.0 + 2 * LOST_S)
    assert world.told[2:] == [], "what is open stays open, and is not told again"
    world.hear(SEEING, 1010.0)
    assert [(rule, reason) for rule, reason, _ in world.told[2:]] == [("blind", "resolved"), ("agent_lost", "resolved")]
    assert sorted(key.partition("-")[0] for key in world.keys[2:]) == sorted(key.partition("-")[0] for key in before)


def test_the_time_in_which_nobody_listened_does_not_count(world: World) -> None:
    world.hear(SEEING, 0.0)
    world.restart()
    world.expect(5000.0, "n1")
    world.tick(5000.0 + LOST_S - 1)
    assert world.told == []
    world.tick(5000.0 + LOST_S)
    assert [(rule, reason) for rule, reason, _ in world.told] == [("agent_lost", "opened")]


def test_an_agent_that_is_no_longer_expected_is_forgotten(world: World) -> None:
    world.hear(SEEING, 0.0)
    world.tick(LOST_S)
    world.expect(100.0, "n2")
    assert world.told[1:] == [("agent_lost", "expired", "agent n1: no longer expected")]
    assert world.states["agent", "n1"].data is None
    world.hear(SEEING, 101.0)
    world.tick(101.0 + 2 * LOST_S)
    assert len(world.told) == 2, "what it had sent before comes too late"
    assert world.states["agent", "n1"].data is None


def test_a_clock_that_is_set_back_makes_nobody_lost_or_immortal(world: World) -> None:
    world.hear(SEEING, 10_000.0)
    world.tick(100.0)
    assert world.told == []
    world.tick(100.0 + LOST_S)
    assert [rule for rule, _, _ in world.told] == ["agent_lost"]


def test_hostile_names_stay_text(world: World) -> None:
    report: Any = AgentReport("n1", ("<!channel>",) * 20, 2000, tuple(f"/logs/{i}" for i in range(2000)))
    world.hear(report, 0.0)
    world.hear(report, BLIND_S)
    ((_, _, title),) = world.told
    assert title == "agent n1: cannot read 2000 of its 2000 files"


def test_a_silenced_agent_is_told_when_the_silence_ends_and_if_it_is_still_gone(world: World) -> None:
    world.engine.silence(Silence("s1", host="n1", starts_at=0.0, ends_at=1000.0), 0.0)
    world.hear(SEEING, 10.0)
    world.engine.tick(100.0)
    (lost,) = world.engine.fleet.incidents
    assert (lost.held, lost.told) == ("silenced by s1", ())
    world.engine.tick(999.0)
    outcome = world.engine.tick(1000.0)
    assert [n.reason for n in outcome.notifications] == ["opened"]


def test_an_agent_that_comes_back_in_silence_is_told_as_back_at_once(world: World) -> None:
    world.hear(SEEING, 10.0)
    world.tick(100.0)
    world.engine.silence(Silence("s1", rule="agent_*", starts_at=0.0, ends_at=1000.0), 200.0)
    assert [n.reason for n in world.engine.hear(SEEING, 300.0).notifications] == ["resolved"]
    for now in range(310, 1000, 10):
        assert world.engine.hear(SEEING, float(now)).notifications == ()
    assert world.engine.tick(1000.0).notifications == ()
    assert world.engine.tick(1001.0).notifications == ()
