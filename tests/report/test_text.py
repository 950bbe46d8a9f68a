"""Columns and lines of text in which Chinese characters are two columns wide."""

from __future__ import annotations

from itertools import pairwise

import pytest

from verlwatch.report._sections import Table
from verlwatch.report._terminal import WIDTH, table
from verlwatch.report._text import left, right, width, wrapped


@pytest.mark.parametrize(
    "text", ["plain words of a sentence " * 20, "中文没有空格也要换行。" * 30, "mixed 中文 and words " * 20, "x" * 300]
)
def test_no_line_is_wider_than_it_may_be_and_nothing_is_lost(text: str) -> None:
    lines = list(wrapped(text, 40, "* ", "  "))
    assert max(map(width, lines)) <= 40
    assert "".join(lines).replace(" ", "").replace("*", "") == text.replace(" ", "")
    assert lines[0].startswith("* ")
    assert all(line.startswith("  ") for line in lines[1:])


def test_wide_characters_are_two_columns() -> None:
    assert width("生成 a") == 6
    assert right("生成", 6) == "  生成"
    assert left("生成", 6) == "生成  "


def test_columns_go_where_there_is_no_room_the_lightest_first() -> None:
    names = tuple(f"column{i}" for i in range(14))
    found = Table(names, (tuple(str(i) for i in range(14)),), "r" * 14, droppable=(3, 4, 5, 6))
    head, row = table(found)
    assert width(head) <= WIDTH
    assert "column3" not in head
    assert "column7" in head
    assert len(head.split()) == len(row.split())


def test_a_long_last_cell_follows_in_lines_of_its_own() -> None:
    found = Table(("step", "remark"), (("1", "a long remark " * 20), ("2", "short")), "rl")
    lines = list(table(found))
    assert lines[1].strip() == "1"
    assert lines[-1].split() == ["2", "short"]
    assert all(width(line) <= WIDTH for line in lines)
    assert sum(a != b for a, b in pairwise(lines)) == len(lines) - 1 or "remark" in lines[2]
