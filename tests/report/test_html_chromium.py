"""The HTML form of a report in a real Chromium: drawn, silent, alone, and usable by pointer and keyboard."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.report.browser import CHROMIUM, Page, browser
from tests.report.made import WORDS, read
from verlwatch import report
from verlwatch.report import Report
from verlwatch.report._steps import Column, Steps
from verlwatch.report.html import render

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)"),
]

DRAWN = """[...document.querySelectorAll('svg.chart')].map(svg => {
  const box = svg.getBoundingClientRect();
  const marks = [...svg.querySelectorAll('path')].map(path => path.getBBox()).filter(b => b.width > 0 || b.height > 0);
  return box.width > 200 && box.height > 30 && marks.length > 0;
})"""
OVERLAPS = """[...document.querySelectorAll('svg.chart')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('.axis text, .marks text')];
  const boxes = texts.map(text => [text.textContent, text.getBoundingClientRect()]);
  const cover = (p, q) =>
    p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 3 && q.top < p.bottom - 3;
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([, q]) => cover(p, q)).map(([b]) => a + '/' + b));
})"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with browser(tmp_path_factory.mktemp("chromium") / "profile") as found:
        yield found


def written(tmp_path: Path, found: Report) -> Path:
    path = tmp_path / "report.html"
    path.write_text(render(found), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def allranks(recorded: Path) -> Report:
    return report.build(read(recorded / "verl-0.4.1.allranks-debug.nodedup.driver.log"), WORDS)


def long_run(count: int) -> Report:
    """A report of many steps of nine phases, with a lasting change."""
    names = ("gen", "reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor", "update_weights")
    columns: dict[str, Column] = {}
    for place, name in enumerate(names):
        values = [
            (10 + place)
            * (1 + 0.1 * math.sin(i * (place + 1.7)) + 0.05 * math.cos(i * 0.37))
            * (1.5 if i > 4000 else 1)
            for i in range(count)
        ]
        columns[name] = Column(
            name, name, "s", "phase", values, [10.0 + place + 0.01 * math.sin(i) for i in range(count)]
        )
    whole = [sum(column.values[i] for column in columns.values()) for i in range(count)]
    columns["step"] = Column("step", "step", "s", "step", whole)
    columns["tokens"] = Column(
        "tokens", "tokens", "tokens", "work", [15_000 + 2_000 * math.sin(i) for i in range(count)]
    )
    empty = report.build(report.Reading("long", ("r.log",)), WORDS)
    run = replace(empty.run, steps=count, first=1, last=count, attempts=1)
    return replace(empty, run=run, steps=Steps([1] * count, list(range(1, count + 1)), columns))


@pytest.mark.parametrize("log", ["verl-0.4.1.allranks-debug.nodedup.driver.log", "tutorial-forms.log"])
@pytest.mark.parametrize("width", [1280, 360])
async def test_charts_are_drawn_without_a_word_on_the_console_or_to_the_network(
    page: Page, tmp_path: Path, recorded: Path, log: str, width: int
) -> None:
    path = written(tmp_path, report.build(read(recorded / log), WORDS))
    for dark in (False, True):
        await page.open(path, width=width, dark=dark)
        drawn = await page.run(DRAWN)
        assert len(drawn) > 5
        assert all(drawn)
        assert await page.run(OVERLAPS) == []
        assert await page.run("document.documentElement.scrollWidth") <= width
        assert page.errors == []
        assert page.requests == [path.as_uri()]


async def test_dark_is_dark_and_light_and_paper_are_light(page: Page, tmp_path: Path, allranks: Report) -> None:
    path = written(tmp_path, allranks)
    grounds = []
    for dark in (False, True):
        await page.open(path, dark=dark)
        grounds.append(await page.run("getComputedStyle(document.body).backgroundColor"))
    await page.call("Emulation.setEmulatedMedia", media="print")
    grounds.append(await page.run("getComputedStyle(document.body).backgroundColor"))
    await page.call("Emulation.setEmulatedMedia", media="")
    assert grounds == ["rgb(251, 251, 250)", "rgb(20, 23, 26)", "rgb(255, 255, 255)"]


async def test_the_policy_stops_what_a_hole_in_the_escaping_would_let_in(
    page: Page, tmp_path: Path, allranks: Report
) -> None:
    path = written(tmp_path, allranks)
    hole = '<script>document.title="taken"</script><img src="https://evil.example/x" onerror="document.title=1">'
    path.write_text(path.read_text().replace("<main>", f"<main>{hole}"))
    await page.open(path)
    title = await page.run("document.title")
    assert title == "r – verlwatch"
    assert any("Content Security Policy" in error for error in page.errors)


async def test_hostile_text_does_nothing(page: Page, tmp_path: Path, allranks: Report) -> None:
    hostile = '</script><svg onload="document.title=1"><script>document.title=2</script>'
    incidents = tuple(replace(i, title=hostile, text=hostile) for i in allranks.incidents)
    tracks = tuple(replace(t, label=hostile, name=hostile) for t in allranks.memory)
    run = replace(allranks.run, name=hostile)
    path = written(tmp_path, replace(allranks, run=run, incidents=incidents, memory=tracks, headline=hostile))
    await page.open(path)
    assert await page.run("document.title") == f"{hostile} – verlwatch"
    assert await page.run("document.querySelector('h1').textContent") == hostile
    assert page.errors == []


async def test_the_pointer_tells_the_values_of_a_step_in_every_chart(
    page: Page, tmp_path: Path, allranks: Report
) -> None:
    await page.open(written(tmp_path, allranks))
    left, top, width, height = await page.run(
        "(b => [b.left, b.top, b.width, b.height])(document.querySelector('.stack .cursor').getBoundingClientRect())"
    )
    before = await page.run("document.querySelector('.stack output').textContent")
    await page.point(left + width * 120.5 / 300, top + height / 2)
    values = allranks.steps.columns["gen"].values
    told = await page.run("[...document.querySelectorAll('.stack output, .series output')].map(o => o.textContent)")
    assert told[0].startswith("step 121: ")
    assert f"step 121: {values[120]:.0f} s, expected 44.9 s" in told
    assert await page.run("document.querySelector('.legend [data-of=gen]').textContent") == f"{values[120]:.0f} s"
    await page.point(5, 5)
    assert await page.run("document.querySelector('.stack output').textContent") == before


async def test_arrow_keys_move_from_step_to_step(page: Page, tmp_path: Path, allranks: Report) -> None:
    await page.open(written(tmp_path, allranks))
    now: dict[str, Any] = {}

    async def told() -> tuple[str, str]:
        name = "document.activeElement.getAttribute"
        now["label"] = await page.run(f"{name}('aria-label')")
        return await page.run(f"{name}('aria-valuenow')"), await page.run(f"{name}('aria-valuetext')")

    for _ in range(40):
        await page.press("Tab")
        if await page.run("document.activeElement.className") == "cursor":
            break
    assert (await told())[1].startswith("step 300: ")
    assert now["label"] == "Step over time, arrow keys move from step to step"
    await page.press("ArrowLeft")
    assert (await told())[0] == "298"
    await page.press("Home")
    assert (await told())[1].startswith("step 1: ")
    await page.press("Escape")
    assert (await told())[1].startswith("A step takes ")


async def test_the_strip_of_memory_tells_card_and_step(page: Page, tmp_path: Path, allranks: Report) -> None:
    await page.open(written(tmp_path, allranks))
    await page.run("document.querySelector('.memory .cursor').focus()")
    await page.press("End")
    said = await page.run("document.querySelector('.memory output').textContent")
    assert said.startswith("rank 3, step ")
    assert said.endswith(": 71.9 GB")


async def test_five_thousand_steps_are_drawn_and_told(page: Page, tmp_path: Path) -> None:
    path = written(tmp_path, long_run(5000))
    assert path.stat().st_size < 2_000_000
    await page.open(path, width=390)
    drawn = await page.run(DRAWN)
    assert len(drawn) == 13
    assert all(drawn)
    assert await page.run(OVERLAPS) == []
    await page.run("document.querySelector('.stack .cursor').focus()")
    await page.press("ArrowLeft")
    assert (await page.run("document.querySelector('.stack output').textContent")).startswith("step 4,999: ")
    assert page.errors == []


async def test_what_is_drawn_needs_no_script(page: Page, tmp_path: Path, allranks: Report) -> None:
    await page.call("Emulation.setScriptExecutionDisabled", value=True)
    await page.open(written(tmp_path, allranks))
    await page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert await page.run("document.querySelectorAll('.cursor').length") == 0
    assert all(await page.run(DRAWN))
    assert await page.run("document.querySelector('.series[data-of=gen] output').textContent") == (
        "median 47.5, 35.1 to 181.7 s"
    )
