"""The generated series and their scorer, and that the watch keeps what it reaches on a few of them.

The full tables are in docs/DETECTION.md; what is asked for here is far from them, so that chance does not fail it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.detection import adapter, generate, peers, tcpd
from benchmarks.detection._published import TESTS
from benchmarks.detection.generate import FAULTS, LENGTHS, PHYSICS, STRESSES, series
from benchmarks.detection.score import Detector, Job, hear, plan, score, stresses_of, table

NONE: frozenset[str] = frozenset()
TOLD_AT_ONCE = ("spike_x3", "shift_50", "shift_100", "stalls", "recovery", "excursion")


@cache
def scored() -> dict[str, Any]:
    return score(plan(adapter.make, faulty=2, quiet=4, seed=5, rate=1.0, stresses=NONE), processes=1)


class Silent:
    """Never says anything."""

    def update(
        self, step: int, seconds: float, tokens: float, max_len: float, restart: bool
    ) -> list[tuple[str, int, float]]:
        return []


class Says:
    """Says what it was told to say, at the step it was told to."""

    def __init__(self, sayings: dict[int, tuple[str, int, float]]) -> None:
        self.sayings = sayings

    def update(
        self, step: int, seconds: float, tokens: float, max_len: float, restart: bool
    ) -> list[tuple[str, int, float]]:
        return [self.sayings[step]] if step in self.sayings else []


def job(kind: str, make: Any) -> Job:
    return Job(make, 7, 750, kind, "gen", 1.0, NONE)


# ---------------------------------------------------------------------------------------------------- the watch
@pytest.mark.parametrize("kind", ["null", *LENGTHS])
def test_the_watch_is_quiet_where_nothing_was_done(kind: str) -> None:
    assert scored()["quiet"][kind]["alarms"] <= 5


@pytest.mark.parametrize("kind", TOLD_AT_ONCE)
def test_the_watch_tells_a_plain_fault_within_a_few_steps(kind: str) -> None:
    row = scored()["faults"][kind]
    assert row["both"]["detected"] == 1.0
    assert row["both"]["median"] <= 3
    assert row["onset_error"][0] <= 1


@pytest.mark.parametrize(("kind", "delay"), [("shift_25", 6), ("shift_10", 30), ("drift", 150), ("slide", 60)])
def test_the_watch_tells_a_small_or_slow_fault_in_time(kind: str, delay: int) -> None:
    row = scored()["faults"][kind]
    assert row["both"]["detected"] >= 0.8
    assert row["both"]["median"] <= delay


@pytest.mark.parametrize("kind", ["spike_x3", "recovery", "excursion"])
def test_the_watch_tells_the_end_of_what_ends(kind: str) -> None:
    assert scored()["faults"][kind]["closed"] >= 0.8


@pytest.mark.parametrize("kind", ["shift_25", "shift_50", "shift_100", "recovery"])
def test_the_watch_tells_how_much_slower_it_became(kind: str) -> None:
    assert scored()["faults"][kind]["effect_error"][0] <= 0.06


@pytest.mark.parametrize("stress", STRESSES)
def test_under_stress_a_shift_is_seen_and_false_alarms_stay_few(stress: str) -> None:
    jobs = [
        one
        for one in plan(adapter.make, faulty=2, quiet=2, seed=5, rate=1.0, stresses=frozenset({stress}))
        if one.kind in {"null", "shift_50"}
    ]
    measured = score(jobs, processes=1)
    assert measured["quiet"]["null"]["alarms"] <= 8
    assert measured["faults"]["shift_50"]["both"]["detected"] >= 0.75


def test_the_state_of_a_series_stays_small() -> None:
    assert 0 < scored()["state_bytes"] <= 8192


# ---------------------------------------------------------------------------------------------------- the scorer
def test_a_detector_that_says_nothing_sees_nothing_and_raises_nothing() -> None:
    measured = score([job("null", lambda *_: Silent()), job("shift_100", lambda *_: Silent())], processes=1)
    assert measured["quiet"]["null"]["alarms"] == 0
    assert measured["faults"]["shift_100"]["both"] == {"detected": 0.0, "median": None, "p90": None}
    assert measured["state_bytes"] == 0
    assert "0 %" in table(measured)


def test_a_detector_that_knows_the_truth_is_told_to_be_exact() -> None:
    truth = series(7, 750, "recovery", "gen")
    sayings = {truth.onset + 1: ("level", truth.onset, 1.5), truth.end + 2: ("close", truth.end, 1.0)}
    row = score([job("recovery", lambda *_: Says(sayings))], processes=1)["faults"]["recovery"]
    assert row["gen"] == row["both"] == {"detected": 1.0, "median": 2, "p90": 2}
    assert row["onset_error"] == (0, 0)
    assert row["effect_error"] == (0.0, 0.0)
    assert row["closed"] == 1.0
    assert row["extra"] == 0.0


def test_an_alarm_before_the_onset_or_a_closing_that_comes_late_counts_for_nothing() -> None:
    truth = series(7, 750, "recovery", "gen")
    sayings = {truth.onset - 1: ("level", truth.onset, 1.5), truth.end + 3: ("close", truth.end, 1.0)}
    row = score([job("recovery", lambda *_: Says(sayings))], processes=1)["faults"]["recovery"]
    assert row["both"]["detected"] == 0.0
    assert row["closed"] == 0.0


def test_alarms_between_the_two_parts_of_an_excursion_are_spurious() -> None:
    truth = series(7, 750, "excursion", "gen")
    at = truth.onset
    sayings = {at: ("level", at, 4.0), at + 40: ("level", at + 40, 1.2), at + 81: ("level", at + 80, 1.6)}
    row = score([job("excursion", lambda *_: Says(sayings))], processes=1)["faults"]["excursion"]
    assert (row["both"]["median"], row["spurious"], row["again"], row["closed"]) == (1, 1.0, 1.0, 0.0)


def test_every_alarm_of_an_undisturbed_series_is_false_whatever_it_says() -> None:
    sayings = {100: ("level", 99, 1.2), 200: ("spike", 200, 3.0), 201: ("close", 201, 1.0)}
    row = score([job("null", lambda *_: Says(sayings))], processes=1)["quiet"]["null"]
    assert (row["alarms"], row["steps"]) == (2, 750)
    assert row["per_10k"] == pytest.approx(2 / 750 * 1e4, abs=0.01)


def test_what_is_found_only_at_the_end_counts_where_it_says() -> None:
    class AtTheEnd(Silent):
        def finish(self) -> list[tuple[int, str, int, float]]:
            return [(12, "level", 10, 2.0)]

    detector: Detector = AtTheEnd()
    assert hear(detector, series(7, 750, "null", "gen")).events == ((12, "level", 10, 2.0),)


def test_stresses_are_named_by_commas_and_an_unknown_one_is_told() -> None:
    assert stresses_of("corr,heavy") == {"corr", "heavy"}
    assert stresses_of("") == NONE
    with pytest.raises(Exception, match="no such stress: cold; there are corr, heavy"):
        stresses_of("cold")


# ---------------------------------------------------------------------------------------------------- the peers
@pytest.mark.parametrize("name", ["ewma", "cusum", "page-hinkley", "adwin", "pelt"])
def test_a_peer_at_its_limit_tells_a_doubled_phase_and_is_quiet_before(name: str) -> None:
    made = series(7, 600, "shift_100", "update_actor")
    heard = hear(peers.make(name, "adjusted", peers.LIMITS[name, "adjusted"], made.phase, 1.0), made)
    assert made.onset <= heard.alarms[0].step <= made.onset + 12


def test_every_peer_has_a_limit() -> None:
    assert set(peers.LIMITS) == {(name, shown) for name in (*TESTS, peers.PELT) for shown in peers.SHOWN}


# ------------------------------------------------------------------------------------- the Turing dataset's measures
def test_who_finds_what_all_annotators_saw_scores_one() -> None:
    assert tcpd.f1([[50], [50]], [50]) == tcpd.cover([[50], [50]], [50], 100) == 1.0


def test_who_finds_nothing_still_finds_the_beginning() -> None:
    assert tcpd.f1([[50]], []) == pytest.approx(2 * 1.0 * 0.5 / 1.5)
    assert tcpd.cover([[50]], [], 100) == pytest.approx(0.5)


def test_a_change_found_five_steps_off_counts_and_six_steps_off_does_not() -> None:
    assert tcpd.f1([[50]], [55]) == 1.0
    assert tcpd.f1([[50]], [56]) == pytest.approx(0.5)


def test_one_finding_stands_for_one_change_only() -> None:
    assert tcpd.f1([[50, 53]], [51]) == pytest.approx(2 * 1.0 * (2 / 3) / (1.0 + 2 / 3))


def test_a_shift_of_a_series_that_is_no_time_is_found_in_either_direction() -> None:
    noise = np.random.default_rng(1).normal(0.0, 1.0, 300).tolist()
    down = [value - 8.0 * (step >= 150) for step, value in enumerate(noise)]
    assert tcpd.changes(down, 1e-4) == [150]
    assert tcpd.changes([None, *(-value for value in down)], 1e-4) == [151]


def test_without_the_dataset_it_is_told_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no annotations\.json; give the directory of the Turing"):
        tcpd.load(tmp_path)


# ---------------------------------------------------------------------------------------------------- the series
@pytest.mark.parametrize("phase", PHYSICS)
def test_the_same_seed_gives_the_same_series_and_another_seed_another(phase: str) -> None:
    one, same, other = (series(seed, 300, "null", phase) for seed in (1, 1, 2))
    assert np.array_equal(one.seconds, same.seconds)
    assert not np.array_equal(one.seconds, other.seconds)
    assert one.seconds.min() > 0.0


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_changes_its_own_steps_and_no_other(kind: str) -> None:
    made = series(3, 750, kind, "gen")
    fault = FAULTS[kind]
    factor = fault.factor(np.arange(750.0 - made.onset), 0.05, np.random.default_rng(1))
    assert made.onset in (range(25, 61) if fault.early else range(260, 400))
    assert made.end == (750 if fault.lasts is None else made.onset + fault.lasts)
    assert factor[0] != 1.0
    if fault.lasts is not None:
        assert factor[fault.lasts] == 1.0


@pytest.mark.parametrize("stress", STRESSES)
def test_a_stress_changes_the_seconds_and_not_the_work(stress: str) -> None:
    plain, stressed = series(3, 750, "shift_25", "gen"), series(3, 750, "shift_25", "gen", frozenset({stress}))
    assert np.array_equal(plain.tokens, stressed.tokens)
    assert np.array_equal(plain.longest, stressed.longest)
    assert plain.onset == stressed.onset
    assert not np.array_equal(plain.seconds, stressed.seconds)


def test_without_noise_generation_grows_half_with_the_tokens_and_half_with_the_longest_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quiet = generate.PHYSICS["gen"]._replace(sd=(0.0, 0.0), straggles=False)
    monkeypatch.setattr(generate, "PHYSICS", {"gen": quiet})
    made = series(4, 500, "growth", "gen")
    tokens, longest = (values / np.median(values[:50]) for values in (made.tokens, made.longest))
    work = np.column_stack([np.ones(500), tokens, longest])[3:]
    parts = np.linalg.lstsq(work, made.seconds[3:], rcond=None)[0]
    assert (parts / parts.sum()).tolist() == pytest.approx([0.1, 0.45, 0.45])


def test_what_does_not_exist_is_told_with_what_does() -> None:
    with pytest.raises(KeyError, match="no such kind: flood; there are null, growth"):
        series(1, 100, "flood", "gen")
    with pytest.raises(KeyError, match="no such stress: cold"):
        series(1, 100, "null", "gen", frozenset({"cold"}))
