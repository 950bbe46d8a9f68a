"""The forms of a report: JSON and CSV hold its numbers, Markdown its sections, Chinese all of its sentences."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterator
from math import fsum
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import pytest

from tests.report.made import WORDS, config, read, reported, steps, written
from verlwatch import report
from verlwatch.cli import main
from verlwatch.core.advice import TABLE
from verlwatch.core.incidents._facts import CAUSES
from verlwatch.report import _build, _gauges, _missing
from verlwatch.report._attributed import CULPRITS
from verlwatch.report._words_zh import PHRASES

PACKAGE = Path(report.__file__).parents[1]
SPOKEN = [
    *(path for path in (PACKAGE / "report").glob("_*.py") if not path.name.startswith(("_html", "_svg"))),
    *(PACKAGE / "core" / f"{name}.py" for name in ("layout", "advice", "attribution")),
]


def test_json_is_the_report_with_its_schema_and_no_nan(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--json", str(recorded / "verl-0.4.1.debug.driver.log")]) == 0
    text = capsys.readouterr().out
    found = json.loads(text, parse_constant=pytest.fail)
    assert found["schema"] == report.SCHEMA
    assert found["run"]["steps"] == 300
    gen = found["steps"]["columns"]["gen"]
    assert len(gen["values"]) == len(gen["expected"]) == 300
    assert gen["expected"][0] is None
    assert orjson.loads(text) == found


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def column(rows: list[dict[str, str]], name: str) -> list[float]:
    return [float(row[name]) for row in rows if row[name]]


def test_every_number_of_a_report_can_be_reckoned_from_its_csv(recorded: Path, tmp_path: Path) -> None:
    log = recorded / "verl-0.4.1.allranks-debug.nodedup.driver.log"
    assert main(["report", "--csv", str(tmp_path / "out"), str(log)]) == 0
    found = report.build(read(log), WORDS)
    rows = rows_of(tmp_path / "out" / "steps.csv")
    assert [int(row["step_number"]) for row in rows] == list(found.steps.step)
    for phase in found.phases:
        assert median(column(rows, phase.name)) == phase.median_s
        assert fsum(column(rows, phase.name)) == phase.total_s
    shift = next(i for i in found.incidents if i.onset == 200)
    slow = [row for row in rows if int(row["step_number"]) >= 200]
    assert fsum(float(r["gen"]) - float(r["gen:expected"]) for r in slow) == pytest.approx(shift.lost_s, rel=1e-12)
    assert median(column(slow[:50], "gen")) == shift.during
    memory = rows_of(tmp_path / "out" / "memory.csv")
    for track in found.memory:
        assert max(float(r["gb"]) for r in memory if r["card"] == track.name) == max(p.gb for p in track.points)


def test_numbers_beside_the_steps_are_in_the_csv_too(recorded: Path, tmp_path: Path) -> None:
    log = recorded / "tutorial-forms.log"
    assert main(["report", "--csv", str(tmp_path), str(log)]) == 0
    seen = {row["name"]: float(row["value"]) for row in rows_of(tmp_path / "lines.csv")}
    assert seen["communication_s"] == 0.4125
    assert seen["wait for rollout workers"] == 2.41


def test_a_folder_that_cannot_be_written_is_told(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = written(tmp_path / "taken", "a file")
    assert main(["report", "--csv", str(taken), str(recorded / "tutorial-forms.log")]) == 1
    assert str(taken) in capsys.readouterr().err


def test_text_of_a_log_is_no_formula_and_no_markup(tmp_path: Path) -> None:
    line = "[INFO] wait for rollout: 2.41s"
    log = written(tmp_path / "r.log", *config(data__train_batch_size=4), *steps(3), line)
    reading = read(log)
    reading.gauges["supply"]["=HYPERLINK(1)"] = reading.gauges["communication"]["wait for rollout"]
    found = report.build(reading, WORDS)
    report.write_csv(tmp_path, reading, found.steps)
    assert {row["name"][:2] for row in rows_of(tmp_path / "lines.csv")} == {"wa", "'="}
    marked = report.markdown(report.build(report.read([log], "a|b<script>*c*"), WORDS), WORDS, 3)
    assert "<script>" not in marked.replace("\\<script\\>", "")
    assert "a\\|b" in marked


def test_markdown_has_the_sections_of_the_terminal(recorded: Path) -> None:
    found = report.build(read(recorded / "verl-0.4.1.debug.driver.log"), WORDS)
    marked, plain = report.markdown(found, WORDS, 5), report.terminal(found, WORDS, 5)
    assert re.findall(r"(?m)^## (.+)$", marked) == re.findall(r"(?m)^== (.+)$", plain)
    widths = {
        row.count("|") - row.count("\\|") for row in marked.split("## Last steps")[1].split("\n\n")[1].splitlines()
    }
    assert len(widths) == 1


def templates() -> Iterator[str]:
    """Every sentence that the report can say, as far as it stands in the code as it is."""
    for path in SPOKEN:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in {"words", "state", "_look"}
            ):
                said = node.args[0] if node.args else None
                for part in (said.body, said.orelse) if isinstance(said, ast.IfExp) else (said,):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value
    yield from (*CAUSES.values(), *CULPRITS.values(), *vars(_build)["_SLOWED"].values())
    for turn in TABLE:
        yield from (turn.why, turn.proof)
    for section in vars(_gauges)["_COLUMNS"].values():
        yield from (label for _, label, _ in section)
    yield from (label for label, _ in vars(_gauges)["_SEEN"].values())
    for name, value in vars(_missing).items():
        if name.isupper() and isinstance(value, tuple):
            yield from value


def test_every_sentence_has_its_chinese() -> None:
    assert sorted({t for t in templates() if t not in PHRASES}) == []


def test_a_translation_keeps_the_values() -> None:
    def values(text: str) -> set[str]:
        return set(re.findall(r"{(\w+)}", text))

    odd = {english for english, chinese in PHRASES.items() if values(english) != values(chinese)}
    assert odd <= {"{phase} ×{ratio} at equal work, {span}"}


def test_a_chinese_report_has_no_english_sentence(recorded: Path) -> None:
    words = report.Words("zh")
    found = report.build(read(recorded / "verl-0.4.1.allranks-debug.nodedup.driver.log"), words)
    assert found.over_run is not None
    assert found.cost is not None
    said = [found.headline, found.layout.text, found.over_run.text, found.cost.text]
    said += [text for f in found.findings if f.check != "steps" or f.phase for text in (f.title, f.text, *f.evidence)]
    said += [text for m in found.missing for text in m]
    said += [text for a in found.advice for text in (a.why, a.proof)]
    said += [i.text for i in found.incidents if i.attribution is not None]
    assert [text for text in said if re.search(r"\b(the|of|instead|takes|steps?)\b", text)] == []
    text = report.terminal(found, words, 5)
    assert "== 时间花在哪里" in text


def test_an_html_file_is_written(recorded: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    assert main(["report", "--html", str(page), str(recorded / "tutorial-forms.log")]) == 0
    text = page.read_text()
    assert text.lower().startswith("<!doctype html>")
    assert "48.2" in text


@pytest.mark.parametrize("span", ["5", "a:b", ":", "9:3", "-1:4", "1:2:3"])
def test_steps_that_are_none_are_told(span: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["report", f"--steps={span}", "train.log"])
    assert end.value.code == 2
    assert "are no steps" in capsys.readouterr().err


def test_some_steps_of_a_log(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(recorded / "verl-0.4.1.debug.driver.log")
    assert main(["report", "--steps", "100:130", "--json", log]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["run"]["first"], found["run"]["last"], found["range"]) == (100, 130, [100, 130])
    assert [i["onset"] for i in found["incidents"] if i["attribution"]] == [120]


def test_a_ray_session_is_named_by_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = tmp_path / "session_2026-01-02_03-04-05_000006_7" / "logs"
    logs.mkdir(parents=True)
    (logs / "gcs_server.out").touch()
    head = ":job_id:01000000\n:actor_name:TaskRunner\n"
    worker = logs / f"worker-{'a' * 56}-01000000-4242.out"
    worker.write_text(head + "\n".join(steps(5)) + "\n")
    assert main(["report", str(logs.parent)]) == 0
    assert capsys.readouterr().out.startswith("session_2026-01-02_03-04-05_000006_7: 5 steps, 1 to 5")


def test_a_report_of_two_attempts_says_so(tmp_path: Path) -> None:
    again = [line.replace("timing_s/update_actor:29.5", "timing_s/update_actor:29.25") for line in steps(20, first=5)]
    found = reported(tmp_path, *steps(12), "Setting global step to 4", *again)
    assert found.run.attempts == 2
    assert list(found.steps.step) == [*range(1, 13), *range(5, 25)]
