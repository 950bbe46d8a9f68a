"""Reports of recorded runs: the phase, its onset, its ratio, how much of it is workload, and what it cost.

Injected: gen ×4 in steps 120-123, old_log_prob ×3 in 150-151, gen ×1.6 from 200 on, rank 3 climbs from 180 on
(tests/data/README.md).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.made import WORDS, read
from verlwatch import report
from verlwatch.report import Report
from verlwatch.report._text import width

CONSOLE = (
    "verl-0.3.0.post1.driver.log",
    "verl-0.4.1.debug.driver.log",
    "verl-0.4.1.allranks-debug.nodedup.driver.log",
    "verl-0.9.1.numpy2.nocolor.driver.log",
    "verl-0.9.1.file_logger.jsonl",
)


def built(*logs: Path) -> Report:
    return report.build(read(*logs), WORDS)


@pytest.mark.parametrize("name", CONSOLE)
def test_a_recorded_run_is_told_as_it_was(recorded: Path, name: str) -> None:
    found = built(recorded / name)
    spike, old, shift = (i for i in found.incidents if i.attribution is not None)
    assert (spike.phase, spike.onset, spike.last) == ("gen", 120, 123)
    assert spike.ratio == pytest.approx(4.0, rel=0.15)
    assert (old.phase, old.onset, old.last) == ("old_log_prob", 150, 151)
    assert old.ratio == pytest.approx(3.0, rel=0.1)
    assert (shift.phase, shift.onset) == ("gen", 200)
    assert shift.ratio == pytest.approx(1.6, rel=0.06)

    assert spike.lost_s == pytest.approx(4 * 3 * 44, rel=0.15)
    assert old.lost_s == pytest.approx(2 * 2 * 6.6, rel=0.2)
    assert shift.lost_s == pytest.approx(101 * 0.6 * 49, rel=0.15)
    for incident in (spike, shift):
        shares = incident.attribution
        assert shares is not None
        assert (shares.lead, shares.basis) == ("gen", "baseline")
        lead = shares.shares[0]
        assert lead.efficiency_s is not None
        assert lead.workload_s is not None
        assert lead.part == pytest.approx(1.0, abs=0.06)
        assert abs(lead.workload_s) < 0.15 * lead.efficiency_s
    assert "gen" in found.headline


def test_cost_is_what_the_steps_add_up_to(recorded: Path) -> None:
    found = built(recorded / CONSOLE[1])
    assert found.cost is not None
    assert found.run.gpus == 4
    assert found.cost.total.gpu_hours == pytest.approx(4 * found.run.seconds / 3600)
    assert sum(line.seconds for line in found.cost.phases) == pytest.approx(found.cost.total.seconds, rel=1e-3)
    assert found.cost.lost is not None
    assert found.cost.lost.seconds == pytest.approx(sum(incident.lost_s for incident in found.incidents))


def test_growth_over_the_run_is_split_into_work_and_efficiency(recorded: Path) -> None:
    found = built(recorded / CONSOLE[2])
    assert found.over_run is not None
    by_phase = {share.phase: share for share in found.over_run.shares}
    gen, update = by_phase["gen"], by_phase["update_actor"]
    assert gen.ratio == pytest.approx(1.6, rel=0.06)
    assert update.ratio == pytest.approx(1.0, abs=0.03)
    assert update.workload_s == pytest.approx(update.after_s - update.before_s, abs=0.5)


@pytest.mark.parametrize("logs", ["verl-0.4.1.allranks-debug.nodedup.driver.log", "ray_session"])
def test_the_rank_whose_memory_climbs_is_named_with_its_step(recorded: Path, logs: str) -> None:
    folder = Path(__file__).parents[1] / "data" / "ray_session"
    paths = sorted(folder.glob("worker-*")) if logs == "ray_session" else [recorded / logs]
    if not paths:
        pytest.skip("the session's files are not among the recorded logs")
    found = built(*paths)
    unequal = next(f for f in found.findings if f.name == "memory_accumulates")
    assert not any(f.name == "memory_unequal" for f in found.findings)
    assert unequal.severity == "warning"
    assert unequal.title.startswith("rank 3 holds ")
    assert unequal.step is not None
    assert 179 <= unequal.step <= 184
    assert {track.name for track in found.memory} == {"rank 0", "rank 1", "rank 2", "rank 3"}


def test_one_rank_alone_is_not_compared(recorded: Path) -> None:
    found = built(recorded / CONSOLE[1])
    assert not any(f.name == "memory_unequal" for f in found.findings)
    assert any("all cards" in missing.what for missing in found.missing)


def test_the_oldest_release_prints_no_step_and_is_told_to_be_old(recorded: Path) -> None:
    found = built(recorded / "verl-0.1.locallogger.log")
    assert [(i.phase, i.onset) for i in found.incidents if i.attribution] == [("gen", 120), ("gen", 200)]
    assert "is old" in found.run.remark
    first = found.steps.columns
    phases = [c for c in first.values() if c.role == "phase"]
    assert first["step"].values[5] == pytest.approx(sum(c.values[5] for c in phases))


def test_console_and_jsonl_of_one_run_are_one_report(recorded: Path) -> None:
    one, both = built(recorded / CONSOLE[3]), built(recorded / CONSOLE[3], recorded / CONSOLE[4])
    assert len(one.steps) == len(both.steps) == 300
    assert one.run.seconds == pytest.approx(both.run.seconds)


@pytest.mark.parametrize("name", [*CONSOLE, "ray-misc.driver.log", "verl-0.1.locallogger.log"])
def test_no_report_is_wider_than_the_screen(recorded: Path, name: str) -> None:
    reading = read(recorded / name)
    for language in ("en", "zh"):
        words = report.Words(language)
        text = report.terminal(report.build(reading, words), words, 30)
        assert max(map(width, text.splitlines())) <= 100
