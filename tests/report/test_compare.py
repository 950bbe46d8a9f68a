"""Two runs at equal work: what is slower, how sure that is, and what is configured differently."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.made import WORDS, config, read, written
from verlwatch import report
from verlwatch.cli import main


def run(seed: int, gen: float = 1.0, tokens: float = 1.0, count: int = 60) -> Iterator[str]:
    """Steps of about 10,000 tokens × ``tokens``; gen takes a fixed 10 s and 30 s that follow them, × ``gen``."""
    noise = random.Random(seed)
    for step in range(1, count + 1):
        work = tokens * noise.uniform(0.8, 1.2)
        g = gen * (10 + 30 * work) * noise.gauss(1, 0.02)
        u = (1 + 19 * work) * noise.gauss(1, 0.02)
        yield (
            f"step:{step} - timing_s/gen:{g!r} - timing_s/update_actor:{u!r} - timing_s/step:{g + u + 1!r}"
            f" - perf/total_num_tokens:{round(10000 * work)} - perf/throughput:900.5"
        )


def compared(tmp_path: Path, a: list[str], b: list[str]) -> report.Comparison:
    return report.compare(
        (read(written(tmp_path / "a.log", *a)), None), (read(written(tmp_path / "b.log", *b)), None), WORDS
    )


def test_a_slower_phase_is_told_with_an_interval_that_holds_the_truth(tmp_path: Path) -> None:
    found = compared(tmp_path, list(run(1)), list(run(2, gen=1.3)))
    assert found.attribution is not None
    assert (found.attribution.basis, found.attribution.lead) == ("regression", "gen")
    by_phase = {share.phase: share for share in found.attribution.shares}
    gen, update = by_phase["gen"], by_phase["update_actor"]
    assert gen.low is not None
    assert gen.high is not None
    assert gen.low < 1.3 < gen.high
    assert gen.high - gen.low < 0.08
    assert update.low is not None
    assert update.high is not None
    assert update.low < 1.0 < update.high
    assert "gen is slower in B at equal work" in report.versus(found, WORDS)
    assert "update_actor is" not in report.versus(found, WORDS)


def test_other_work_is_no_slowdown(tmp_path: Path) -> None:
    found = compared(tmp_path, list(run(1)), list(run(2, tokens=1.3)))
    assert found.attribution is not None
    assert found.attribution.step is not None
    assert found.attribution.step.after_s > 1.2 * found.attribution.step.before_s
    for share in found.attribution.shares:
        assert share.ratio == pytest.approx(1.0, abs=0.02)


def test_the_interval_is_the_same_each_time(tmp_path: Path) -> None:
    once, again = (compared(tmp_path, list(run(1)), list(run(2))) for _ in range(2))
    assert once == again


def test_few_steps_are_compared_by_token_without_an_interval(tmp_path: Path) -> None:
    found = compared(tmp_path, list(run(1, count=5)), list(run(2, gen=2.0, count=5)))
    assert found.attribution is not None
    assert found.attribution.basis == "per token"
    assert found.attribution.shares[0].low is None
    assert any("Too few steps" in caveat for caveat in found.caveats)


def test_what_is_configured_differently_and_could_explain_it_is_named(tmp_path: Path) -> None:
    a = config(actor_rollout_ref__rollout__max_num_seqs=256, trainer__experiment_name="a", trainer__total_epochs=3)
    b = config(actor_rollout_ref__rollout__max_num_seqs=64, trainer__experiment_name="b", trainer__total_epochs=4)
    found = compared(tmp_path, [*a, *run(1)], [*b, *run(2, gen=1.5)])
    assert [(d.key.rpartition(".")[2], d.a, d.b) for d in found.config] == [
        ("max_num_seqs", 256, 64),
        ("total_epochs", 3, 4),
    ]
    assert found.config[0].phases == ("gen", "update_weights")
    text = report.versus(found, WORDS)
    assert "could be explained by actor_rollout_ref.rollout.max_num_seqs" in text
    assert max(map(len, text.splitlines())) <= 100


def test_work_beyond_what_a_shows_is_doubted(tmp_path: Path) -> None:
    found = compared(tmp_path, list(run(1)), list(run(2, tokens=3.0)))
    assert any("be too narrow" in caveat for caveat in found.caveats)
    assert not any("too narrow" in c for c in compared(tmp_path, list(run(1)), list(run(2, tokens=1.2))).caveats)


def test_two_stretches_of_one_run(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = recorded / "verl-0.4.1.debug.driver.log"
    assert main(["compare", "--json", f"{log}@50:110", f"{log}@210:300"]) == 0
    found = json.loads(capsys.readouterr().out)
    gen = next(share for share in found["attribution"]["shares"] if share["phase"] == "gen")
    assert gen["low"] < 1.6 < gen["high"] + 0.03
    assert (found["a"]["first"], found["a"]["last"], found["b"]["steps"]) == (50, 110, 91)
    assert found["config"] == []


def test_a_comparison_in_markdown_and_in_chinese(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (str(recorded / f"verl-0.{v}.log") for v in ("4.1.debug.driver", "9.1.numpy2.nocolor.driver"))
    assert main(["compare", "--markdown", "--language", "zh", a, b]) == 0
    text = capsys.readouterr().out
    assert "## 逐阶段" in text
    assert "版本不同" in text


@pytest.mark.parametrize("side", ["train.log@9:3", "train.log@x:y", "train.log@"])
def test_a_stretch_that_is_none_is_told(side: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", side, "other.log"]) == 2
    assert "are no steps" in capsys.readouterr().err


def test_a_log_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "absent.log", "absent-too.log@1:5"]) == 1
    assert "absent.log: no such file" in capsys.readouterr().err


def test_a_log_without_steps_is_nothing_to_compare(tmp_path: Path) -> None:
    found = compared(tmp_path, list(run(1)), ["nothing"])
    assert found.attribution is None
    assert "no steps with timing" in report.versus(found, WORDS)
