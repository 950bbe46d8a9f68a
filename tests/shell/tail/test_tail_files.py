"""What is found, what cannot be read, and what is read how fast."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shell.tail.driver import Driver, append, numbered, numbers
from verlwatch.core.types import Cursor
from verlwatch.shell.tail import Following

Drive = Callable[..., Driver]

BEYOND = (
    "{} files beyond the limit of {} are not read; narrow the patterns, or raise reading.max_files and the limit of "
    "open files (LimitNOFILE= in the unit, ulimit -n in a shell)"
)


async def test_a_missing_file_waits_and_is_read_within_a_second_of_its_appearance(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "runs" / "new" / "train.log"
    driver = drive(log)
    await driver.settle(60)
    view = driver.view(log)
    assert (view.state, view.readable, view.error) == ("waiting", False, None)
    log.parent.mkdir(parents=True)
    append(log, numbered(0, 3))
    await driver.settle(1)
    assert numbers(driver.lines) == [0, 1, 2]
    assert driver.view(log).state == "live"


async def test_a_new_directory_is_found_by_a_pattern_within_a_second(drive: Drive, tmp_path: Path) -> None:
    pattern = tmp_path / "**" / "train*.log"
    driver = drive(pattern)
    await driver.settle(3)
    assert driver.view(pattern).state == "waiting"
    (tmp_path / "a" / "b").mkdir(parents=True)
    append(tmp_path / "a" / "b" / "train-7.log", numbered(0, 3))
    (tmp_path / "a" / "train-x.log").mkdir()  # a directory that a pattern finds is no source
    await driver.settle(1)
    assert numbers(driver.lines) == [0, 1, 2]
    assert [view.source for view in driver.tail.sources()] == [str(tmp_path / "a" / "b" / "train-7.log")]


async def test_a_pattern_in_a_directory_that_cannot_be_listed_says_so(drive: Drive, tmp_path: Path) -> None:
    pattern = tmp_path / "missing" / "*.log"
    driver = drive(pattern)
    await driver.settle(1)
    assert driver.view(pattern).error == f"{tmp_path}/missing cannot be listed: No such file or directory"


async def test_rotated_files_that_a_pattern_finds_are_no_sources(drive: Drive, tmp_path: Path) -> None:
    for name in ("train.log", "train.log.1", "train.log-20260101", "train.log.2.gz", "train2.log", "train.1.log"):
        append(tmp_path / name, numbered(0, 1))
    driver = drive(tmp_path / "train*")
    await driver.settle(1)
    assert sorted(Path(view.source).name for view in driver.tail.sources()) == [
        "train.1.log",
        "train.log",
        "train2.log",
    ]


async def test_a_rotated_file_that_is_named_literally_is_read(drive: Drive, tmp_path: Path) -> None:
    append(tmp_path / "train.log", numbered(10, 1))
    append(tmp_path / "train.log.1", numbered(0, 1))
    driver = drive(tmp_path / "train.log.1", tmp_path / "train.log")
    await driver.settle(1)
    assert numbers(driver.lines) == [0, 10]


async def test_a_file_renamed_within_a_pattern_is_read_on_under_its_new_name(drive: Drive, tmp_path: Path) -> None:
    log, old = tmp_path / "train.log", tmp_path / "yesterday.log"
    append(log, numbered(0, 5, head=True))
    driver = drive(tmp_path / "*.log")
    await driver.settle(1)
    log.rename(old)
    append(log, numbered(100, 5, head=True))
    await driver.settle(10)
    driver.commit()
    driver.restart()
    append(old, numbered(5, 5))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(5), *range(100, 105), *range(5, 10)]
    assert {chunk.source for chunk in driver.chunks} == {str(log), str(old)}


async def test_what_is_no_regular_file_is_a_state_and_the_others_go_on(drive: Drive, tmp_path: Path) -> None:
    fifo, folder, log = tmp_path / "fifo.log", tmp_path / "folder.log", tmp_path / "train.log"
    os.mkfifo(fifo)
    folder.mkdir()
    append(log, numbered(0, 3))
    driver = drive(fifo, folder, "/dev/null", log)
    await driver.settle(1)
    assert numbers(driver.lines) == [0, 1, 2]
    assert driver.view(fifo).error == f"{fifo} is a FIFO; only regular files are read"
    assert driver.view(folder).error == f"{folder} is a directory; only regular files are read"
    assert driver.view("/dev/null").error == "/dev/null is a device; only regular files are read"
    assert {driver.view(path).state for path in (fifo, folder, "/dev/null")} == {"not a regular file"}
    folder.rmdir()
    append(folder, numbered(3, 3))
    await driver.settle(2)
    assert numbers(driver.lines) == [*range(6)]


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EACCES, "Permission denied; give the user that verlwatch runs as the right to read it"),
        (errno.EMFILE, "Too many open files; raise the limit of open files"),
        (errno.ESTALE, "Stale file handle; the file server has replaced the file"),
    ],
)
async def test_a_file_that_cannot_be_opened_says_why_is_tried_again_and_heals(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    log, other = tmp_path / "train.log", tmp_path / "other.log"
    append(log, numbered(0, 3))
    append(other, numbered(10, 3))
    really_open, attempts = os.open, 0

    def refuse(path: str, flags: int) -> int:
        nonlocal attempts
        if path == str(log):
            attempts += 1
            raise OSError(number, os.strerror(number), path)
        return really_open(path, flags)

    monkeypatch.setattr(os, "open", refuse)
    driver = drive(log, other)
    await driver.settle(120)
    view = driver.view(log)
    assert (view.state, view.readable) == ("unreadable", False)
    assert (view.error or "").startswith(f"{log}: {advice}")
    assert 5 <= attempts <= 15, "it is tried later and later, up to every half minute"
    assert numbers(driver.lines) == [10, 11, 12]
    monkeypatch.undo()
    await driver.settle(31)
    assert sorted(numbers(driver.lines)) == [0, 1, 2, 10, 11, 12]
    assert (driver.view(log).state, driver.view(log).error) == ("live", None)


async def test_a_backlog_does_not_keep_a_live_file_waiting(drive: Drive, tmp_path: Path) -> None:
    live = tmp_path / "live.log"
    append(live, numbered(0, 1))
    driver = drive(*(tmp_path / f"backlog_{number}.log" for number in range(3)), live)
    await driver.settle(0.5)
    for number in range(3):
        append(tmp_path / f"backlog_{number}.log", b"x" * 99 + b"\n" + b"y" * (3 << 20) + b"\n")
    await driver.settle(0)  # the missing files are not looked at before their time
    driver.clock.at += 0.5
    append(live, numbered(1, 1))
    await driver.cycle()
    assert numbers(driver.lines) == [0, 1]
    assert sum(len(chunk.data) for chunk in driver.chunks) <= (1 << 20) + 1024
    states = {driver.view(tmp_path / f"backlog_{number}.log").state for number in range(3)}
    assert "reading" in states
    for _ in range(4):
        await driver.cycle()
    begun = {chunk.source for chunk in driver.chunks}
    assert len(begun) == 4, "backlogs take turns"
    await driver.settle(0)
    assert len(driver.lines) == 2 + 6


async def test_files_of_a_live_run_are_polled_fast_and_the_others_slowly(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 1))
    driver = drive(log)
    driver.clock.at = log.stat().st_mtime
    await driver.settle(0.5)
    assert await driver.cycle() == pytest.approx(driver.clock.at + 0.1)
    driver.clock.at += 5 * 3600
    assert await driver.cycle() == pytest.approx(driver.clock.at + 0.1)
    driver.clock.at += 2 * 3600
    assert await driver.cycle() == pytest.approx(driver.clock.at + 1.0)


async def test_a_clock_that_is_set_back_does_not_stop_the_reading(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 1))
    driver = drive(log)
    await driver.settle(1)
    driver.clock.at -= 7200
    append(log, numbered(1, 1))
    await driver.settle(0.2)
    assert numbers(driver.lines) == [0, 1]


@pytest.mark.parametrize("jump", [-86_400.0, -3600.0, 3600.0, 365 * 86_400.0])
async def test_a_clock_that_is_set_is_no_silence(drive: Drive, tmp_path: Path, jump: float) -> None:
    log, old, gone = tmp_path / "train.log", tmp_path / "train.log.1", tmp_path / "gone.log"
    append(log, numbered(0, 1))
    append(gone, numbered(10, 1))
    driver = drive(log, gone)
    await driver.settle(1)
    log.rename(old)
    append(log, numbered(2, 1))
    with gone.open("ab") as writer:
        gone.unlink()
        await driver.settle(1)
        driver.clock.at += jump
        await driver.settle(3)
        append(old, numbered(1, 1))
        writer.write(numbered(11, 1))
        writer.flush()
        await driver.settle(2)
        assert sorted(numbers(driver.lines)) == [0, 1, 10, 11]
        await driver.settle(4)
    assert sorted(numbers(driver.lines)) == [0, 1, 2, 10, 11]
    assert driver.view(gone).state == "live"
    await driver.settle(60)
    assert driver.view(gone).state == "waiting"


async def test_a_clock_that_is_set_during_a_search_does_not_put_the_next_one_off(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = drive(tmp_path / "*.log")
    await driver.settle(1)
    with monkeypatch.context() as set_meanwhile:
        times = iter((driver.clock.at, driver.clock.at + 1.5))
        set_meanwhile.setattr(driver.clock, "now", lambda: next(times, 0.0) + 365 * 86_400.0)
        driver.tail.hint()
        await driver.settle(2)
    driver.clock.at += 365 * 86_400.0
    await driver.settle(1)
    append(tmp_path / "train.log", numbered(0, 3))
    await driver.settle(2)
    assert numbers(driver.lines) == [0, 1, 2]


async def test_files_beyond_the_limit_are_left_out_and_told(drive: Drive, tmp_path: Path) -> None:
    for number in range(5):
        append(tmp_path / f"train_{number}.log", numbered(number, 1))
    driver = drive(tmp_path / "*.log", max_files=3)
    await driver.settle(1)
    append(tmp_path / "a_new_one.log", numbered(9, 1))
    await driver.settle(2)
    assert numbers(driver.lines) == [0, 1, 2]
    assert driver.tail.notices == (BEYOND.format(3, 3),)


async def test_reload_drops_and_adds_sources_and_goes_on_where_it_was(drive: Drive, tmp_path: Path) -> None:
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    append(first, numbered(0, 3, head=True))
    append(second, numbered(10, 3))
    driver = drive(first)
    await driver.settle(1)
    driver.tail.reload(Following({"other": (str(second),)}, poll_s=0.1, max_files=10))
    await driver.settle(1)
    append(first, numbered(3, 3))
    await driver.settle(1)
    assert [(view.source, view.run) for view in driver.tail.sources()] == [(str(second), "other")]
    driver.tail.reload(Following({"other": (str(second),), "run": (str(first),)}, poll_s=0.1, max_files=10))
    await driver.settle(1)
    assert numbers(driver.lines) == [0, 1, 2, 10, 11, 12, 3, 4, 5]
    assert {(chunk.run, chunk.source) for chunk in driver.chunks} == {("run", str(first)), ("other", str(second))}


async def test_reload_takes_up_the_interval_and_the_most_files(drive: Drive, tmp_path: Path) -> None:
    for name in "abc":
        append(tmp_path / f"{name}.log", numbered(0, 1))
    driver = drive(tmp_path / "*.log")
    await driver.settle(1)
    assert len(driver.tail.sources()) == 3
    driver.tail.reload(Following(driver.patterns, poll_s=5.0, max_files=2))
    await driver.settle(1)
    assert len(driver.tail.sources()) == 2
    assert driver.tail.notices == (BEYOND.format(1, 2),)
    await driver.settle(10)
    append(tmp_path / "a.log", numbered(1, 1))
    polled_at = driver.clock.at
    while driver.lines[-1] != b"line 0000001 of the log, as long as such lines are":
        await driver.settle(0.1)
    assert 0.5 < driver.clock.at - polled_at <= 5.1


async def test_a_file_that_left_its_pattern_is_let_go_and_taken_up_when_it_returns(
    drive: Drive, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 3, head=True))
    driver = drive(tmp_path / "*.log")
    await driver.settle(1)
    data = log.read_bytes()
    log.unlink()
    await driver.settle(70)
    assert [view.state for view in driver.tail.sources()] == ["waiting"]  # the pattern itself
    append(log, data + numbered(3, 3))
    await driver.settle(2)
    assert numbers(driver.lines) == [*range(6)]


async def test_a_cursor_with_a_token_that_cannot_be_read_must_be_proved_by_its_mark(
    drive: Drive, tmp_path: Path
) -> None:
    same, other = tmp_path / "same.log", tmp_path / "other.log"
    append(same, numbered(0, 10))
    append(other, numbered(20, 10))
    driver = drive(same, other)
    driver.kill()
    data = same.read_bytes()
    for path in (same, other):
        driver.cursors[str(path)] = Cursor(str(path), 4, 255, 255, data[191:255], "not JSON")
    driver.start()
    await driver.settle(1)
    assert sorted(numbers(driver.lines)) == [*range(5, 10), *range(20, 30)]
    assert {(chunk.source, chunk.generation) for chunk in driver.chunks} == {(str(same), 4), (str(other), 5)}


async def test_a_name_that_is_no_text_is_readable_everywhere(drive: Drive, tmp_path: Path) -> None:
    log = os.fsdecode(os.fsencode(tmp_path) + b"/tr\xe4in.log")
    append(Path(log), numbered(0, 3, head=True))
    driver = drive(log)
    await driver.settle(1)
    driver.commit()
    driver.restart()
    append(Path(log), numbered(3, 1))
    await driver.settle(1)
    assert numbers(driver.lines) == [0, 1, 2, 3]
    assert driver.view(f"{tmp_path}/tr\\udce4in.log").position == os.stat(log).st_size  # noqa: PTH116
