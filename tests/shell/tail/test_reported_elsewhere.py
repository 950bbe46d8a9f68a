"""What users of other programs that read logs have reported, each as a test of this one.

inotify that is used up (fluent-bit#1018, fluent-bit#1777) or overrun (fluent-bit#1108) needs the real daemon and is in
tests/daemon/test_inotify.py.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shell.tail.driver import Driver, append, numbered, numbers
from verlwatch.core.engine import Engine
from verlwatch.core.types import Cursor, Outcome
from verlwatch.shell.store import Store

Drive = Callable[..., Driver]


async def test_a_rotated_file_is_read_to_its_end_however_much_of_it_is_left(drive: Drive, tmp_path: Path) -> None:
    """fluent-bit#10414: a rotated file was dropped with bytes pending."""
    log = tmp_path / "train.log"
    append(log, numbered(0, 10))
    driver = drive(log)
    await driver.settle(1)
    for first in (10, 60_010):
        append(log, numbered(first, 60_000))  # 3 MB, three cycles
        for number in (1, 0):
            old = log.with_name(f"train.log.{number}") if number else log
            if old.exists():
                old.rename(log.with_name(f"train.log.{number + 1}"))
        append(log, b"")
    await driver.cycle()
    append(log, numbered(120_010, 10))
    await driver.settle(30)
    assert numbers(driver.lines) == [*range(120_020)]


async def test_copies_that_begin_alike_are_no_end_of_the_reading(drive: Drive, tmp_path: Path) -> None:
    """opentelemetry-collector-contrib#43693: after copytruncate a log with the same first 1,000 bytes stood still."""
    log = tmp_path / "train.log"
    driver = drive(log)
    for first in range(0, 500, 100):
        append(log, numbered(first, 60, head=True))
        await driver.settle(1)
        append(log, numbered(first + 60, 40))
        shutil.copyfile(log, tmp_path / "train.log.1")
        os.truncate(log, 0)
        await driver.settle(1)
    assert numbers(driver.lines) == [*range(500)]


@pytest.mark.parametrize("is_down", [False, True])
async def test_two_files_that_hold_the_same_are_two(drive: Drive, tmp_path: Path, is_down: bool) -> None:
    """opentelemetry-collector-contrib#46496, vector#5833: of two files with the same head only one was read."""
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    append(first, numbered(0, 50, head=True))
    driver = drive(tmp_path / "*.log")
    await driver.settle(1)
    driver.commit()
    if is_down:
        driver.kill()
    append(second, numbered(0, 50, head=True))
    if is_down:
        driver.start()
    await driver.settle(2)
    append(first, numbered(50, 10))
    append(second, numbered(60, 10))
    await driver.settle(2)
    assert sorted(numbers(driver.lines)) == sorted([*range(50), *range(50), *range(50, 70)])
    assert {view.source: view.state for view in driver.tail.sources()} == {str(first): "live", str(second): "live"}


@pytest.mark.parametrize("more", [0, 1, 900])
async def test_an_inode_that_is_given_out_again_with_the_same_head_is_another_file(
    drive: Drive, tmp_path: Path, more: int
) -> None:
    """vector#25079: the same inode and the same checksum of the head, and the new file was not read."""
    log = tmp_path / "train.log"
    append(log, numbered(0, 500, head=True))
    driver = drive(log)
    await driver.settle(1)
    driver.commit()
    driver.kill()
    inode = log.stat().st_ino
    for _ in range(50):
        log.unlink()
        append(log, numbered(500, 500 + more, head=True))
        if log.stat().st_ino == inode:
            break
    else:
        pytest.skip("this file system does not give an inode out again at once")
    driver.start()
    await driver.settle(2)
    assert numbers(driver.lines) == [*range(1000 + more)]


async def test_nothing_is_sent_again_where_inodes_go_round(drive: Drive, tmp_path: Path) -> None:
    """beats#36541, beats#38070: after an inode had been used again files were sent over and over."""
    log, other = tmp_path / "train.log", tmp_path / "other.log"
    driver = drive(tmp_path / "*.log")
    for round_ in range(12):
        (log if round_ % 2 else other).unlink(missing_ok=True)
        append(log if round_ % 2 else other, numbered(10 * round_, 10, head=True))
        await driver.settle(8)
        driver.commit()
        if round_ % 3:
            driver.restart()
        await driver.settle(8)
    assert sorted(numbers(driver.lines)) == [*range(120)]


async def test_a_kill_between_reading_and_committing_costs_nothing(drive: Drive, tmp_path: Path) -> None:
    """opentelemetry-collector-contrib#31074: the stored offset was ahead of what had been delivered."""
    log = tmp_path / "train.log"
    append(log, numbered(0, 100, head=True))
    driver = drive(log)
    await driver.settle(1)
    driver.commit()
    append(log, numbered(100, 100))
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(200)]
    driver.restart()
    assert numbers(driver.lines) == [*range(100)]
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(200)]


@pytest.mark.parametrize("damage", ["all NUL", "half of it", "NUL at the end", "no text"])
async def test_positions_that_a_crash_has_ruined_are_set_aside_once_and_the_log_is_read_again(
    tmp_path: Path, damage: str
) -> None:
    """loki#6268, loki#1460: a checkpoint full of NULs, and a crash at each start; vector#17644: so with a buffer."""
    cursor = Cursor("train.log", 1, 10, 10)
    store = await Store.open(tmp_path)
    await store.commit(Outcome((cursor,)), 1.0)
    await store.close()
    file = tmp_path / "state.db"
    whole = file.read_bytes()
    half = len(whole) // 2
    ruined = {
        "all NUL": bytes(len(whole)),
        "half of it": whole[:half],
        "NUL at the end": whole[:half] + bytes(half),
        "no text": b"\n\n",
    }
    file.write_bytes(ruined[damage])
    store = await Store.open(tmp_path)
    assert (await store.load()).cursors == ()
    (notice,) = store.notices
    assert notice.startswith("the database was damaged: it was set aside as")
    await store.commit(Outcome((cursor,)), 2.0)
    await store.close()
    store = await Store.open(tmp_path)
    assert ((await store.load()).cursors, store.notices) == ((cursor,), ())
    await store.close()


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
async def test_a_read_that_fails_is_tried_again_where_it_was(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """mtail#505, fluentd#3955, logstash-input-file#189: a handle that went stale on NFS ended the reading."""
    log = tmp_path / "train.log"
    append(log, numbered(0, 3, head=True))
    driver = drive(log)
    await driver.settle(1)

    def fail(fd: int, size: int, offset: int) -> bytes:
        raise OSError(number, os.strerror(number))

    append(log, numbered(3, 3))
    monkeypatch.setattr(os, "pread", fail)
    await driver.settle(10)
    assert driver.view(log).state == "unreadable"
    assert driver.view(log).position > 1024
    monkeypatch.undo()
    await driver.settle(31)
    assert numbers(driver.lines) == [*range(6)]
    assert driver.view(log).generation == 0


async def test_nul_bytes_at_the_end_are_not_taken_for_the_log(drive: Drive, tmp_path: Path) -> None:
    """logstash-input-file#189, fluentd#3955: NFS shows a page of NULs before it has the text, and that was read."""
    log = tmp_path / "train.log"
    append(log, numbered(0, 3) + bytes(100))  # a network file system shows a page before it has it
    driver = drive(log)
    await driver.settle(1)
    with log.open("r+b") as file:
        file.seek(3 * 51)
        file.write(numbered(3, 3))
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(6)]
    assert driver.view(log).generation == 0


def judged(driver: Driver) -> list[int]:
    """The steps that an engine makes of what was read."""
    engine = Engine()
    outcomes = [engine.feed(chunk, float(n)) for n, chunk in enumerate(driver.chunks)]
    return [row.step for outcome in [*outcomes, engine.tick(1e9)] for row in outcome.steps]


def step(number: int) -> bytes:
    return b"step:%d - timing_s/gen:40.5 - timing_s/update_actor:20.25 - timing_s/step:60.75\n" % number


async def test_half_a_line_is_not_taken_for_a_line_however_long_it_waits(drive: Drive, tmp_path: Path) -> None:
    """opentelemetry-collector-contrib#32170: a partial line was emitted as if it were one."""
    log = tmp_path / "train.log"
    append(log, step(1) + step(2)[:20])
    driver = drive(log)
    await driver.settle(3600)
    assert judged(driver) == [1]
    append(log, step(2)[20:])
    await driver.settle(1)
    assert judged(driver) == [1, 2]


async def test_the_last_line_of_a_file_is_read_without_its_newline(drive: Drive, tmp_path: Path) -> None:
    """opentelemetry-collector-contrib#4849: the last line was never emitted if no newline followed it."""
    log = tmp_path / "train.log"
    append(log, step(1) + step(2)[:-1])
    driver = drive(log)
    await driver.settle(1)
    log.rename(tmp_path / "train.log.1")
    append(log, step(3))
    await driver.settle(10)
    assert judged(driver) == [1, 2, 3]


async def test_without_a_descriptor_left_the_file_waits_and_is_read_when_there_is_one(
    drive: Drive, tmp_path: Path
) -> None:
    """fluent-bit#1777: "too many open files", and the reading did not recover."""
    log = tmp_path / "train.log"
    append(log, numbered(0, 3))
    driver = drive(log)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open("/dev/null", os.O_RDONLY)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 1, hard))
        await driver.settle(60)
        view = driver.view(log)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(taken[0])
    assert (view.state, view.readable) == ("unreadable", False)
    assert (view.error or "").startswith(f"{log}: Too many open files; raise the limit of open files")
    await driver.settle(31)
    assert numbers(driver.lines) == [0, 1, 2]
