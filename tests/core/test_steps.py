"""What a step's seconds contain depends on the release; arithmetic has the last word."""

from __future__ import annotations

from pathlib import Path

import pytest

from verlwatch.core import steps
from verlwatch.core.lines import Reader
from verlwatch.core.phases import STEP, THROUGHPUT
from verlwatch.core.types import Samples

PHASES = {"timing_s/gen": 40.0, "timing_s/old_log_prob": 6.0, "timing_s/update_actor": 17.0}


def seconds(version: str, **more: float) -> dict[str, float]:
    values = PHASES | {f"timing_s/{name}": value for name, value in more.items() if name != "throughput"}
    if "throughput" in more:
        values["perf/throughput"] = more["throughput"]
    return dict(steps.read(values, version).seconds)


@pytest.mark.parametrize(
    ("version", "step", "expected"),
    [
        ("0.2-0.3", 116.0, 64.0),
        ("0.4.x", 116.0, 64.0),
        ("0.5", 116.0, 64.0),
        ("0.6-0.7.0", 64.0, 64.0),
        (">=0.7.1", 76.0, 64.0),
        (">=0.8", 76.0, 64.0),
        ("", 116.0, 64.0),
    ],
)
def test_validation_and_checkpoint_are_taken_out_where_the_release_counts_them(
    version: str, step: float, expected: float
) -> None:
    assert seconds(version, step=step, testing=40.0, save_checkpoint=12.0)[STEP] == pytest.approx(expected)


def test_a_part_that_does_not_fit_into_the_whole_is_not_in_it() -> None:
    assert seconds("0.4.x", step=64.0, testing=40.0)[STEP] == 64.0


def test_throughput_speaks_only_where_no_step_is_printed() -> None:
    assert THROUGHPUT not in seconds("0.4.x", step=128.0, throughput=50.0)
    assert seconds("0.4.x", throughput=50.0)[THROUGHPUT] == 50.0


def test_a_phase_that_was_not_printed_is_absent() -> None:
    assert "ref" not in seconds("0.4.x", step=64.0)


def test_ratios_counts_and_tokens_under_timing_s_are_not_seconds() -> None:
    values = {"timing_s/agent_loop/slowest/response_length": 1024.0, "timing_s/generation_timing/topk_ratio": 0.25}
    assert steps.timings(values) == {}


@pytest.mark.parametrize(
    ("values", "decimals", "expected"),
    [
        ({"timing/gen": 1.0}, 3, "0.1"),
        ({"timing_s/gen": 1.0}, 3, "0.2-0.3"),
        ({"timing_s/gen": 1.0, "training/global_step": 1.0}, 3, "0.4.x"),
        ({"timing_s/start_profile": 0.0}, None, "0.5"),
        ({"response/aborted_ratio": 0.0, "timing_s/start_profile": 0.0}, None, "0.6-0.7.0"),
        ({"timing_s/update_weights": 1.0, "response/aborted_ratio": 0.0}, None, ">=0.7.1"),
        ({"actor/perf/max_memory_allocated_gb": 1.0, "timing_s/update_weights": 1.0}, None, ">=0.8"),
        ({"timing_s/gen": 1.0}, None, ""),
    ],
)
def test_the_release_is_read_off_the_keys(values: dict[str, float], decimals: int | None, expected: str) -> None:
    assert steps.release(values, decimals) == expected


def test_the_work_is_the_tokens_of_the_batch_and_of_its_longest_response() -> None:
    facts = steps.read({"perf/total_num_tokens": 15000.0, "response_length/max": 320.0}, "")
    assert facts.work == (15000.0, 320.0)


def test_without_a_token_count_the_mean_lengths_stand_in_for_it() -> None:
    facts = steps.read({"response_length/mean": 400.0, "prompt_length/mean": 88.0}, "0.1")
    assert facts.work == (488.0, None)


def test_seconds_per_token_equal_what_verl_prints_and_are_told_for_old_log_prob_too(recorded: Path) -> None:
    reader = Reader("x")
    told = reader.feed((recorded / "verl-0.9.1.file_logger.jsonl").read_bytes(), 0.0)
    compared = 0
    for record in told:
        assert isinstance(record, Samples)
        seconds = steps.timings(record.values)
        per_token = steps.per_token_ms(record.values, seconds)
        for phase in per_token.keys() & {"gen", "ref", "update_actor", "adv"}:
            assert per_token[phase] == pytest.approx(record.values[f"timing_per_token_ms/{phase}"], rel=1e-9)
            compared += 1
        assert ("old_log_prob" in per_token) == ("old_log_prob" in seconds)
    assert compared == 4 * 300


@pytest.mark.parametrize("values", [{}, {"perf/total_num_tokens": 0.0}, {"perf/total_num_tokens": 5.0}])
def test_without_tokens_there_are_no_seconds_per_token(values: dict[str, float]) -> None:
    assert "gen" not in steps.per_token_ms(values, {"gen": 3.0})


def test_one_mark_makes_a_release_likely_and_two_certain() -> None:
    assert not steps.is_certain({"timing_s/update_weights": 1.0}, None)
    assert steps.is_certain({"timing_s/update_weights": 1.0, "response/aborted_ratio": 0.0}, None)
    assert steps.is_certain({"timing_s/gen": 1.0}, 3)
    assert not steps.is_certain({"timing_s/gen": 1.0}, None)
