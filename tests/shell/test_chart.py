"""An image shows what the message says: the values, the baseline, where they changed."""

from __future__ import annotations

import sys
from dataclasses import replace
from io import BytesIO
from math import inf, nan
from typing import Any

import pytest

from tests.shell.notifier_messages import HOSTILE, HUGE, OPENED, RESOLVED
from verlwatch.shell.notifiers._chart import SIZE, Chart, as_json, chart_of, chart_png

BLUE, ORANGE = (0x12, 0x64, 0xA3), (0xC2, 0x41, 0x0C)


def colors(png: bytes) -> set[tuple[int, ...]]:
    image: Any = pytest.importorskip("PIL.Image").open(BytesIO(png))
    assert (image.format, image.size) == ("PNG", SIZE)
    return {color for _, color in image.convert("RGB").getcolors(1 << 20)}


def charted(message: Any) -> Chart:
    chart = chart_of(message)
    assert chart is not None
    return chart


def drawn(message: Any) -> bytes:
    pytest.importorskip("PIL", reason="needs Pillow: pip install 'verlwatch[images]'")
    png = chart_png(**as_json(charted(message)))
    assert png is not None
    return png


def test_the_change_stands_out_and_what_went_before_does_not() -> None:
    assert charted(OPENED).onset == len(OPENED.recent) - 1
    assert {BLUE, ORANGE} <= colors(drawn(OPENED))


def test_what_is_back_to_normal_is_not_marked() -> None:
    assert charted(RESOLVED).onset is None
    assert ORANGE not in colors(drawn(RESOLVED))


def test_a_change_older_than_the_values_marks_them_all() -> None:
    assert charted(replace(OPENED, onset_step=1)).onset == 0


def test_values_that_are_no_numbers_are_left_out() -> None:
    chart = charted(replace(OPENED, recent=(1.0, nan, 2.0, inf, 9.0), step=10, onset_step=9))
    assert (chart.values, chart.onset) == ((1.0, 2.0, 9.0), 2)


def test_the_same_message_gives_the_same_image_of_a_few_kilobytes() -> None:
    assert drawn(OPENED) == drawn(OPENED)
    assert len(drawn(OPENED)) < 20_000


@pytest.mark.parametrize(
    "message",
    [
        HOSTILE,
        HUGE,
        replace(OPENED, recent=(nan, inf, -inf, 1e300, -5.0), before=0.0),
        replace(OPENED, recent=(0.0, 0.0), before=0.0),
        replace(OPENED, phase="吞吐", recent=(1.0, 2.0), before=1e-300),
    ],
)
def test_no_values_and_no_name_break_it(message: Any) -> None:
    assert colors(drawn(message))


@pytest.mark.parametrize("recent", [(), (1.0,), (1.0, nan)])
def test_where_there_is_no_line_nothing_is_drawn(recent: Any) -> None:
    assert chart_of(replace(OPENED, recent=recent)) is None


def test_one_value_is_no_line() -> None:
    assert chart_png("gen", (1.0,), 1.0, None) is None


def test_without_pillow_there_is_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert chart_png("gen", (1.0, 2.0), 1.0, None) is None
