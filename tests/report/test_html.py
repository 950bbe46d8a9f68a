"""The HTML form of a report, as markup: self-contained, harmless, complete, thinned without losing an extreme."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from math import nan
from pathlib import Path
from typing import Any

import pytest

from tests.report.made import WORDS, read, reported, steps, written
from verlwatch import report
from verlwatch.cli import main
from verlwatch.report import Report
from verlwatch.report import _svg_paths as paths
from verlwatch.report._html_data import ROWS, kept
from verlwatch.report._html_memory import SHOWN, column_ticks, strips
from verlwatch.report._model import MemoryPoint, MemoryTrack, Missing
from verlwatch.report._steps import Column, Steps
from verlwatch.report._svg import Axis, Mark, axis, nice, placed, short, step_ticks
from verlwatch.report.html import render

HOSTILE = "</script><svg onload=alert(1)>\u202e<img src=//evil.example/x>"


class Markup(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def allranks(recorded: Path) -> Report:
    return report.build(read(recorded / "verl-0.4.1.allranks-debug.nodedup.driver.log"), WORDS)


def data_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.findall(r'id="data">(.*?)</script>', text)[0])
    return found


def test_the_only_script_that_runs_is_the_one_whose_hash_the_policy_names(allranks: Report) -> None:
    text = render(allranks)
    (policy,) = (m["content"] for m in Markup(text).named("meta") if m.get("http-equiv") == "Content-Security-Policy")
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert len(scripts) == 1
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )


def test_the_file_names_nothing_outside_itself(allranks: Report) -> None:
    found = Markup(render(allranks))
    names = {name for name, _ in found.tags}
    links = {a["href"] for a in found.named("a")}
    assert names.isdisjoint({"link", "img", "image", "iframe", "object", "embed", "use", "base", "form"})
    assert links
    assert all(link and link.startswith("#i") for link in links)
    assert not [a for _, attributes in found.tags for a in attributes if a.startswith("on") or a == "src"]
    assert not re.search(r"url\(|@import", render(allranks))


def test_hostile_text_of_a_log_stays_text(tmp_path: Path) -> None:
    log = written(tmp_path / "r.log", *steps(30, slow={25: 3, 26: 3, 27: 3, 28: 3, 29: 3, 30: 3}))
    found = report.build(report.read([log], HOSTILE), WORDS)
    tracks = tuple(MemoryTrack(HOSTILE, HOSTILE, None, "", "used", 80.0, (MemoryPoint(1, i, ""), MemoryPoint(2, i, "")))
                   for i in (10.0, 20.0))  # fmt: skip
    odd = replace(found, memory=tracks, headline=HOSTILE, missing=(*found.missing, Missing(HOSTILE, HOSTILE)))
    marked = replace(odd, incidents=tuple(replace(i, title=HOSTILE, text=HOSTILE) for i in odd.incidents))
    assert marked.incidents
    text = render(marked)
    plain = Markup(text)
    assert {"img"}.isdisjoint(name for name, _ in plain.tags)
    assert not [a for a in plain.named("svg") if "onload" in a]
    assert text.count("<script") == text.count("</script>") == 2
    assert "\u202e" not in text
    assert "\\u202e<img src=//evil.example/x>" in plain.text
    assert data_of(text)["memory"][0]["cards"] == [HOSTILE.replace("\u202e", "\\u202e")] * 2


def test_every_part_of_the_report_stands_in_the_file(allranks: Report) -> None:
    found = Markup(render(allranks))
    titles = (
        *("Steps", "Changes", "What the log shows", "What to try", "Where the time goes", "Seconds against tokens"),
        *("Memory", "From the first steps to the last", "Layout", "Cost", "Last steps", "What this log does not tell"),
    )
    assert [title for title in titles if title not in found.words] == []
    said = [allranks.headline, *(f.title for f in allranks.findings), *(a.key for a in allranks.advice)]
    said += [i.title for i in allranks.incidents] + [m.what for m in allranks.missing]
    assert [text for text in said if text not in found.text] == []
    kinds = [f["data-kind"] for f in found.named("figure")]
    assert kinds.count("stack") == kinds.count("memory") == 1
    assert kinds.count("scatter") == 2
    assert kinds.count("series") == 8


def test_each_chart_is_named_and_described_for_those_who_do_not_see_it(allranks: Report) -> None:
    text = render(allranks)
    found = Markup(text)
    ids = {attributes["id"] for _, attributes in found.tags if "id" in attributes}
    charts = [svg for svg in found.named("svg") if svg.get("class") == "chart"]
    assert len(charts) == len(found.named("figure"))
    assert all({c["aria-labelledby"], c["aria-describedby"]} <= ids for c in charts)
    assert len(ids) == text.count(' id="')
    assert "median 47.5, 35.1 to 181.7 s" in found.text


def test_marks_of_incidents_lead_to_their_cards(allranks: Report) -> None:
    found = Markup(render(allranks))
    cards = {a["id"] for a in found.named("article") if a.get("id")}
    assert {a["href"] for a in found.named("a")} == {f"#{card}" for card in cards}
    assert len(cards) == len(allranks.incidents)


def test_a_chinese_file_has_no_english_sentence_of_its_own(recorded: Path) -> None:
    words = report.Words("zh")
    found = report.build(read(recorded / "verl-0.4.1.debug.driver.log"), words)
    text = render(found)
    assert '<html lang="zh">' in text
    visible = Markup(re.sub(r"<(style|script)[^>]*>.*?</\1>", "", text, flags=re.DOTALL))
    own = [word for word in visible.words if re.search(r"\b(the|of|median|share|what|step)\b", word)]
    own = [word for word in own if not word.startswith("/")]  # where the log lies
    by_rules = {incident.text for incident in found.incidents if incident.attribution is None}
    assert [word for word in own if not re.search(r"[\u4e00-\u9fff]|^\w+$", word) and word not in by_rules] == []
    assert data_of(text)["words"]["step"] == "第 {step} 步"


def test_an_empty_log_is_told_with_what_to_turn_on(tmp_path: Path) -> None:
    page, log = tmp_path / "r.html", written(tmp_path / "r.log")
    assert main(["report", "--html", str(page), str(log)]) == 0
    found = Markup(page.read_text())
    assert "No step with timing was found." in found.words
    assert "trainer.logger=['console']" in found.text
    assert found.named("figure") == []


def test_one_step_is_drawn(tmp_path: Path) -> None:
    found = Markup(render(reported(tmp_path, *steps(1))))
    assert [f["data-kind"] for f in found.named("figure")] == ["stack", "series", "series", "series"]
    assert not [a for _, attributes in found.tags for a in attributes.values() if a and "nan" in a.lower()]


def test_the_script_knows_every_step_as_printed(tmp_path: Path) -> None:
    found = reported(tmp_path, *steps(30))
    data = data_of(render(found))
    gen = found.steps.columns["gen"].values
    assert data["step"] == list(range(1, 31))
    assert data["rows"] is None
    assert data["series"]["gen"]["values"] == [float(f"{v:.4g}") for v in gen]
    assert data["series"]["tokens"]["values"] == [10_000.0] * 30
    assert data["series"]["other"]["values"] == pytest.approx([0.5] * 30, abs=0.02)


def made(count: int, values: list[float]) -> Report:
    """A report of so many steps with one phase, without a log."""
    columns = {"step": Column("step", "step", "s", "step", values), "gen": Column("gen", "gen", "s", "phase", values)}
    empty = report.build(report.Reading("r", ("r.log",)), WORDS)
    shown = replace(empty.run, steps=count, first=1, last=count, attempts=1)
    return replace(empty, run=shown, steps=Steps([1] * count, list(range(1, count + 1)), columns))


def test_of_many_steps_those_with_the_extremes_are_kept() -> None:
    values = [10.0] * 20_000
    values[7_777], values[12_345] = 900.0, 0.5
    found = made(20_000, values)
    rows = kept(found)
    assert {0, 7_777, 12_345, 19_999} <= set(rows)
    assert len(rows) <= ROWS
    text = render(found)
    assert data_of(text)["series"]["gen"]["values"][rows.index(7_777)] == 900.0
    assert len(text) < 500_000
    assert "Each column is the mean of up to 50 steps" in text


def test_what_is_far_off_the_scale_is_marked_at_the_edge() -> None:
    values = [10.0 + i % 3 for i in range(100)]
    values[40] = 5_000.0
    up = axis(values)
    assert (up.beyond, up.part(5_000.0)) == (True, 1.0)
    assert 12 < up.high < 20
    assert "<title>5000.0 s</title>▲" in render(made(100, values))
    assert not axis(values[:40]).beyond


def test_a_line_keeps_the_least_and_the_greatest_of_each_bucket_in_their_order() -> None:
    values = [5.0, 9.0, 1.0, nan, nan, nan, 2.0, 2.0, 3.0]
    parts = paths.buckets(9, 3)
    assert parts == [range(3), range(3, 6), range(6, 9)]
    assert paths.extremes(values, parts) == [1, 2, 3, 6, 8]
    assert paths.means(values, parts)[0] == 5.0
    assert paths.greatest(values, parts)[2] == 3.0


def test_a_line_breaks_where_nothing_is_known_and_a_lone_point_is_a_dot() -> None:
    up = Axis(0.0, 10.0, (0.0, 10.0))
    assert paths.line([0.0, 1.0, 2.0, 3.0], [0.0, 10.0, nan, 5.0], up, 100) == "M0 100L1 0M3 50h0"
    assert paths.line([], [], up, 100) == ""


def test_stairs_fall_to_the_axis_or_break_where_nothing_is_known() -> None:
    up = Axis(0.0, 10.0, (0.0, 10.0))
    edges = [0.0, 10.0, 20.0, 30.0]
    assert paths.area(edges, [5.0, nan, 10.0], up, 100) == "M0 100V50H10V100H20V0H30V100Z"
    assert paths.stairs(edges, [5.0, nan, 10.0], up, 100) == "M0 50H10M20 0H30"


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 214.0], [0, 100, 200]),
        ([3.1, 12.4], [0, 5, 10]),
        ([0.31], [0, 0.1, 0.2, 0.3]),
        ([], [0, 0.5, 1.0]),
        ([0.0], [0, 0.5, 1.0]),
        ([nan, 7.0], [0, 2, 4, 6]),
    ],
)
def test_axes_have_round_ticks(values: list[float], ticks: list[float]) -> None:
    assert list(axis(values, 3 if len(ticks) == 3 else 4).ticks) == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("value", "step", "label"),
    [(0, 0.1, "0"), (0.3, 0.1, "0.3"), (0.25, 0.25, "0.25"), (200, 100, "200"), (14_000, 2_000, "14k"),
     (1_500, 500, "1,500"), (2_500_000, 500_000, "2.5M"), (12_500, 2_500, "12.5k"), (7.5, 2.5, "7.5")],
)  # fmt: skip
def test_ticks_are_labelled(value: float, step: float, label: str) -> None:
    assert short(value, step) == label


@pytest.mark.parametrize(("step", "rounded"), [(0.9, 1), (1.0, 1), (2.1, 2.5), (3, 5), (53, 100), (0.011, 0.02)])
def test_steps_of_an_axis_are_round(step: float, rounded: float) -> None:
    assert nice(step) == pytest.approx(rounded)


def test_steps_are_labelled_where_they_are_round() -> None:
    assert [t.label for t in step_ticks(list(range(1, 301)), [1] * 300)] == ["50", "100", "150", "200", "250", "300"]
    assert [t.label for t in step_ticks([496, 497, 498, 499, 500], [1] * 5)] == ["496", "497", "498", "499", "500"]
    twice = step_ticks([*range(1, 201), *range(101, 201)], [1] * 200 + [2] * 100)
    assert [t.label for t in twice] == ["50", "100", "150", "200", "150", "200"]


def test_columns_of_a_strip_are_labelled_where_they_hold_a_round_step() -> None:
    columns = [(3 * i, 3 * i + 2) for i in range(100)]
    assert [t.label for t in column_ticks(columns)] == ["0", "50", "100", "150", "200", "250"]
    assert [t.label for t in column_ticks([(0, 0), (500, 500)])] == ["0", "500"]
    sparse = column_ticks([(step, step) for step in range(0, 70, 7)])
    assert [(t.label, round(10 * t.at, 2)) for t in sparse][:2] == [("0", 0.5), ("20", 3.36)]


def test_marks_that_would_cover_one_another_stand_on_lines_of_their_own() -> None:
    marks = [
        Mark(i, at, end, "info", "") for i, (at, end) in enumerate([(0.5, 0.9), (0.52, 0.53), (0.6, 0.61), (0.97, 1)])
    ]
    assert [(m.number, lane) for m, lane in placed(marks)] == [(0, 0), (1, 1), (2, 1), (3, 0)]


def test_of_many_cards_those_farthest_from_the_others_are_shown() -> None:
    tracks = tuple(
        MemoryTrack(f"rank {i}", f"rank {i}", i, "h", "used", 80.0,
                    (MemoryPoint(1, 40.0 + i / 1000, ""), MemoryPoint(2, 60.0 if i == 150 else 40.0 + i / 1000, "")))
        for i in range(200)
    )  # fmt: skip
    found = replace(made(5, [1.0] * 5), memory=tracks)
    (strip,) = strips(found)
    assert len(strip.tracks) == SHOWN
    assert "rank 150" in {track.name for track in strip.tracks}
    assert f"{200 - SHOWN} cards that differ less are left out." in render(found)


def test_two_attempts_are_told_apart(tmp_path: Path) -> None:
    again = [line.replace("timing_s/update_actor:29.5", "timing_s/update_actor:29.25") for line in steps(20, first=5)]
    text = render(reported(tmp_path, *steps(12), "Setting global step to 4", *again))
    assert data_of(text)["attempt"] == [1] * 12 + [2] * 20
    assert 'class="break"' in text


def test_changes_that_find_no_room_over_the_chart_are_counted(allranks: Report) -> None:
    many = replace(allranks, incidents=tuple(replace(allranks.incidents[1], id=str(i)) for i in range(10)))
    found = Markup(render(many))
    assert "4 changes find no room here; they are below." in found.text
    assert len([a for a in found.named("article") if a.get("id")]) == 10
