"""The one door of the core: same bytes, same findings, however they are cut, fed and restarted."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.core.training import SETTINGS, Training, story
from verlwatch.core.engine import Engine, merged
from verlwatch.core.settings import Settings
from verlwatch.core.types import ChangePoint, Chunk, Cursor, Outcome, Snapshot, State, StepRow, Workload

DATA = Path(__file__).parents[1] / "data"


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
    assert len(disk.notifications) == len(disk.transitions) == 10
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


def at_step(number: int) -> int:
    """Where the step line ends in RUN."""
    start = RUN.index(b"step:%d - " % number)
    return RUN.index(b"\n", start) + 1


def told_after_history(history_to: int, *, restart_at: int = 0) -> tuple[list[tuple[str, str, int]], Disk]:
    disk, engine, at = Disk(), Engine(SETTINGS), 0
    while at < len(RUN):
        piece = RUN[at : at + 50_000]
        disk.commit(engine.feed(Chunk("train.log", 1, at, piece, history_to=history_to), 0.0))
        at += len(piece)
        if at - len(piece) < restart_at <= at:
            engine = Engine(SETTINGS)
            engine.restore(disk.snapshot())
            at = disk.cursors["train.log"].reread_from
    return [(t.event, t.phase, t.step) for t in disk.transitions], disk


def test_what_ended_before_anybody_watched_is_told_to_nobody(whole: tuple[Any, ...]) -> None:
    told, disk = told_after_history(at_step(195))
    assert [(event, phase) for event, phase, _ in told] == [
        ("opened", "gen"), ("opened", "losses"), ("closed", "losses"), ("closed", "gen"), ("finished", "run"),
    ]  # fmt: skip
    assert told[0][2] == 202
    assert len(disk.notifications) == 5
    assert disk.comparable()[2] == whole[2], "every value is kept, and every step has taught the baselines"
    assert {k: s for k, s in disk.states.items() if k[0] == "series"} == {
        k: s for k, s in whole[1].items() if k[0] == "series"
    }


@pytest.mark.parametrize("restart_at", [0, 100_000, at_step(246)])
def test_what_still_holds_is_told_with_the_first_new_step(restart_at: int) -> None:
    told, _ = told_after_history(at_step(250), restart_at=restart_at)
    nan = [("opened", "losses", 260), ("closed", "losses", 261)]
    assert told == [("opened", "gen", 251), *nan, ("closed", "gen", 300), ("finished", "run", 300)]


def test_a_finished_run_that_nobody_watched_is_told_to_nobody() -> None:
    told, _ = told_after_history(len(RUN))
    assert told == []


def test_a_new_generation_of_a_source_is_a_new_attempt() -> None:
    engine, disk = Engine(SETTINGS), Disk()
    disk.commit(engine.feed(Chunk("train.log", 1, 0, RUN), 0.0))
    other = text("verl-0.4.1.debug.driver.log")
    disk.commit(engine.feed(Chunk("train.log", 2, 0, other), 0.0))
    assert {attempt for _, attempt, _ in disk.steps} == {1, 2}
    assert len(disk.steps) == 602
    assert engine.runs["train"].attempts.current == 2


def test_a_source_that_is_followed_no_more_costs_no_reader_and_goes_on_where_it_was(whole: tuple[Any, ...]) -> None:
    engine, disk = Engine(SETTINGS), Disk()
    at = 0
    for end in (at_step(100), at_step(200) - 50, len(RUN)):  # once between two lines, once within one
        disk.commit(engine.feed(Chunk("train.log", 1, at, RUN[at:end]), 0.0))
        at = end
        engine.let_go(())
        assert ("train.log" in engine.readers) == (end == at_step(200) - 50)
    assert disk.comparable() == whole


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


def test_a_run_that_has_been_silent_for_a_day_makes_room_for_another() -> None:
    engine, disk = Engine(Settings(max_runs=1, receivers=("team",))), Disk()
    disk.commit(engine.feed(Chunk("a.log", 1, 0, RUN[: at_step(250)]), 0.0))
    assert any(key.startswith("a\0") for kind, key in disk.states if kind == "series")
    outcome = engine.feed(Chunk("b.log", 1, 0, RUN), 86_400.0)
    disk.commit(outcome)
    assert set(engine.runs) == {"b"}
    assert (outcome.transitions[0].run, outcome.transitions[0].closed_as) == ("a", "expired")
    assert {state.key.partition("\0")[0] for state in disk.states.values() if state.data is not None} == {"b"}
    again = Engine(SETTINGS)
    again.restore(disk.snapshot())
    assert set(again.runs) == {"b"}


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
    assert engine.runs["train"].judged.quarantined == {"ref": "ArithmeticError('broken on purpose')"}
    assert [t.phase for t in outcome.transitions if t.event == "opened"] == ["gen", "old_log_prob", "gen", "losses"]


def test_state_of_an_unknown_version_starts_warm_instead_of_failing() -> None:
    disk = Disk()
    feed_all(iter([RUN[:200_000]]), disk)
    strange = tuple(State(s.kind, s.key, 999, {"what": "is this"}) for s in disk.states.values())
    engine = Engine(SETTINGS)
    engine.restore(Snapshot(tuple(disk.cursors.values()), strange, ()))
    at = disk.cursors["train.log"].reread_from
    engine.feed(Chunk("train.log", 1, at, RUN[at:]), 0.0)
    assert engine.runs["train"].step == 300


def test_a_line_that_looks_like_the_end_mutes_no_run() -> None:
    end = RUN.index(b"step:100 - ")
    said = (
        RUN[:end] + b"\n(TaskRunner pid=8785) Final validation metrics: None\n" + RUN[RUN.rindex(b"\n", 0, end) + 1 :]
    )
    outcome = Engine(SETTINGS).feed(Chunk("train.log", 1, 0, said), 0.0)
    assert [t.phase for t in outcome.transitions if t.event == "opened"] == ["gen", "old_log_prob", "gen", "losses"]


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
    assert "adv" not in engine.runs["train"].judged.series
    end = big.index(b"step:101 - ")
    (opened,) = engine.feed(Chunk("train.log", 1, len(log), big[:end]), 0.0).transitions
    assert (opened.phase, opened.step, opened.rule) == ("adv", 100, "phase_spike")
    assert 25 < opened.ratio < 40


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0.0", "-3.5", "1e+308", "1e+15", "1e-300"])
@pytest.mark.parametrize("key", ["timing_s/gen", "timing_s/step", "perf/throughput", "actor/lr"])
def test_no_value_in_any_key_stops_or_mutes_the_watcher(key: str, value: str) -> None:
    import re

    training = Training().steps(1, 100).steps(101, 101, gen=160.0).steps(102, 130).steps(131, 160, gen=80.0)
    for i in [*range(3), 95, 100, 101, 135, 159]:
        training.lines[i] = re.sub(rf"{key}:\S+", f"{key}:{value}", training.lines[i])
    engine = Engine(SETTINGS)
    outcome = training.told(engine)
    assert engine.runs["train"].judged.quarantined == engine.runs["train"].left_out == {}
    assert ("opened", "gen") in [(event, phase) for event, phase, _ in story(outcome)]
    assert orjson.dumps([n.message for n in outcome.notifications])


def test_what_was_open_ends_with_its_attempt_and_the_next_one_begins_quietly() -> None:
    training = Training().steps(1, 100).steps(101, 130, gen=80.0)
    again = Training(pid=8).steps(121, 160)
    training.lines += again.lines
    outcome = training.told()
    assert story(outcome) == [("opened", "gen", 101), ("run ended", "gen", 101)]
    assert all(n.message.summary.count("-") == 0 for n in outcome.notifications)


def test_what_is_still_slow_after_a_resume_is_told_anew() -> None:
    training = Training().steps(1, 100).steps(101, 130, gen=80.0)
    training.lines += Training(pid=8).steps(121, 160, gen=80.0).lines
    outcome = training.told()
    assert [(event, phase) for event, phase, _ in story(outcome)] == [
        ("opened", "gen"), ("run ended", "gen"), ("opened", "gen"),
    ]  # fmt: skip
    assert outcome.transitions[-1].attempt == 2
    assert 121 <= outcome.transitions[-1].onset_step <= 125


def test_a_change_at_the_edge_of_what_matters_is_told_once() -> None:
    outcome = Training().steps(1, 100, adv=0.5, gen=43.9).steps(101, 250, adv=1.0, gen=43.9).told()
    assert len(story(outcome)) <= 2


def test_a_slow_step_that_a_phase_explains_later_keeps_its_id() -> None:
    training = Training().steps(1, 100, other=10.0).steps(101, 108, other=60.0).steps(109, 140, other=60.0, gen=44.0)
    outcome = training.told()
    opened = {t.incident for t in outcome.transitions if t.event == "opened"}
    assert {t.incident for t in outcome.transitions} == opened


def test_when_the_leading_phase_recovers_the_other_is_not_an_escalation() -> None:
    training = Training().steps(1, 100).steps(101, 120, gen=160.0, ref=15.0).steps(121, 140, ref=15.0).steps(141, 150)
    outcome = training.told()
    reasons = [(n.reason, n.message.phase) for n in outcome.notifications]
    assert reasons[0][0] == "opened"
    events = [(t.event, t.phase) for t in outcome.transitions]
    assert events.index(("updated", "ref")) < len(events) - 1
    assert [reason for reason, phase in reasons if phase == "ref"] == ["resolved"]
    assert reasons[-1] == ("resolved", "ref")
    assert "×4" not in outcome.notifications[-1].message.title


def test_falling_throughput_is_told_where_no_step_is_printed() -> None:
    noise = random.Random(3)
    lines = [
        f"step:{step} - actor/lr:1e-06 - perf/throughput:{(55.0 if step < 100 else 30.0) * noise.uniform(0.98, 1.02)!r}"
        f" - training/epoch:0\n(TaskRunner pid=7) \n"
        for step in range(1, 140)
    ]
    data = "".join(f"(TaskRunner pid=7) {line}" for line in lines).encode()
    outcome = Engine(SETTINGS).feed(Chunk("train.log", 1, 0, data), 0.0)
    assert story(outcome)[:1] == [("opened", "throughput", 100)]


def test_an_absurd_step_number_is_no_step() -> None:
    training = Training().steps(1, 60).steps(999_999_999_999, 999_999_999_999).steps(61, 90)
    engine = Engine(SETTINGS)
    training.told(engine)
    run = engine.runs["train"]
    assert (run.attempts.current, run.step, run.implausible) == (1, 90, 1)


def test_a_real_leap_is_believed_when_it_goes_on() -> None:
    engine = Engine(SETTINGS)
    Training().steps(1, 60).steps(50_000, 50_010).told(engine)
    assert engine.runs["train"].step == 50_010


@pytest.mark.parametrize("kind", ["run", "series"])
def test_state_of_which_one_kind_is_unknown_starts_warm(kind: str) -> None:
    disk = Disk()
    feed_all(iter([RUN[:200_000]]), disk)
    states = tuple(
        State(s.kind, s.key, 999, {"what": "is this"}) if s.kind == kind else s for s in disk.snapshot().states
    )
    engine = Engine(SETTINGS)
    engine.restore(Snapshot(tuple(disk.cursors.values()), states, ()))
    at = disk.cursors["train.log"].reread_from
    engine.feed(Chunk("train.log", 1, at, RUN[at:]), 0.0)
    assert engine.runs["train"].step == 300
    assert engine.runs["train"].judged.quarantined == engine.runs["train"].left_out == {}


def test_a_first_step_that_took_long_is_no_measure_of_the_budget() -> None:
    def rate(first: float) -> float:
        engine = Engine(SETTINGS)
        Training().steps(1, 1, gen=first).steps(2, 40).told(engine)
        return engine.runs["train"].judged.series["gen"]._detectors[0].rate

    assert rate(1200.0) == pytest.approx(rate(45.0), rel=0.05)


def test_settings_reach_the_series_that_are_known() -> None:
    engine = Engine(SETTINGS)
    Training().steps(1, 40).told(engine)
    watch = engine.runs["train"].judged.series["gen"]
    before = watch._detectors[0].rate
    engine.reconfigure(Settings(false_alarms_per_month=10.0, accept_after_steps=33))
    assert watch._detectors[0].rate == pytest.approx(10 * before, rel=0.05)
    assert watch._accept_after == 33


def test_settings_that_ask_for_the_same_rate_leave_it_as_it_is() -> None:
    engine = Engine(SETTINGS)
    Training().steps(1, 40).steps(41, 80, gen=90.0).told(engine)  # a step is longer now than when the rate was found
    before = engine.runs["train"].judged.series["gen"]._detectors[0].rate
    engine.reconfigure(replace(SETTINGS, accept_after_steps=33))
    assert engine.runs["train"].judged.series["gen"]._detectors[0].rate == before


def test_a_key_that_cannot_be_written_again_is_not_read() -> None:
    line = b'{"step":5,"data":{"\\ud800":1,"timing_s/gen":NaN}}\n'
    assert Engine(SETTINGS).feed(Chunk("run.jsonl", 1, 0, line), 0.0).steps == ()


def test_lost_seconds_count_every_step_since_the_onset_in_every_phase() -> None:
    outcome = Training().steps(1, 100).steps(101, 110, gen=80.0, ref=10.0).steps(111, 115).told()
    summary = outcome.notifications[-1].message.summary
    cost = float(summary.split("it cost ")[1].split(" s")[0])
    assert cost == pytest.approx(10 * (40.0 + 5.0), rel=0.05)


def test_state_that_is_not_what_its_version_promises_starts_warm() -> None:
    disk = Disk()
    feed_all(iter([RUN[:200_000]]), disk)
    states = tuple(State(s.kind, s.key, s.version, {"what": "is this"}) for s in disk.states.values())
    engine = Engine(SETTINGS)
    engine.restore(Snapshot(tuple(disk.cursors.values()), states, ()))
    assert engine.strange_states == 1
    at = disk.cursors["train.log"].reread_from
    engine.feed(Chunk("train.log", 1, at, RUN[at:]), 0.0)
    assert engine.runs["train"].step == 300


def test_the_form_of_the_state_changes_with_its_version_only() -> None:
    from verlwatch.core._run import STATE_VERSION

    disk = Disk()
    feed_all(iter([RUN]), disk)
    run, series = disk.states["run", "train"], disk.states["series", "train\0gen"]
    assert run.data is not None
    assert series.data is not None
    assert (STATE_VERSION, sorted(run.data)) == (
        9,
        ["apart_at", "attempts", "bar_full", "config", "courses", "early", "expected", "findings", "finished",
         "finite", "forecasts", "hardware", "implausible", "incidents", "is_async", "is_counted",
         "judged", "life", "ordinals", "planned", "prints_total", "recent", "release", "resumed_at", "step", "step_at",
         "steps_seen", "waiting"],
    )  # fmt: skip
    assert (series.version, sorted(series.data)) == (
        2,
        ["accept_after", "baseline", "detectors", "noise", "pending", "rival", "shift", "since", "swing", "waiting",
         "worse"],
    )  # fmt: skip


def test_one_huge_value_costs_no_message() -> None:
    training = Training().steps(1, 69).steps(70, 70, gen=200.0).steps(71, 80)
    training.lines[59] = training.lines[59].replace("timing_s/gen:", "timing_s/gen:1e308 - timing_s/was:")
    outcome = training.told()
    assert len(outcome.notifications) == len(outcome.transitions) >= 2


@pytest.mark.parametrize("share", [0.8, 0.9, 0.95])
def test_a_step_line_that_lost_its_end_is_no_slow_step(share: float) -> None:
    lines = RUN.split(b"\n")
    at = next(i for i, line in enumerate(lines) if b"step:80 - " in line)
    lines[at] = lines[at][: int(share * len(lines[at]))]
    outcome = Engine(SETTINGS).feed(Chunk("train.log", 1, 0, b"\n".join(lines)), 0.0)
    assert [(t.event, t.phase, t.step) for t in outcome.transitions if t.step < 110] == []
    assert len(outcome.transitions) == 10


def test_a_history_that_ends_within_a_step_line_is_history() -> None:
    end = RUN.index(b"step:215 - ")
    history = RUN[: end + 1200] + b"\n"
    engine = Engine(SETTINGS)
    told = [engine.feed(Chunk("train.log", 1, 0, history, history_to=len(history)), 0.0), engine.tick(100.0)]
    assert [transition for outcome in told for transition in outcome.transitions] == []
    assert engine.runs["train"].step == 215
