"""The report's numbers: medians of the slow steps and no others, seconds only, two views of one step as one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from verlwatch import report
from verlwatch.core.engine import Engine
from verlwatch.core.phases import PHASES
from verlwatch.core.types import Transition
from verlwatch.report import History, Line

TRANSITION = Transition(
    event="opened", incident="1", rule="phase_shift", run="r", attempt=0, phase="gen", onset_step=3, step=4, ratio=2.0,
    severity="warning", summary="gen is slower", opened_step=4, before=10.0, after=20.0,
)  # fmt: skip


def console(slow: dict[int, float], count: int = 80) -> Iterator[str]:
    """Step lines of 10,000 tokens, gen about 20 s times ``slow``, the step 30 s more."""
    noise = random.Random(5)
    for step in range(1, count + 1):
        gen = 20.0 * slow.get(step, 1.0) * (1 + 0.01 * noise.gauss(0, 1))
        yield (
            f"step:{step} - perf/total_num_tokens:10000 - timing_s/gen:{gen!r} - timing_s/update_actor:29.5"
            f" - timing_s/step:{gen + 30!r}"
        )


def read(*logs: Path) -> History:
    return report.read(logs, "r", Engine())


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_the_median_of_a_spike_is_that_of_its_slow_step_alone(tmp_path: Path) -> None:
    history = read(written(tmp_path / "r.log", *console({60: 3.0})))
    (found,) = history.found()
    assert found.last == 60
    assert found.until is not None
    assert found.until > 61
    assert found.before == pytest.approx(20, rel=0.02)
    assert found.during == history.lines[59].seconds["gen"]
    assert found.during_per_token == pytest.approx(6.0, rel=0.05)
    rows = {line.split()[0]: line for line in report.render(history, 30).splitlines() if line.strip()[:1].isdigit()}
    assert [step for step, row in rows.items() if "gen ×" in row] == ["60"]
    assert "×3.0" in next(line for line in report.render(history, 30).splitlines() if "in seconds" in line)


def test_the_median_of_an_open_change_goes_on_to_the_last_step() -> None:
    lines = [Line(0, step, 30.0, {"gen": float(step)}, None, None) for step in range(1, 8)]
    history = History("r", lines, [TRANSITION])
    (found,) = history.found()
    assert (found.before, found.during) == (1.5, 5.0)
    (closed,) = History("r", lines, [TRANSITION, replace(TRANSITION, event="closed", step=7, last_step=5)]).found()
    assert (closed.before, closed.during, closed.last, closed.until) == (1.5, 4.0, 5, 7)
    assert closed.before_per_token is None


def test_tokens_a_second_are_no_seconds(tmp_path: Path) -> None:
    line = "step:{} - perf/throughput:90000.0 - timing_s/gen:40.0 - timing_s/update_actor:20.0 - timing_s/adv:0.01"
    history = read(written(tmp_path / "r.log", *(line.format(step) for step in range(1, 11))))
    text = report.render(history, 5)
    assert "10 min of training" in text
    assert "update_actor" in text.replace("upd_", "update_")


def test_throughput_has_no_time_per_token() -> None:
    lines = [Line(0, step, None, {"throughput": 100.0 / step}, 1000.0, None) for step in range(1, 8)]
    history = History("r", lines, [replace(TRANSITION, phase="throughput")])
    (found,) = history.found()
    assert found.before == 75.0
    assert found.before_per_token is found.during_per_token is None
    assert "per token" not in report.render(history, 5)


@pytest.mark.parametrize("order", [1, -1])
def test_what_a_cut_line_lost_is_taken_from_the_other_view_of_the_step(order: int, tmp_path: Path) -> None:
    cut = "step:1 - actor/lr:0.5 - perf/total_num_tokens:1000 - timing_s/gen:40.25 - timing_s/update_ac"
    data = {
        "timing_s/gen": 40.25, "timing_s/update_actor": 20.5, "timing_s/step": 61.0, "perf/total_num_tokens": 1000.0,
        "response_length/max": 77.0,
    }  # fmt: skip
    console = written(tmp_path / "r.log", cut, "step:2 - timing_s/gen:41.5 - timing_s/step:62.0")
    jsonl = written(tmp_path / "r.jsonl", orjson.dumps({"step": 1, "data": data}).decode())
    history = read(*[console, jsonl][::order])
    assert history.lines[0] == Line(1, 1, 61.0, {"gen": 40.25, "update_actor": 20.5, "step": 61.0}, 1000.0, 77.0)


def test_rows_fit_the_screen_and_no_remark_is_cut(tmp_path: Path) -> None:
    seconds = " - ".join(f"{phase.keys[0]}:{10 + i}.25" for i, phase in enumerate(PHASES))
    history = read(written(tmp_path / "r.log", f"step:1 - {seconds} - timing_s/step:200.5"))
    history.transitions = [replace(TRANSITION, attempt=1, onset_step=1, phase="update_weights")]
    text = report.render(history, 5)
    assert max(map(len, text.splitlines())) <= 100
    assert "update_weights ×2.00, validation 20.2 s, checkpoint 21.2 s" in text
    head, row = text.splitlines()[2:4]
    assert "weights 11%" in row
    assert head.split()[2:-2] == ["old_logp", "ref", "values", "adv", "upd_critic", "upd_actor", "weights"]


def test_a_hostile_name_reaches_no_terminal(tmp_path: Path) -> None:
    log = written(tmp_path / "r.log", *console({}, 3))
    for path in (log, written(tmp_path / "empty.log", "")):
        history = report.read([path], "a\x1b]0;b\x07\u202ec\nd", Engine())
        text = report.render(history, 3)
        assert text.startswith("a\\x1b]0;b\\x07\\u202ec\\nd: ")
        assert "\x1b" not in text
