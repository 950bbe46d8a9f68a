"""The cards of a run on the page."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.shell.http.fake import slow_run, status
from verlwatch.shell.http import page
from verlwatch.shell.http._gpus import CARDS_LIMIT, LEAST, LEVELS, cards, strip
from verlwatch.status import GpuStatus

EVEN = tuple(
    GpuStatus(host="node-1", gpu=str(i), rank=str(i), used_gb=41.2, total_gb=79.1, utilization=93.4, offset_gb=0.1 * i,
              recent=(41.0, 41.1, 41.2))
    for i in range(3)
)  # fmt: skip
HEAVY = GpuStatus(host="node-1", gpu="3", rank="3", used_gb=71.9, total_gb=79.1, utilization=98.0, offset_gb=30.8,
                  recent=(41.0, 55.0, 71.9))  # fmt: skip


def rows(markup: str) -> list[tuple[str, list[str]]]:
    """The class of each row and the text of its cells."""
    found = re.findall(r"<tr(?: class=\"(\w+)\")?>(<td.*?)</tr>", markup)
    return [
        (
            kind,
            [
                re.sub(r"<title>.*?</title>|<[^>]+>", "", cell).replace("\xa0", " ").replace("&nbsp;", "")
                for cell in body.split("</td>")[:-1]
            ],
        )
        for kind, body in found
    ]


def test_each_card_says_what_it_holds_beside_its_peers() -> None:
    found = rows(cards((*EVEN, HEAVY)))
    assert found[1] == ("", ["rank 1 GPU 1, node-1", "", "41.2 GB of 79.1 GB", "+0.10 GB", "93 %"])
    assert found[3] == ("apart", ["rank 3 GPU 3, node-1", "", "71.9 GB of 79.1 GB", "+30.8 GB", "98 %"])


def test_the_page_shows_the_cards_of_a_run() -> None:
    shown = page.render(replace(status(), runs=(replace(slow_run(), gpus=(*EVEN, HEAVY)),)))
    assert shown.count('class="strip"') == 4
    assert "Memory lately" in shown
    without = replace(status(), runs=tuple(replace(run, gpus=()) for run in status().runs))
    assert "Memory lately" not in page.render(without)


def test_a_missing_card_and_one_that_only_a_log_tells_of() -> None:
    found = rows(cards((GpuStatus(host="a", gpu="7", missing=True), GpuStatus(host="", pid=4243, used_gb=12.0))))
    assert found == [
        ("bad", ["GPU 7 a", "", "missing", "–", "–"]),
        ("", ["pid 4243", "", "12.0 GB", "–", "–"]),
    ]


def test_of_many_cards_those_beside_their_peers_and_missing_ones_are_shown() -> None:
    many = [GpuStatus(host=f"n{i // 8}", gpu=str(i % 8), rank=str(i), offset_gb=0.001 * i) for i in range(200)]
    many[3], many[100] = replace(many[3], missing=True), replace(many[100], offset_gb=-20.0)
    markup = cards(many)
    found = rows(markup)
    assert len(found) == CARDS_LIMIT
    assert [cells[0].split(" GPU")[0] for _, cells in found[:3]] == ["rank 3", "rank 100", "rank 138"]
    assert f"And {200 - CARDS_LIMIT} cards that differ less: see /api/v1/status" in markup


def test_a_page_of_many_runs_shows_few_cards_of_each() -> None:
    many = tuple(GpuStatus(host="a", gpu=str(i), recent=(1.0,)) for i in range(64))
    runs = tuple(replace(slow_run(), name=f"r{i}", gpus=many) for i in range(page.RUNS_LIMIT))
    assert page.render(replace(status(), runs=runs)).count('class="strip"') == page.RUNS_LIMIT * LEAST
    assert page.render(replace(status(), runs=runs[:1])).count('class="strip"') == 64


def paths(markup: str) -> dict[str, str]:
    return dict(re.findall(r'<path class="l(\d)" d="([^"]*)"', markup))


def test_a_strip_goes_from_light_to_dark_with_a_gap_where_nothing_is_known() -> None:
    drawn = paths(strip([0.0, 0.0, None, 9.0], 0.0, 9.0, 4))
    assert drawn == {"0": "M0 0H2V1H0Z", str(LEVELS - 1): "M3 0H4V1H3Z"}


def test_values_end_at_the_same_instant() -> None:
    assert paths(strip([5.0], 0.0, 9.0, 24)) == {"5": "M23 0H24V1H23Z"}


@pytest.mark.parametrize("values", [(), (None,), (float("nan"),)])
def test_nothing_known_is_no_strip(values: tuple[float | None, ...]) -> None:
    assert strip(values, 0.0, 1.0, 24) == ""
    assert "GPU 0" in cards((GpuStatus(host="a", gpu="0", recent=values),))


def test_what_differs_by_little_looks_alike() -> None:
    levels = re.findall(r'<path class="l(\d)"', cards(EVEN))
    assert len(set(levels)) == 1


def test_no_card_is_no_table_and_hostile_names_stay_text() -> None:
    assert cards(()) == ""
    assert "<svg onload" not in cards((GpuStatus(host="<svg onload=x>", gpu="<b>", rank="&"),))
