"""The report's numbers: medians of the slow steps and no others, seconds only, two views of one step as one."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import orjson
import pytest

from tests.report.made import WORDS, config, read, reported, steps, written
from verlwatch import report
from verlwatch.core.phases import PHASES
from verlwatch.report._columns import Columns
from verlwatch.report._series import IN_STEP


def test_the_median_of_a_spike_is_that_of_its_slow_step_alone(tmp_path: Path) -> None:
    found = reported(tmp_path, *steps(80, slow={60: 3.0}))
    (incident,) = found.incidents
    assert (incident.onset, incident.last) == (60, 60)
    assert incident.until is not None
    assert incident.until > 61
    assert incident.before == pytest.approx(20, rel=0.02)
    assert incident.during == found.steps.columns["gen"].values[59]
    assert incident.during_per_token_ms == pytest.approx(6.0, rel=0.05)
    assert incident.lost_s == pytest.approx(40, rel=0.05)
    text = report.terminal(found, WORDS, 30)
    rows = {line.split()[0]: line for line in text.splitlines() if line.strip()[:1].isdigit()}
    assert [step for step, row in rows.items() if "gen ×" in row] == ["60"]


def test_a_change_that_is_open_costs_up_to_the_last_step(tmp_path: Path) -> None:
    found = reported(tmp_path, *steps(80, slow=dict.fromkeys(range(60, 81), 2.0)))
    (incident,) = found.incidents
    assert incident.last is None
    assert incident.lost_s == pytest.approx(21 * 20, rel=0.05)
    assert incident.attribution is not None
    lead = incident.attribution.shares[0]
    assert (incident.attribution.lead, lead.phase, incident.attribution.basis) == ("gen", "gen", "baseline")
    assert lead.part == pytest.approx(1.0, abs=0.05)
    assert lead.efficiency_s == pytest.approx(20, rel=0.05)
    assert lead.workload_s == pytest.approx(0.0, abs=0.5)
    assert "gen ×2.0" in found.headline


def test_tokens_a_second_are_no_seconds(tmp_path: Path) -> None:
    line = "step:{} - timing_s/gen:40.0 - timing_s/adv:0.01 - timing_s/update_actor:20.0 - perf/throughput:90000.0"
    found = reported(tmp_path, *(line.format(step) for step in range(1, 11)))
    assert found.run.seconds == pytest.approx(600.1)
    assert [phase.name for phase in found.phases] == ["step", "gen", "adv", "update_actor"]
    assert "10 min of training" in report.terminal(found, WORDS, 5)


@pytest.mark.parametrize("order", [1, -1])
def test_what_a_cut_line_lost_is_taken_from_the_other_view_of_the_step(order: int, tmp_path: Path) -> None:
    cut = "step:1 - actor/lr:0.5 - perf/total_num_tokens:1000 - timing_s/gen:40.25 - timing_s/update_ac"
    data = {
        "timing_s/gen": 40.25, "timing_s/update_actor": 20.5, "timing_s/step": 61.0, "perf/total_num_tokens": 1000.0,
        "response_length/max": 77.0,
    }  # fmt: skip
    console = written(tmp_path / "r.log", cut, "step:2 - timing_s/gen:41.5 - timing_s/step:62.0")
    jsonl = written(tmp_path / "r.jsonl", orjson.dumps({"step": 1, "data": data}).decode())
    found = report.build(read(*[console, jsonl][::order]), WORDS)
    first = {name: column.values[0] for name, column in found.steps.columns.items()}
    assert first == {
        "step": 61.0, "printed_step": 61.0, "gen": 40.25, "update_actor": 20.5, "tokens": 1000.0,
        "longest_response": 77.0,
    }  # fmt: skip
    assert list(found.steps.step) == [1, 2]
    assert isnan(found.steps.columns["update_actor"].values[1])


def test_rows_fit_the_screen_and_no_remark_is_cut(tmp_path: Path) -> None:
    seconds = " - ".join(f"{phase.keys[0]}:{10 + i}.25" for i, phase in enumerate(PHASES))
    found = reported(tmp_path, f"step:1 - {seconds} - timing_s/step:200.5")
    text = report.terminal(found, WORDS, 5)
    assert max(map(len, text.splitlines())) <= 100
    assert "validation 20.2 s, checkpoint 21.2 s" in text
    head, row = text.partition("== Last steps\n")[2].splitlines()[:2]
    assert "weights 11%" in row
    assert head.split()[2:-2] == ["old_logp", "ref", "values", "adv", "upd_critic", "upd_actor", "weights"]


def test_validation_and_checkpoint_are_no_part_of_a_step_and_cost_what_they_take(tmp_path: Path) -> None:
    lines = list(steps(10))
    seconds = "timing_s/gen:20.0 - timing_s/update_actor:29.5 - timing_s/testing:40.0 - timing_s/step:90.0"
    lines[4] = f"step:5 - perf/total_num_tokens:10000 - {seconds}"
    found = reported(tmp_path, *lines)
    assert found.steps.columns["step"].values[4] == pytest.approx(50.0)
    assert found.steps.columns["printed_step"].values[4] == 90.0
    assert found.cost is not None
    assert {line.name: line.seconds for line in found.cost.phases}["testing"] == 40.0
    assert found.cost.total.seconds == pytest.approx(sum(found.steps.columns["step"].values) + 40.0)
    parts = sum(line.seconds for line in found.cost.phases)
    assert parts == pytest.approx(found.cost.total.seconds)


def test_only_the_steps_asked_for_are_reported_and_all_are_judged(tmp_path: Path) -> None:
    log = written(tmp_path / "r.log", *steps(120, slow=dict.fromkeys(range(60, 64), 3.0)))
    reading = read(log)
    inside, after = (report.build(reading, WORDS, span) for span in ((50, 70), (80, 120)))
    assert (inside.run.first, inside.run.last, inside.run.steps) == (50, 70, 21)
    assert [incident.onset for incident in inside.incidents] == [60]
    assert after.incidents == ()
    assert inside.cost is not None
    assert inside.cost.total.seconds < 25 * 60


def test_gpu_hours_are_seconds_times_the_gpus_of_the_configuration(tmp_path: Path) -> None:
    lines = [*config(trainer__nnodes=2, trainer__n_gpus_per_node=8), *steps(10)]
    found = reported(tmp_path, *lines)
    assert (found.run.gpus, found.run.gpus_from) == (16, "configuration")
    assert found.cost is not None
    assert found.cost.total.gpu_hours == pytest.approx(16 * found.run.seconds / 3600)


def test_a_hostile_name_reaches_no_terminal(tmp_path: Path) -> None:
    log = written(tmp_path / "r.log", *steps(3))
    for path in (log, written(tmp_path / "empty.log", "")):
        found = report.build(report.read([path], "a\x1b]0;b\x07\u202ec\nd"), WORDS)
        for text in (report.terminal(found, WORDS, 3), report.markdown(found, WORDS, 3)):
            assert not {"\x1b", "\u202e", "\x07"} & set(text)
        assert report.terminal(found, WORDS, 3).startswith("a\\x1b]0;b\\x07\\u202ec\\nd: ")


def test_thousands_of_other_keys_take_no_room_and_no_place() -> None:
    columns = Columns()
    for step in range(3):
        others = {f"rollout/moe/layer_{i}": 1.0 for i in range(12_000)}
        columns.put(1, step, {**others, "timing_s/gen": float(step), "perf/throughput": 9.0})
    assert {key: list(column) for key, column in columns.values.items()} == {
        "timing_s/gen": [0.0, 1.0, 2.0],
        "perf/throughput": [9.0, 9.0, 9.0],
    }


def test_every_phase_of_a_step_is_a_column() -> None:
    assert set(IN_STEP) == {phase.name for phase in PHASES} - {"testing", "save_checkpoint"}


def test_a_line_that_lost_its_end_adds_its_phases_alone(tmp_path: Path) -> None:
    """Shares stay shares, and nobody knows which phase of it was the largest."""
    cut = "step:4 - perf/total_num_tokens:10000 - timing_s/gen:40.0 - timing_s/old_log_prob:5.0"
    found = reported(tmp_path, *steps(3), cut)
    shares = {phase.name: phase.share for phase in found.phases}
    whole = sum(found.steps.columns["step"].values[:3]) + 40.0
    assert shares["step"] == 1.0
    assert shares["gen"] == pytest.approx(sum(found.steps.columns["gen"].values) / whole)
    assert found.cost is not None
    assert found.cost.total.seconds == pytest.approx(whole)
    last = next(line for line in report.terminal(found, WORDS, 1).splitlines() if line.strip().startswith("4 "))
    assert last.split()[:3] == ["4", "-", "40.0"]
    assert "%" not in last


def test_steps_from_the_middle_of_a_run_are_compared_from_their_first_on(tmp_path: Path) -> None:
    log = written(tmp_path / "r.log", *steps(100))
    found = report.build(read(log), WORDS, (50, 89))
    assert found.over_run is not None
    assert found.over_run.before[0] == 50


def test_what_ended_the_run_is_in_the_headline(tmp_path: Path) -> None:
    found = reported(tmp_path, *steps(3), "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert [i.rule for i in found.incidents] == ["device_oom"]
    assert f"{found.incidents[0].text}." in found.headline
