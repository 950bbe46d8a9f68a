"""What was there before anybody watched: read as history, read as news, or left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.shell.tail.driver import Driver, append, numbered, numbers
from verlwatch.fields import Start


def watching(log: Path | str, start: Start) -> Driver:
    driver = Driver(log)
    driver.starts = {"run": start}
    driver.restart()
    return driver


def history(driver: Driver) -> set[int]:
    return {chunk.history_to for chunk in driver.chunks}


@pytest.mark.parametrize(
    ("start", "first", "history_to"),
    [("beginning", 0, 0), ("last-run", 0, len(numbered(0, 9))), ("end", 9, 0)],
)
async def test_what_is_there_at_the_start(tmp_path: Path, start: Start, first: int, history_to: int) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 9))
    driver = watching(log, start)
    await driver.settle(1.0)
    append(log, numbered(9, 3))
    await driver.settle(1.0)
    assert numbers(driver.lines) == list(range(first, 12))
    assert history(driver) == {history_to}


async def test_what_is_written_between_the_start_at_the_end_and_a_restart_is_read(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 4))
    driver = watching(log, "end")
    await driver.settle(1.0)
    assert driver.lines == []
    driver.commit()
    append(log, numbered(4, 3))
    driver.restart()
    await driver.settle(1.0)
    assert numbers(driver.lines) == [4, 5, 6]


async def test_what_appears_later_is_news_from_its_first_line(tmp_path: Path) -> None:
    driver = watching(tmp_path / "*.log", "end")
    literal = watching(tmp_path / "b.log", "end")
    await driver.settle(3.0)
    await literal.settle(3.0)
    for name, at in (("a.log", driver.clock.at), ("b.log", driver.clock.at)):
        append(tmp_path / name, numbered(0, 5))
        os.utime(tmp_path / name, (at, at))
    await driver.settle(3.0)
    await literal.settle(3.0)
    assert numbers(driver.lines) == [*range(5), *range(5)]
    assert numbers(literal.lines) == [*range(5)]
    assert history(driver) == history(literal) == {0}


async def test_an_old_file_that_is_moved_in_is_history(tmp_path: Path) -> None:
    driver = watching(tmp_path / "*.log", "last-run")
    await driver.settle(3.0)
    append(tmp_path / "old", numbered(0, 5))
    os.utime(tmp_path / "old", (driver.clock.at - 3600, driver.clock.at - 3600))
    (tmp_path / "old").rename(tmp_path / "a.log")
    await driver.settle(3.0)
    assert numbers(driver.lines) == [*range(5)]
    assert history(driver) == {len(numbered(0, 5))}


async def test_what_was_written_while_nobody_watched_a_known_file_is_news(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 4))
    driver = watching(log, "end")
    await driver.settle(1.0)
    append(log, numbered(4, 2))
    await driver.settle(1.0)
    driver.commit()
    append(log, numbered(6, 2))
    driver.restart()
    await driver.settle(1.0)
    assert numbers(driver.lines) == [4, 5, 6, 7]


@pytest.mark.parametrize("start", ["last-run", "end"])
async def test_a_rerun_into_the_same_file_is_no_history(tmp_path: Path, start: Start) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 4))
    driver = watching(log, start)
    await driver.settle(1.0)
    log.write_bytes(numbered(100, 6))
    await driver.settle(8.0)
    assert numbers(driver.lines)[-6:] == [*range(100, 106)]
    assert driver.chunks[-1].history_to == 0


async def test_a_line_that_is_half_written_at_the_start_is_read_whole(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 4) + b"line 0000004 of ")
    driver = watching(log, "end")
    await driver.settle(1.0)
    append(log, b"the log, as long as such lines are\n" + numbered(5, 1))
    await driver.settle(1.0)
    assert numbers(driver.lines) == [4, 5]
