"""The status says what is so: of incidents, phases, runs and how far each source is behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from pydantic import TypeAdapter

from tests.core.gpu_fleet import sample
from tests.fakes.clock import VirtualClock
from verlwatch.config import Config
from verlwatch.core.engine import Engine
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk, Extract, Transition
from verlwatch.shell._source_view import SourceView
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.observers.gpus import Gpus
from verlwatch.shell.overview import Overview
from verlwatch.status import AgentStatus, ConfigStatus, SamplingStatus, Status

START = 1_000_000.0
STEP_S = 60.0


@dataclass
class World:
    """An engine that is fed by hand, and the overview of it."""

    engine: Engine
    now: float = START
    views: list[SourceView] = field(default_factory=list)
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        judge = SimpleNamespace(engine=self.engine, positions=self.positions, store_error=None, turned_at=START)
        tail = SimpleNamespace(sources=lambda: self.views, notices=())
        store = SimpleNamespace(size=lambda: 0, gone=None, notices=())
        self.overview = Overview(
            cast("Any", judge), cast("Any", tail), cast("Any", store), ConfigStatus(), lambda: self.now
        )
        self.overview.deliver = cast("Any", SimpleNamespace(health=lambda: (), stuck=lambda: ()))

    def feed(self, lines: list[bytes], offset: int = 0) -> int:
        """Line by line, a step a minute; the offset behind them."""
        for line in lines:
            self.now += STEP_S
            self.overview.committed(self.engine.feed(Chunk("r.log", 1, offset, line, run="r"), self.now))
            offset += len(line)
        return offset


@pytest.fixture
def steps(recorded: Path) -> list[bytes]:
    text = (recorded / "verl-0.3.0.post1.driver.log").read_bytes()
    return [line for line in text.splitlines(keepends=True) if b"step:" in line]


def test_a_closed_incident_was_opened_when_it_was_opened(steps: list[bytes]) -> None:
    world = World(Engine())
    opened: dict[str, float] = {}
    offset = 0
    for line in steps:
        offset = world.feed([line], offset)
        for one in world.overview.status().incidents:
            if one.state != "closed":
                opened.setdefault(one.id, one.opened_at)
    closed = [one for one in world.overview.status().incidents if one.state == "closed"]
    assert len([one for one in closed if one.id in opened]) >= 2
    assert [one.opened_at for one in closed if one.id in opened] == [
        opened[one.id] for one in closed if one.id in opened
    ]


def test_what_was_open_at_the_start_keeps_the_time_of_its_opening(steps: list[bytes]) -> None:
    world = World(Engine())
    offset = taken = 0
    while not (firing := [one for one in world.overview.status().incidents if one.state == "firing"]):
        offset = world.feed([steps[taken]], offset)
        taken += 1
    again = World(world.engine, now=world.now)
    again.feed(steps[taken:], offset)
    (closed,) = (one for one in again.overview.status().incidents if one.id == firing[0].id)
    assert (closed.state, closed.opened_at) == ("closed", firing[0].opened_at)


def test_phases_stand_in_the_order_of_a_step_even_if_one_came_later() -> None:
    world = World(Engine())
    world.feed([
        b"step:1 - timing_s/gen:40.1 - timing_s/update_critic:9.1 - timing_s/step:60.1\n",
        b"step:2 - timing_s/gen:40.2 - timing_s/update_critic:9.2 - timing_s/update_actor:9.3 - timing_s/step:70.1\n",
        b"\n",
    ])  # fmt: skip
    world.engine.tick(world.now + 60)
    (run,) = world.overview.status().runs
    assert [phase.name for phase in run.phases] == ["gen", "update_critic", "update_actor", "step"]


def test_a_source_that_is_read_all_the_time_and_never_to_its_end_is_behind_for_as_long() -> None:
    world = World(Engine())
    for second in range(100):
        world.now = START + second
        world.views = [
            SourceView("r.log", "r", "reading", size=10 << 30, position=second << 20, last_read_at=world.now)
        ]
        world.positions["r.log"] = (0, second << 20)
        world.overview.refresh()
    (source,) = world.overview.status().sources
    assert source.lag_s == 99.0
    world.positions["r.log"] = (0, 10 << 30)
    (source,) = world.overview.status().sources
    assert (source.lag_bytes, source.lag_s) == (0, 0.0)


def test_runs_beyond_the_limit_are_told_without_claiming_what_was_not_counted() -> None:
    world = World(Engine(Settings(max_runs=1)))
    for run in ("a", "b"):
        line = b"step:1 - timing_s/gen:40.1 - timing_s/step:60.1\n\n"
        world.engine.feed(Chunk(f"{run}.log", 1, 0, line, run=run), START)
    assert world.overview.status().notices == (
        "more than 1 runs: further ones are not judged (1 pieces of their logs left out)",
    )


@pytest.mark.parametrize("prefix", ["(TaskRunner pid={pid}) ", ""], ids=["by prefix", "without prefix"])
def test_two_trainings_in_one_run_are_told(prefix: str) -> None:
    world = World(Engine())
    step = "step:{step} - timing_s/gen:{gen}.{step:03} - timing_s/step:{gen}9.{step:03}\n"
    lines = [
        (prefix + step).format(pid=pid, step=number, gen=gen).encode()
        for number in range(1, 60)
        for pid, gen in ((10, 40), (20, 90))
    ]
    world.feed([*lines, b"\n"])
    (notice,) = world.overview.status().notices
    assert notice.startswith("run r: many of its last steps contradict")
    assert "a run for each" in notice


def test_a_training_that_restarts_is_not_taken_for_two() -> None:
    world = World(Engine())
    offset = 0
    for attempt in range(4):
        lines = [
            f"step:{number} - timing_s/gen:4{attempt}.{number:03} - timing_s/step:9{attempt}.0\n".encode()
            for number in range(1, 30)
        ]
        offset = world.feed(lines, offset)
    assert world.overview.status().notices == ()


def test_step_lines_that_no_training_writes_are_told() -> None:
    world = World(Engine())
    end = world.feed([
        f"step:{step} - timing_s/gen:4{step}.1 - timing_s/step:9{step}.0\n".encode() for step in (1, 2, 900_000, 3)
    ])  # fmt: skip
    world.feed([b"\n"], end)
    (notice,) = world.overview.status().notices
    assert notice.startswith("run r: 1 step lines left out")


def test_a_hub_without_files_of_its_own_is_ready_and_says_its_role_and_agents() -> None:
    world = World(Engine())
    assert world.overview.status().not_ready == ("sources: no file matches the configured logs yet",)
    world.overview.role, world.overview.strangers = "hub", lambda: 3
    world.overview.agents = lambda: (AgentStatus(name="n1"),)
    status = world.overview.status()
    assert (status.not_ready, status.role, status.strangers) == ((), "hub", 3)
    assert [agent.name for agent in status.agents] == ["n1"]


def test_what_an_earlier_process_has_closed_is_still_shown(steps: list[bytes]) -> None:
    world = World(Engine())
    changes: list[tuple[float, Transition]] = []
    offset = 0
    for line in steps:
        offset += len(line)
        outcome = world.engine.feed(Chunk("r.log", 1, offset - len(line), line, run="r"), world.now)
        world.now += STEP_S
        world.overview.committed(outcome)
        changes += [(world.now - STEP_S, transition) for transition in outcome.transitions]
    again = World(world.engine, now=world.now)
    again.overview.recall(changes)
    closed = [one for one in world.overview.status().incidents if one.state == "closed"]
    assert len(closed) >= 2
    assert [one for one in again.overview.status().incidents if one.state == "closed"] == closed


def test_each_card_of_a_run_is_shown_beside_its_peers() -> None:
    world = World(Engine())
    for instant in range(40):
        world.now = START + 10.0 * instant
        events = [
            sample("n1", gpu, world.now, 28.0 + (22.0 if gpu == 3 else 0.0), ranks=f"{70 + gpu}:{8 + gpu}")
            for gpu in range(4)
        ]
        world.engine.accept([Extract("gpu", "r", tuple(events))], world.now)
    (run,) = world.overview.status().runs
    assert (run.ranks_compared, run.ranks_hint) == (True, "")
    assert [(card.host, card.gpu, card.rank, card.used_gb, card.total_gb) for card in run.gpus] == [
        ("n1", str(gpu), str(8 + gpu), 50.0 if gpu == 3 else 28.0, 80.0) for gpu in range(4)
    ]
    assert [card.offset_gb for card in run.gpus] == [0.0, 0.0, 0.0, 22.0]
    assert [set(card.recent) for card in run.gpus] == [{28.0}, {28.0}, {28.0}, {50.0}]
    assert {(card.group, card.at, card.missing) for card in run.gpus} == {("4 cards", world.now, False)}


def test_a_run_without_cards_says_why_ranks_cannot_be_compared_and_what_to_do() -> None:
    world = World(Engine())
    world.feed([b"step:1 - timing_s/gen:40.1 - timing_s/step:60.1\n", b"\n"])
    (run,) = world.overview.status().runs
    assert (run.gpus, run.ranks_compared) == ((), False)
    assert run.ranks_hint.startswith("Ranks cannot be compared: nothing tells the memory of the cards.")
    assert "RAY_DEDUP_LOGS=0" in run.ranks_hint


def test_samples_that_this_process_left_out_are_counted() -> None:
    world = World(Engine())
    assert world.overview.status().sampling == SamplingStatus()
    gpus = Gpus(Inbox(), VirtualClock(), Config())
    gpus.late, gpus.missed, gpus.refused = 3, 2, 1
    world.overview.observers = (gpus,)
    assert world.overview.status().sampling == SamplingStatus(late=3, missed=2, refused=1)


def test_a_status_with_cards_can_be_read_back() -> None:
    world = World(Engine())
    world.engine.accept([Extract("gpu", "r", (sample("n1", 0, START, None),))], START)
    status = world.overview.status()
    assert TypeAdapter(Status).validate_json(orjson.dumps(status)) == status
