"""The situations in which readers of logs lose lines or read them twice, with default settings: 0 lost, 0 repeated.

The number of lines of each is what others were measured with.  SIGKILL under load is in test_tail_kills.py.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.shell.tail.driver import Driver, append, numbered, numbers
from verlwatch.core.engine import Engine

Drive = Callable[..., Driver]

HEADER = b"+ python3 -m verl.trainer.main_ppo data.train_batch_size=1024\n" * 20
"""What two runs of one script have in common, and more than what a stored position remembers of a file's head."""


def steps(first: int, count: int, *, took: int = 40) -> bytes:
    return b"".join(
        b"step:%d - timing_s/gen:%d.5 - timing_s/step:%d.5\n" % (step, took + step % 3, 60 + step % 3)
        for step in range(first, first + count)
    )


def judged(driver: Driver) -> list[tuple[int, int]]:
    """Attempt and step of all that an engine makes of what was read."""
    engine = Engine()
    outcomes = [engine.feed(chunk, float(n)) for n, chunk in enumerate(driver.chunks)]
    return [(row.attempt, row.step) for outcome in [*outcomes, engine.tick(1e9)] for row in outcome.steps]


async def test_late_writes_to_a_renamed_file_come_before_the_new_file(drive: Drive, tmp_path: Path) -> None:
    log, old = tmp_path / "train.log", tmp_path / "train.log.1"
    append(log, numbered(0, 100, head=True))
    driver = drive(log)
    await driver.settle(1)
    writer = log.open("ab")
    log.rename(old)
    append(log, numbered(1000, 10, head=True))
    await driver.settle(1)
    for first in range(100, 3950, 50):
        writer.write(numbered(first, 50))
        writer.flush()
        await driver.settle(0.5)
    writer.close()
    append(log, numbered(1010, 10))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(3950), *range(1000, 1020)]
    assert driver.view(log).generation == 1


async def test_copytruncate_loses_nothing_that_was_copied(drive: Drive, tmp_path: Path) -> None:
    log, copy = tmp_path / "train.log", tmp_path / "train.log.1"
    append(log, numbered(0, 500, head=True))
    driver = drive(log)
    await driver.settle(1)
    append(log, numbered(500, 30))  # not read before the copy
    shutil.copyfile(log, copy)
    os.truncate(log, 0)
    append(log, numbered(530, 20))
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(550)]
    assert [driver.chunks[-2].generation, driver.chunks[-1].generation] == [0, 1]


async def test_truncation_with_the_same_head_and_growth_past_the_offset_is_seen(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 500, head=True))
    driver = drive(log)
    await driver.settle(1)
    log.write_bytes(numbered(500, 900, head=True))
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(1400)]
    assert driver.view(log).generation == 1


async def test_an_inode_reused_across_a_restart_is_another_file(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 500, head=True))
    driver = drive(log)
    await driver.settle(1)
    driver.commit()
    driver.kill()
    log.unlink()
    append(log, numbered(500, 900, head=True))
    cursor = driver.cursors[str(log)]
    token = json.loads(cursor.token)
    token["inode"] = str(log.stat().st_ino)  # as ext4 would have it nearly always
    driver.cursors[str(log)] = replace(cursor, token=json.dumps(token))
    driver.start()
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(1400)]
    assert driver.chunks[-1].generation == 1


async def test_a_file_renamed_while_the_watcher_was_down_is_finished_first(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 350, head=True))
    driver = drive(log)
    await driver.settle(1)
    driver.commit()
    driver.kill()
    append(log, numbered(350, 100))
    log.rename(tmp_path / "train.log.1")
    append(log, numbered(450, 50, head=True))
    driver.start()
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(500)]
    assert [chunk.generation for chunk in driver.chunks] == [0, 0, 1]


async def test_nul_bytes_and_bytes_that_are_no_text_are_handed_on(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    data = b"a\0b\n\xff\xfe\x80\n\0\0\nend\n" + bytes(range(256)) + b"\n"
    append(log, data)
    append(log, numbered(0, 20))
    driver = drive(log)
    await driver.settle(1)
    append(log, b"\0\xff" + numbered(20, 1))
    await driver.settle(1)
    data = log.read_bytes()
    assert len(driver.lines) == data.count(b"\n")
    assert b"".join(chunk.data for chunk in driver.chunks) == data


async def test_a_file_deleted_while_open_is_read_to_its_end_and_its_successor_after_it(
    drive: Drive, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 10))
    driver = drive(log)
    await driver.settle(1)
    with log.open("ab") as writer:
        log.unlink()
        writer.write(numbered(10, 20))
        writer.flush()
        append(log, numbered(40, 20))
        await driver.settle(1)
        writer.write(numbered(30, 10))
        writer.flush()
        await driver.settle(10)
    assert numbers(driver.lines) == [*range(60)]


async def test_a_half_line_is_read_again_after_a_restart(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    line = numbered(1, 1)
    append(log, numbered(0, 1) + line[:20])
    driver = drive(log)
    await driver.settle(1)
    driver.commit()
    driver.restart()
    append(log, line[20:])
    await driver.settle(1)
    assert numbers(driver.lines) == [0, 1]
    assert driver.chunks[-1].offset == len(line)


async def test_bars_that_rewrite_their_line_hide_no_step(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    driver = drive(log)
    for step in range(1, 11):
        for half in (b"\rTraining Progress:  %d%%|## | %d/10 [00:%02d<" % (10 * step, step, step), b"01:30, 9.00s/it]"):
            append(log, half)
            await driver.settle(0.5)
        append(log, b"\n" + steps(step, 1))
        await driver.settle(0.5)
    assert judged(driver) == [(1, step) for step in range(1, 11)]


async def test_a_line_of_5_mib_arrives_whole_in_chunks_of_128_kib(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, b"x" * (5 << 20) + b"\n" + numbered(0, 1))
    driver = drive(log)
    await driver.settle(0)
    assert [len(line) for line in driver.lines] == [5 << 20, 50]
    assert max(len(chunk.data) for chunk in driver.chunks) == 128 << 10


async def test_a_symbolic_link_that_swaps_moves_on_to_the_next_session(drive: Drive, tmp_path: Path) -> None:
    first, second, link = tmp_path / "session_1", tmp_path / "session_2", tmp_path / "session_latest"
    for session in (first, second):
        session.mkdir()
    append(first / "worker.out", numbered(0, 10, head=True))
    append(second / "worker.out", numbered(20, 10, head=True))
    link.symlink_to(first)
    driver = drive(link / "*.out")
    await driver.settle(1)
    link.unlink()
    link.symlink_to(second)
    await driver.settle(1)
    append(first / "worker.out", numbered(10, 10))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(30)]
    assert {chunk.source for chunk in driver.chunks} == {str(link / "worker.out")}


@pytest.mark.parametrize("is_down", [False, True])
async def test_a_symbolic_link_to_a_file_that_swaps_loses_nothing(drive: Drive, tmp_path: Path, is_down: bool) -> None:
    first, second, link = tmp_path / "run_1.txt", tmp_path / "run_2.txt", tmp_path / "latest.log"
    append(first, numbered(0, 10, head=True))
    append(second, numbered(20, 10, head=True))
    link.symlink_to(first)
    driver = drive(tmp_path / "*.log")
    await driver.settle(1)
    driver.commit()
    if is_down:
        driver.kill()
    append(first, numbered(10, 10))
    link.unlink()
    link.symlink_to(second)
    if is_down:
        driver.start()
    await driver.settle(10)
    append(second, numbered(30, 10))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(40)]
    assert {(chunk.source, chunk.generation) for chunk in driver.chunks} == {(str(link), 0), (str(link), 1)}


async def test_rotated_files_that_are_compressed_are_not_read_again(drive: Drive, tmp_path: Path) -> None:
    log, old, older = tmp_path / "train.log", tmp_path / "train.log.1", tmp_path / "train.log.2"
    append(log, numbered(0, 50, head=True))
    driver = drive(tmp_path / "train.log*")
    await driver.settle(1)
    for first in (50, 100, 150):
        if old.exists():
            older.with_name("train.log.2.gz").write_bytes(gzip.compress(old.read_bytes()))
            old.unlink()
        log.rename(old)
        append(log, numbered(first, 50, head=True))
        await driver.settle(10)
        driver.commit()
        driver.restart()
        await driver.settle(10)
    assert numbers(driver.lines) == [*range(200)]


async def test_files_with_the_same_head_are_both_read(drive: Drive, tmp_path: Path) -> None:
    append(tmp_path / "train_a.log", numbered(0, 5, head=True))
    append(tmp_path / "train_b.log", numbered(5, 5, head=True))
    driver = drive(tmp_path / "*.log")
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(10)]


@pytest.mark.parametrize("link_to", [Path.symlink_to, Path.hardlink_to])
async def test_one_file_under_two_names_is_read_once(
    drive: Drive, tmp_path: Path, link_to: Callable[[Path, Path], None]
) -> None:
    log, link = tmp_path / "train.log", tmp_path / "zz_latest.log"
    append(log, numbered(0, 5))
    link_to(link, log)
    driver = drive(tmp_path / "*.log")
    await driver.settle(1)
    append(link, numbered(5, 5))
    await driver.settle(1)
    driver.commit()
    driver.restart()
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(10)]
    view = driver.view(link)
    assert (view.state, view.readable) == ("same file", True)
    assert view.error == f"{link} is the file that is read as {log}"


async def test_rewriting_to_the_same_size_is_seen(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 500, head=True))
    driver = drive(log)
    await driver.settle(1)
    log.write_bytes(numbered(500, 500, head=True))
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(1000)]


async def test_a_file_replaced_by_another_of_the_same_size_is_read(drive: Drive, tmp_path: Path) -> None:
    log, fresh = tmp_path / "train.log", tmp_path / "fresh"
    append(log, numbered(0, 500, head=True))
    driver = drive(log)
    await driver.settle(1)
    append(fresh, numbered(500, 500, head=True))
    assert fresh.stat().st_size == log.stat().st_size
    fresh.replace(log)
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(1000)]
    assert driver.view(log).generation == 1


async def test_a_rerun_into_the_same_file_is_a_generation_and_an_attempt(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, HEADER + steps(1, 40))
    driver = drive(log)
    await driver.settle(1)
    log.write_bytes(HEADER + steps(1, 60, took=41))  # `… 2>&1 | tee train.log`, and longer than before within a second
    await driver.settle(1)
    assert {chunk.generation for chunk in driver.chunks} == {0, 1}
    assert judged(driver) == [*((1, step) for step in range(1, 41)), *((2, step) for step in range(1, 61))]
