"""Silences and acceptance through the engine: kept across a restart, and what they hold back is told in time."""

from __future__ import annotations

import orjson
import pytest

from tests.core.training import SETTINGS, Training
from verlwatch.core.engine import Engine
from verlwatch.core.incidents import Silence
from verlwatch.core.types import Chunk, Outcome, Snapshot, State

CONFIG = (
    "{'actor_rollout_ref': {'rollout': {'gpu_memory_utilization': 0.6}},\n"
    " 'trainer': {'n_gpus_per_node': 8, 'nnodes': 2}}"
)


class Watcher:
    """An engine whose outcomes are kept, fed step by step, a minute each."""

    def __init__(self) -> None:
        self.engine = Engine(SETTINGS)
        self.states: dict[tuple[str, str], State] = {}
        self.told: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.now = 0.0
        self.offset = 0

    def take(self, outcome: Outcome | None) -> Outcome:
        assert outcome is not None
        for state in outcome.states:
            if state.data is None:
                self.states.pop((state.kind, state.key), None)
            else:
                data = orjson.loads(orjson.dumps(state.data))
                self.states[state.kind, state.key] = State(state.kind, state.key, state.version, data)
        self.told += [(n.reason, n.message.phase) for n in outcome.notifications]
        self.texts += [f"{n.message.title} {dict(n.message.facts)}" for n in outcome.notifications]
        return outcome

    def feed(self, training: Training) -> None:
        for line in training.lines:
            self.now += 60.0
            data = line.encode()
            self.take(self.engine.feed(Chunk("train.log", 1, self.offset, data), self.now))
            self.take(self.engine.tick(self.now))
            self.offset += len(data)
        training.lines.clear()

    def restart(self) -> None:
        cursors = tuple(self.engine.cursors)
        self.engine = Engine(SETTINGS)
        self.engine.restore(Snapshot(cursors, tuple(self.states.values())))


@pytest.fixture
def training() -> Training:
    return Training()


@pytest.fixture
def watcher(training: Training) -> Watcher:
    watcher = Watcher()
    watcher.feed(training.steps(1, 60))
    return watcher


def test_a_silence_survives_a_restart_and_is_forgotten_when_it_is_over(watcher: Watcher, training: Training) -> None:
    silence = Silence("s1", phase="gen", starts_at=watcher.now, ends_at=watcher.now + 1800.0)
    watcher.take(watcher.engine.silence(silence, watcher.now))
    watcher.restart()
    watcher.feed(training.steps(61, 80, gen=80.0))
    (incident,) = watcher.engine.runs["train"].incidents
    assert (watcher.told, incident.held) == ([], "silenced by s1")
    watcher.take(watcher.engine.tick(silence.ends_at or 0.0))
    assert watcher.told == [("opened", "gen")]
    assert ("silence", "s1") not in watcher.states


def test_a_silence_that_is_ended_tells_at_once_what_it_held_back(watcher: Watcher, training: Training) -> None:
    watcher.take(watcher.engine.silence(Silence("s1", run="train", starts_at=watcher.now), watcher.now))
    watcher.feed(training.steps(61, 80, gen=80.0))
    assert watcher.told == []
    assert watcher.engine.end_silence("s2", watcher.now) is None
    watcher.take(watcher.engine.end_silence("s1", watcher.now))
    assert watcher.told == [("opened", "gen")]
    assert ("silence", "s1") not in watcher.states


def test_a_silence_without_a_time_ends_with_its_run(watcher: Watcher, training: Training) -> None:
    watcher.take(watcher.engine.silence(Silence("s1", run="train", starts_at=watcher.now), watcher.now))
    watcher.feed(training.steps(61, 70).line("Training Progress: 100%|████| 70/70 [1:00:00<00:00, 60s/it]"))
    assert ("silence", "s1") not in watcher.states


def test_what_is_accepted_is_told_as_that_and_not_again(watcher: Watcher, training: Training) -> None:
    watcher.feed(training.steps(61, 80, gen=80.0))
    (incident,) = watcher.engine.runs["train"].incidents
    assert watcher.engine.accept_incident("another", watcher.now) is None
    watcher.take(watcher.engine.accept_incident(incident.id, watcher.now))
    assert watcher.told[-1] == ("accepted", "gen")
    assert "accepted by a person" in watcher.texts[-1]
    assert "baseline now" not in watcher.texts[-1]
    told = len(watcher.told)
    watcher.restart()
    watcher.feed(training.steps(81, 120, gen=80.0))
    assert len(watcher.told) == told
    watcher.feed(training.steps(121, 140, gen=160.0))
    assert watcher.told[told] == ("opened", "gen")


def test_an_incident_in_a_step_that_validates_is_told_with_the_next_one(watcher: Watcher, training: Training) -> None:
    watcher.feed(training.steps(61, 61, gen=200.0, testing=30.0))
    assert watcher.told == []
    watcher.feed(training.steps(62, 62, gen=200.0))
    assert watcher.told[0] == ("opened", "gen")


def test_validation_in_every_step_holds_nothing_back(watcher: Watcher, training: Training) -> None:
    watcher.feed(training.steps(61, 80, testing=30.0))
    watcher.feed(training.steps(81, 81, gen=200.0, testing=30.0))
    assert ("opened", "gen") in watcher.told


def test_a_message_names_what_is_configured_and_the_gpu_hours_lost(training: Training) -> None:
    watcher = Watcher()
    for row in CONFIG.splitlines():
        training.line(row)
    watcher.feed(training.steps(1, 60).steps(61, 80, gen=80.0))
    opened = watcher.texts[0]
    assert "'Configured': 'rollout.gpu_memory_utilization = 0.6'" in opened
    assert "GPU-hours" in opened
    watcher.restart()
    assert watcher.engine.runs["train"].config["trainer.nnodes"] == 2


def test_everything_slower_at_once_is_one_incident(training: Training) -> None:
    watcher = Watcher()
    usual = {"gen": 40.0, "ref": 6.0, "old_log_prob": 8.0, "update_actor": 20.0}
    watcher.feed(training.steps(1, 60, **usual))
    watcher.feed(training.steps(61, 100, **{name: 1.6 * seconds for name, seconds in usual.items()}))
    assert watcher.told[0] == ("opened", "all_phases")
    assert len({incident.id for incident in watcher.engine.runs["train"].incidents}) == 1
    assert "the host or the network" in watcher.texts[0]


def test_a_faster_run_is_not_told(watcher: Watcher, training: Training) -> None:
    watcher.feed(training.steps(61, 160, gen=20.0))
    assert watcher.told == []
