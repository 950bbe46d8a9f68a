"""The one door of the core: same bytes, same findings, however they are cut, fed and restarted."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest

from verlwatch.core.engine import Engine, merged
from verlwatch.core.types import ChangePoint, Chunk, Cursor, Outcome, Settings, Snapshot, State, StepRow, Workload

DATA = Path(__file__).parents[1] / "data"
SETTINGS = Settings(receivers=("team",))


def text(name: str) -> bytes:
    return gzip.decompress((DATA / f"{name}.gz").read_bytes())


RUN = text("verl-0.3.0.post1.driver.log")


class Disk:
    """What a store keeps of outcomes, as JSON would bring it back."""

    def __init__(self) -> None:
        self.cursors: dict[str, Cursor] = {}
        self.states: dict[tuple[str, str], State] = {}
        self.steps: dict[tuple[str, int, int], StepRow] = {}
        self.transitions: list[Any] = []
        self.notifications: list[tuple[str, str]] = []

    def commit(self, outcome: Outcome) -> None:
        self.cursors.update((cursor.source, cursor) for cursor in outcome.cursors)
        for state in outcome.states:
            data = orjson.loads(orjson.dumps(state.data))
            self.states[state.kind, state.key] = State(state.kind, state.key, state.version, data)
        for row in outcome.steps:
            known = self.steps.get((row.run, row.attempt, row.step))
            values = {**row.values, **(known.values if known else {})}
            self.steps[row.run, row.attempt, row.step] = StepRow(row.run, row.attempt, row.step, 0.0, values)
        self.transitions += outcome.transitions
        self.notifications += [(n.dedup_key, n.reason) for n in outcome.notifications]

    def snapshot(self) -> Snapshot:
        return deepcopy(Snapshot(tuple(self.cursors.values()), tuple(self.states.values()), tuple(self.steps.values())))

    def comparable(self) -> tuple[Any, ...]:
        cursors = {source: (c.reread_from, c.applied_to, c.mark) for source, c in self.cursors.items()}
        steps = {at: sorted(map(repr, row.values.items())) for at, row in self.steps.items()}  # nan is not equal to nan
        return cursors, self.states, steps, self.transitions, self.notifications


def feed_all(pieces: Iterator[bytes], disk: Disk) -> None:
    engine = Engine(SETTINGS)
    offset = 0
    for piece in pieces:
        disk.commit(engine.feed(Chunk("train.log", 1, offset, piece), 0.0))
        offset += len(piece)


def cut(data: bytes, seed: random.Random, longest: int) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = seed.randint(1, longest)
        yield data[at : at + size]
        at += size


@pytest.fixture(scope="module")
def whole() -> tuple[Any, ...]:
    disk = Disk()
    feed_all(iter([RUN]), disk)
    assert len(disk.notifications) == len(disk.transitions) == 7
    return disk.comparable()


@pytest.mark.parametrize("seed", range(3))
def test_the_same_state_however_the_bytes_are_cut(whole: tuple[Any, ...], seed: int) -> None:
    disk = Disk()
    feed_all(cut(RUN, random.Random(seed), 9000), disk)
    assert disk.comparable() == whole


@pytest.mark.parametrize("seed", range(3))
def test_the_same_state_with_a_restart_after_any_commit(whole: tuple[Any, ...], seed: int) -> None:
    random_ = random.Random(seed)
    disk = Disk()
    engine, at = Engine(SETTINGS), 0
    while at < len(RUN):
        piece = RUN[at : at + random_.randint(1, 9000)]
        disk.commit(engine.feed(Chunk("train.log", 1, at, piece), 0.0))
        at += len(piece)
        if random_.random() < 0.3:
            engine = Engine(SETTINGS)
            engine.restore(disk.snapshot())
            at = disk.cursors["train.log"].reread_from
    assert disk.comparable() == whole


def test_an_outcome_that_was_never_committed_leaves_no_trace(whole: tuple[Any, ...]) -> None:
    random_ = random.Random(11)
    disk = Disk()
    engine, at = Engine(SETTINGS), 0
    while at < len(RUN):
        piece = RUN[at : at + random_.randint(1, 20_000)]
        outcome = engine.feed(Chunk("train.log", 1, at, piece), 0.0)
        if random_.random() < 0.3:  # killed between judging and committing
            engine = Engine(SETTINGS)
            engine.restore(disk.snapshot())
            at = disk.cursors["train.log"].reread_from if disk.cursors else 0
            continue
        disk.commit(outcome)
        at += len(piece)
    assert disk.comparable() == whole


def test_several_outcomes_can_be_committed_as_one(whole: tuple[Any, ...]) -> None:
    engine, disk = Engine(SETTINGS), Disk()
    half = len(RUN) // 2
    chunks = [Chunk("train.log", 1, 0, RUN[:half]), Chunk("train.log", 1, half, RUN[half:])]
    disk.commit(merged(engine.feed(chunk, 0.0) for chunk in chunks))
    assert disk.comparable() == whole


def test_a_new_generation_of_a_source_is_a_new_attempt() -> None:
    engine, disk = Engine(SETTINGS), Disk()
    disk.commit(engine.feed(Chunk("train.log", 1, 0, RUN), 0.0))
    other = text("verl-0.4.1.debug.driver.log")
    disk.commit(engine.feed(Chunk("train.log", 2, 0, other), 0.0))
    assert {attempt for _, attempt, _ in disk.steps} == {1, 2}
    assert len(disk.steps) == 602
    assert engine.runs["train"].attempts.current == 2


def test_sources_of_one_run_share_it_and_others_do_not() -> None:
    engine = Engine(SETTINGS)
    engine.feed(Chunk("/a/x.log", 1, 0, RUN, run="r"), 0.0)
    engine.feed(Chunk("/a/y.log", 1, 0, RUN, run="r"), 0.0)
    engine.feed(Chunk("/a/z.log", 1, 0, RUN), 0.0)
    assert set(engine.runs) == {"r", "z"}
    assert engine.runs["r"].attempts.current == 1
    assert engine.runs["r"].steps_seen == 300


def test_no_more_runs_than_allowed() -> None:
    engine = Engine(Settings(max_runs=1))
    engine.feed(Chunk("a.log", 1, 0, RUN), 0.0)
    engine.feed(Chunk("b.log", 1, 0, RUN), 0.0)
    assert set(engine.runs) == {"a"}
    assert engine.refused_runs > 0


def test_a_series_that_raises_is_set_aside_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from verlwatch.core.series import Watch

    judge = Watch.update

    def broken(
        self: Watch, step: int, value: float, work: Workload, *, restart: bool = False
    ) -> tuple[ChangePoint, ...]:
        if self.key.metric == "ref":
            raise ArithmeticError("broken on purpose")
        return judge(self, step, value, work, restart=restart)

    monkeypatch.setattr(Watch, "update", broken)
    engine = Engine(SETTINGS)
    outcome = engine.feed(Chunk("train.log", 1, 0, RUN), 0.0)
    assert engine.runs["train"].quarantined == {"ref": "ArithmeticError('broken on purpose')"}
    assert [t.phase for t in outcome.transitions if t.event == "opened"] == ["gen", "old_log_prob", "gen"]


def test_state_of_an_unknown_version_starts_warm_instead_of_failing() -> None:
    disk = Disk()
    feed_all(iter([RUN[:200_000]]), disk)
    strange = tuple(State(s.kind, s.key, 999, {"what": "is this"}) for s in disk.states.values())
    engine = Engine(SETTINGS)
    engine.restore(Snapshot(tuple(disk.cursors.values()), strange, ()))
    at = disk.cursors["train.log"].reread_from
    engine.feed(Chunk("train.log", 1, at, RUN[at:]), 0.0)
    assert engine.runs["train"].step == 300


def test_nothing_opens_after_the_end_of_a_run() -> None:
    end = RUN.index(b"step:210 - ")
    over = (
        RUN[:end] + b"\n(TaskRunner pid=8785) Final validation metrics: None\n" + RUN[RUN.rindex(b"\n", 0, end) + 1 :]
    )
    outcome = Engine(SETTINGS).feed(Chunk("train.log", 1, 0, over), 0.0)
    assert outcome.transitions[-1].closed_as == "run ended"
    assert outcome.transitions[-1].step == 209


def test_a_cut_line_is_closed_by_time_and_wakes_the_caller() -> None:
    engine = Engine(SETTINGS)
    engine.feed(Chunk("train.log", 1, 0, b"step:5 - actor/lr:0.001 - timing_s/gen:40.125 - timing_s/re\n"), 100.0)
    deadline = engine.deadline()
    assert deadline is not None
    assert deadline > 100.0
    assert engine.tick(deadline - 0.01).steps == ()
    (row,) = engine.tick(deadline).steps
    assert row.values == {"actor/lr": 0.001, "timing_s/gen": 40.125}
    assert engine.deadline() is None


def test_a_phase_too_small_to_matter_is_judged_from_the_step_at_which_it_does() -> None:
    log = RUN[: RUN.index(b"step:100 - ")]
    big = RUN[RUN.index(b"step:100 - ") :].replace(b"timing_s/adv:0.", b"timing_s/adv:9.", 1)
    engine = Engine(SETTINGS)
    assert engine.feed(Chunk("train.log", 1, 0, log), 0.0).transitions == ()
    assert "adv" not in engine.runs["train"].series
    end = big.index(b"step:101 - ")
    (opened,) = engine.feed(Chunk("train.log", 1, len(log), big[:end]), 0.0).transitions
    assert (opened.phase, opened.step, opened.rule) == ("adv", 100, "phase_spike")
    assert 25 < opened.ratio < 40
